// Paints the cells of a map: a path a colour, of what part of it is seen.

const SVG = "http://www.w3.org/2000/svg";

function add(parent, tag, attributes, text) {
  const found = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
  if (text !== undefined) found.textContent = text;
  parent.append(found);
  return found;
}

const layers = maps.map((map) => ({
  title: add(map, "title", {}), cells: add(map, "g", { class: "cells" }),
  bright: add(map, "g", { class: "cells" }), marks: add(map, "g", { class: "marks" }),
}));

// Colours of all ranks, or of cells, of each mode, side and theme.
const kept = new Map();
function once(s, level, colours) {
  const key = [mode.key, s, level, isDark()].join();
  if (!kept.has(key)) kept.set(key, colours());
  return kept.get(key);
}
const coloursOf = (s) => once(s, -1, () => Array.from({ length: sides[s].world }, (_, rank) => rank).map(mode.colour(s)));

// Mean colour of the ranks in each cell of a level: of groups that reach further the
// shade is their share.
function means(s, level) {
  const sums = [], own = coloursOf(s), channels = new Map();
  sides[s].seats.forEach((gpu, rank) => {
    const sum = (sums[cellOfGpu(level, gpu)] ??= [0, 0, 0, 0]), colour = own[rank];
    if (!channels.has(colour)) channels.set(colour, [...rgb(colour), 1]);
    channels.get(colour).forEach((part, i) => { sum[i] += part; });
  });
  return sums.map((sum) => hex(sum.slice(0, 3).map((part) => part / sum[3])));
}

// The cells of a level that are seen.
function seenCells(level) {
  const half = halves(), seen = boxes[Math.max(level, 0)].flatMap((box, cell) => (isSeen(box, half) ? [cell] : []));
  return level >= 0 ? seen : seen.flatMap((node) => Array.from({ length: machine.gpus[node] }, (_, i) => firstGpu[node] + i));
}

function paint(s, marked) {
  const scale = scaleOf(maps[s]), level = cellLevel(scale), side = sides[s];
  const colours = level < 0 ? coloursOf(s) : once(s, level, () => means(s, level));
  const free = css("--line"), colourOf = (cell) => (level < 0 ? colours[side.rankAt[cell]] : colours[cell]) ?? free;
  const cells = seenCells(level);
  const pixels = pitch * scale < 5 && level < 0 ? 0 : Math.max(1, Math.round(pitch * scale * 0.08));
  const gap = [pixels / scale, Math.floor(pixels / 2) / scale]; // in all, and on the left and above
  const hatch = level < 0 ? mode.hatch?.(s) : null, isHatched = (cell) => hatch?.[side.rankAt[cell]];
  const own = layers[s], seen = [mode.key, isDark(), scale, view.x, view.y, halves()].join();
  if (own.seen !== seen) fill(own.cells, level, cells, colourOf, gap, isHatched);
  own.seen = seen;
  own.cells.setAttribute("class", marked ? "cells dim" : "cells");
  const lit = new Set([...(marked ?? [])].filter((rank) => rank >= 0).map((rank) => cellOfGpu(level, side.seats[rank])));
  fill(own.bright, level, cells.filter((cell) => lit.has(cell)), colourOf, gap, isHatched);
  return scale;
}

const short = (length) => Math.round(length * 1e4) / 1e4;
const rect = (x, y, width, height) => "M" + short(x) + " " + short(y) + "h" + short(width) + "v" + short(height) + "h" + short(-width) + "z";

function fill(layer, level, cells, colourOf, [gap, before], isHatched) {
  const shapes = new Map();
  for (const cell of cells) {
    const [x, y, width, height] = cellBox(level, cell), shape = rect(x + before, y + before, width - gap, height - gap);
    for (const colour of isHatched(cell) ? [colourOf(cell), "url(#hatch)"] : [colourOf(cell)]) {
      shapes.set(colour, (shapes.get(colour) ?? "") + shape);
    }
  }
  layer.replaceChildren();
  const last = shapes.get("url(#hatch)");
  shapes.delete("url(#hatch)");
  for (const [colour, d] of shapes) add(layer, "path", { fill: colour, d });
  if (last) add(layer, "path", { fill: "url(#hatch)", d: last });
}
