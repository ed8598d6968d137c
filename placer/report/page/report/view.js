// What part of the machine both maps show.

const MOST_ZOOM = Math.max(6, worldWidth / 8); // then eight GPUs lie side by side
const view = { zoom: 1, x: worldWidth / 2, y: worldHeight / 2 };

// Pixels of a unit of the map on a canvas so wide and high; frames and marks need the edge.
const EDGE = 7;
const scaleOf = (width, height) => view.zoom * Math.min((width - 2 * EDGE) / worldWidth, (height - 2 * EDGE) / worldHeight);

// What is drawn as a cell: a GPU, or where that would be too small to see, the domains
// of the innermost level that are not. -1 for GPUs.
const LEAST_CELL = 3;
function cellLevel(scale) {
  if (scale >= LEAST_CELL) return -1;
  const seen = sizes.findIndex((size) => Math.min(...size) * scale >= LEAST_CELL);
  return Math.min(seen < 0 ? machine.levels.length : seen, machine.levels.length - 1);
}

// Left, top, width and height of what such cells show, in units of the map.
function cellBox(level, index) {
  if (level < 0) return [...gpuCorner(index), 1, 1];
  const room = nameRoom(level), [width, height] = sizes[level];
  return [corners[level][2 * index], corners[level][2 * index + 1] + room, width, height - room];
}
const cellOf = (side, level, rank) => (level < 0 ? side.seats[rank] : domainOfRank(side, rank, level));

function moveView(zoom, x, y) {
  view.zoom = Math.min(MOST_ZOOM, Math.max(1, zoom));
  const halfX = worldWidth / view.zoom / 2, halfY = worldHeight / view.zoom / 2;
  view.x = Math.min(worldWidth - halfX, Math.max(halfX, x));
  view.y = Math.min(worldHeight - halfY, Math.max(halfY, y));
}

// Zoom so that a place stays where it is.
function zoomAt(factor, x, y) {
  const wanted = Math.min(MOST_ZOOM, Math.max(1, view.zoom * factor));
  const ratio = view.zoom / wanted;
  moveView(wanted, x + (view.x - x) * ratio, y + (view.y - y) * ratio);
}

const showAll = () => moveView(1, worldWidth / 2, worldHeight / 2);

// Whether a GPU is in the part that is shown.
function isSeen(gpu) {
  const [x, y] = gpuCorner(gpu);
  return Math.abs(x - view.x) <= worldWidth / view.zoom / 2 && Math.abs(y - view.y) <= worldHeight / view.zoom / 2;
}

function bringIntoView(gpu) {
  const [x, y] = gpuCorner(gpu);
  const halfX = worldWidth / view.zoom / 2, halfY = worldHeight / view.zoom / 2;
  if (Math.abs(x - view.x) > halfX * 0.9 || Math.abs(y - view.y) > halfY * 0.9) moveView(view.zoom, x, y);
}
