// What the colours of the maps mean. A colour is [red, green, blue].

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
const isDark = () => matchMedia("screen and (prefers-color-scheme: dark)").matches;

// The colours of the pictures: seven that differ, taken in turn, and a scale of eight.
const TURN = data.colours.distinct.map(rgb);
const RAMP = data.colours.scale.map(rgb);
const TIERS = levelNames.map((name) => rgb(data.colours.tiers[name] ?? "#d55e00"));

const mix = (a, b, share) => a.map((v, i) => Math.round(v + (b[i] - v) * share));

// How far each rank's groups reach beyond where they belong: 0, or the level.
const strays = sides.map((side) => {
  const found = new Uint8Array(side.world);
  for (const [axis, home] of data.homes) {
    if (!side.axes.has(axis)) continue;
    const level = reach(side, axis);
    for (let r = 0; r < side.world; r++) if (level[r] > home && level[r] > found[r]) found[r] = level[r];
  }
  return found;
});

function byCrossing(s) {
  const calm = rgb(css("--calm")), of = strays[s];
  return (rank) => (of[rank] ? TIERS[of[rank]] : calm);
}

function byAxis(axis, ordered) {
  return (s) => {
    const { size, stride } = sides[s].axes.get(axis);
    const at = (rank) => Math.floor(rank / stride) % size;
    if (ordered && size > 2) return (rank) => RAMP[Math.floor((at(rank) * 8) / size)];
    return (rank) => TURN[at(rank) % TURN.length];
  };
}

// Groups of an axis by number, in turn.
function byGroup(axis) {
  return (s) => (rank) => TURN[groupNumber(sides[s], [axis], rank) % TURN.length];
}

function byMove(s) {
  const stays = rgb(css("--calm")), goes = rgb(css("--net")), only = rgb(css("--all"));
  const to = after - s;
  return (rank) => {
    const other = partner(rank, s, to);
    if (other < 0) return only;
    return sides[to].seats[other] === sides[s].seats[rank] ? stays : goes;
  };
}

const uplinkLevel = machine.levels.indexOf(data.uplinks);
const mostBusy = Math.max(0, ...sides.flatMap((side) => side.busy ?? []));
const LINK_SHADES = 64;
function byLink(s) {
  const low = rgb(css("--well")), middle = rgb(css("--net")), high = rgb(isDark() ? "#ffffff" : "#7a1f00");
  const shades = Array.from({ length: LINK_SHADES + 1 }, (_, i) => {
    const share = i / LINK_SHADES;
    return share < 0.5 ? mix(low, middle, share * 2) : mix(middle, high, share * 2 - 1);
  });
  const colours = (sides[s].busy ?? []).map((busy) => shades[mostBusy ? Math.round((busy / mostBusy) * LINK_SHADES) : 0]);
  return (rank) => colours[domainOfRank(sides[s], rank, uplinkLevel)] ?? low;
}

const swatch = (colour, text) => ({ colour: "rgb(" + colour.join() + ")", text });

const MODES = [
  { key: "cross", name: "Crossing groups", colour: byCrossing, hatch: (s) => strays[s], legend: crossingLegend },
];
function addAxisMode(key, axis, name, ordered) {
  if (!sides[after].axes.has(axis) || !sides.every((side) => side.axes.has(axis))) return;
  MODES.push({ key, name, colour: byAxis(axis, ordered), legend: () => axisLegend(axis, ordered) });
}
if (sides.every((side) => side.roles.length)) {
  MODES[0] = { key: "role", name: "Role", colour: (s) => (rank) => TURN[roleOf(sides[s], rank).index % TURN.length],
    legend: () => sides[after].roles.map(([name], i) => swatch(TURN[i % TURN.length], name)) };
}
addAxisMode("replica", "dp", "Replica", false);
addAxisMode("stage", "pp", "Stage", true);
if (sides.every((side) => side.axes.has("ep"))) {
  MODES.push({ key: "experts", name: "Expert group", colour: byGroup("ep"), legend: () => [{ text: "Seven colours in turn: a rack of one colour holds one expert group." }] });
}
if (after) {
  MODES.push({ key: "moves", name: "What moves", colour: byMove, legend: () => [
    swatch(rgb(css("--calm")), "stays on its GPU"), swatch(rgb(css("--net")), "is on another GPU"),
    swatch(rgb(css("--all")), "runs on this side only")] });
}
if (mostBusy > 0) MODES.push({ key: "links", name: "Link load", colour: byLink, legend: linkLegend });

function crossingLegend() {
  const reached = levelNames.map((_, level) => level).filter((level) => strays.some((of) => of.includes(level)) && level > 0);
  const homes = data.homes.map(([axis, level]) => axis + " in one " + levelNames[level]).join(", ");
  return [
    swatch(rgb(css("--calm")), "every group where it belongs: " + homes),
    ...reached.map((level) => ({ tier: level, text: "a group reaches into the " + levelNames[level] })),
  ];
}

function axisLegend(axis, ordered) {
  const { size, word } = sides[after].axes.get(axis);
  const unit = machine.levels[data.level];
  if (ordered && size > 2) {
    const shown = [...new Set(Array.from({ length: 8 }, (_, i) => Math.ceil((i * size) / 8)))];
    return shown.map((i) => swatch(RAMP[Math.floor((i * 8) / size)], word + " " + i));
  }
  if (size <= TURN.length) return Array.from({ length: size }, (_, i) => swatch(TURN[i], word + " " + i));
  return [{ text: "Seven colours in turn: neighbours differ. A " + unit + " of one colour holds one " + word + "." }];
}

function linkLegend() {
  const low = rgb(css("--well")), middle = rgb(css("--net"));
  return [swatch(low, "uplink of the " + data.uplinks + " idle"), swatch(middle, "in use for " + seconds(mostBusy / 2) + " of a step"),
    swatch(rgb(isDark() ? "#ffffff" : "#7a1f00"), seconds(mostBusy))];
}
