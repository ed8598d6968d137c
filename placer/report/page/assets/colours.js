// What the colours of the maps mean. Python chose those of ranks' places in their job.

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
const hex = (colour) => "#" + colour.map((part) => Math.round(part).toString(16).padStart(2, "0")).join("");
const isDark = () => matchMedia("screen and (prefers-color-scheme: dark)").matches;
const TIERS = levelNames.map((name) => data.tiers[name] ?? "#d55e00");

const mix = (a, b, share) => hex(rgb(a).map((v, i) => v + (rgb(b)[i] - v) * share));

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
  const calm = css("--calm"), of = strays[s];
  return (rank) => (of[rank] ? TIERS[of[rank]] : calm);
}

// The place of each rank on an axis, the number of its group, or its role.
function valueOf(side, axis) {
  if (axis === "role") return (rank) => roleOf(side, rank).index;
  if (axis === "dp" || axis === "pp") return (rank) => coordinate(side, axis, rank);
  const number = groupNumbers(side, [axis]);
  return (rank) => number[rank];
}

function byValue({ axis, palette, shades }) {
  return (s) => {
    const value = valueOf(sides[s], axis);
    const colours = Array.from(shades, (digit) => palette[parseInt(digit, 36)]);
    return (rank) => colours[value(rank) % colours.length];
  };
}

function byMove(s) {
  const stays = css("--calm"), goes = css("--net"), only = css("--all"), to = after - s;
  return (rank) => {
    const other = partner(rank, s, to);
    if (other < 0) return only;
    return sides[to].seats[other] === sides[s].seats[rank] ? stays : goes;
  };
}

const uplinkLevel = machine.levels.indexOf(data.uplinks);
const mostBusy = Math.max(0, ...sides.flatMap((side) => side.busy ?? []));
const linkShades = () => [css("--page"), css("--net"), isDark() ? "#ffffff" : "#7a1f00"];
function byLink(s) {
  const [low, middle, high] = linkShades();
  const colours = (sides[s].busy ?? []).map((busy) => {
    const share = mostBusy ? busy / mostBusy : 0;
    return share < 0.5 ? mix(low, middle, share * 2) : mix(middle, high, share * 2 - 1);
  });
  return (rank) => colours[domainOfRank(sides[s], rank, uplinkLevel)] ?? low;
}

const MODES = data.modes.map((one) => ({ ...one, colour: byValue(one), legend: () => one.legend }));
if (MODES[0]?.axis !== "role") {
  MODES.unshift({ key: "cross", name: "Crossing groups", colour: byCrossing, hatch: (s) => strays[s], legend: crossingLegend });
}
if (after) {
  MODES.push({ key: "moves", name: "What moves", colour: byMove, legend: () => [
    [css("--calm"), "stays on its GPU"], [css("--net"), "is on another GPU"], [css("--all"), "runs on this side only"]] });
}
if (mostBusy > 0) MODES.push({ key: "links", name: "Link load", colour: byLink, legend: linkLegend });
let mode = MODES[0];

function crossingLegend() {
  const reached = levelNames.map((_, level) => level).filter((level) => level > 0 && strays.some((of) => of.includes(level)));
  const homes = data.homes.map(([axis, level]) => axis + " in one " + levelNames[level]).join(", ");
  return [[css("--calm"), "every group where it belongs: " + homes],
    ...reached.map((level) => [TIERS[level], "a group reaches into the " + levelNames[level], "hatched"])];
}

function linkLegend() {
  const [low, middle, high] = linkShades();
  return [[low, "uplink of the " + data.uplinks + " idle"], [middle, "in use for " + seconds(mostBusy / 2) + " of a step"], [high, seconds(mostBusy)]];
}
