// Where every GPU lies on a map, in units of a GPU: domains inside domains.
// All domains of a level get the same room, so that like stands under like.

const GPU_ROWS = 8;       // more GPUs in a node than that lie in rows
const TALL_RACK = 36;     // more nodes than that stand in columns
const HEIGHT = 0.62;      // of a map's width, at most

// Room between the domains of a level, by their width and height.
const gapOf = (level) => (level === 1 ? 0.25 : 0.5 + 0.1 * Math.max(...sizes[level - 1]));

// Room for its name above what a block or a pod holds, or a rack of a machine of racks.
const rooms = [];
const nameRoom = (level) => rooms[level] ?? 0;
const isNamed = (level) => level >= Math.min(2, numLevels - 2) && level > 0 && level < numLevels - 1;

const members = [null];
for (const parent of machine.parents) {
  const found = [];
  parent.forEach((p, child) => { (found[p] ??= []).push(child); });
  members.push(found);
}
const outermost = machine.names.at(-1).map((_, d) => d);
members.push([outermost]);
const numLevels = members.length;

// Width and height of a domain of each level, and how many children stand in a row.
const across = [Math.min(GPU_ROWS, Math.max(...machine.gpus))];
const sizes = [[across[0], Math.ceil(Math.max(...machine.gpus) / across[0])]];
for (let level = 1; level < numLevels; level++) {
  const most = Math.max(...members[level].map((list) => list.length));
  const [w, h] = sizes[level - 1], gap = gapOf(level);
  let columns = 1;
  if (level === numLevels - 1) columns = fullest(most, w + gap, h + gap);
  else if (level > 1 || most > TALL_RACK) {
    columns = Math.min(most, Math.max(1, Math.round(Math.sqrt((most * 1.25 * (h + gap)) / (w + gap)))));
    columns = Math.ceil(most / Math.ceil(most / columns)); // the last row as full as can be
  }
  const rows = Math.ceil(most / columns);
  across.push(columns);
  const high = rows * (h + gap) - gap;
  if (isNamed(level)) rooms[level] = Math.max(1.2, 0.2 * h, (level > 1 ? 0.16 : 0.12) * high);
  sizes.push([columns * (w + gap) - gap, high + nameRoom(level)]);
}

// How many of so many boxes stand in a row where they get largest on a map.
function fullest(count, width, height) {
  let best = 1, most = 0;
  for (let columns = 1; columns <= count; columns++) {
    const scale = Math.min(1 / (columns * width), HEIGHT / (Math.ceil(count / columns) * height));
    if (scale > most * 1.0001) [best, most] = [columns, scale];
  }
  return best;
}

// Left upper corner of every domain of every level; x and y in turn.
const corners = members.map((_, level) => new Float32Array(2 * (level ? members[level].length : numNodes)));
for (let level = numLevels - 1; level > 0; level--) {
  const [w, h] = sizes[level - 1], gap = gapOf(level);
  members[level].forEach((list, d) => list.forEach((child, i) => {
    corners[level - 1][2 * child] = corners[level][2 * d] + (i % across[level]) * (w + gap);
    corners[level - 1][2 * child + 1] = corners[level][2 * d + 1] + nameRoom(level) + Math.floor(i / across[level]) * (h + gap);
  }));
}
const [worldWidth, worldHeight] = sizes.at(-1);

function gpuCorner(gpu) {
  const node = nodeOfGpu[gpu], i = gpu - firstGpu[node];
  return [corners[0][2 * node] + (i % across[0]), corners[0][2 * node + 1] + Math.floor(i / across[0])];
}

// The GPU at a place of the map, or -1.
function gpuAt(x, y) {
  let domain = 0;
  for (let level = numLevels - 1; level > 0; level--) {
    const [w, h] = sizes[level - 1], gap = gapOf(level);
    const left = x - corners[level][2 * domain], top = y - corners[level][2 * domain + 1] - nameRoom(level);
    const column = Math.floor(left / (w + gap)), row = Math.floor(top / (h + gap));
    if (column < 0 || column >= across[level] || row < 0) return -1;
    domain = members[level][domain][row * across[level] + column];
    if (domain === undefined) return -1;
  }
  const left = x - corners[0][2 * domain], top = y - corners[0][2 * domain + 1];
  const i = Math.floor(top) * across[0] + Math.floor(left);
  if (left < 0 || top < 0 || left >= across[0] || i >= machine.gpus[domain]) return -1;
  return firstGpu[domain] + i;
}
