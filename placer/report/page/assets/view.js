// What part of the machine both maps show.

const MOST_ZOOM = Math.max(6, worldWidth / pitch / 8); // then eight GPUs lie side by side
const maps = sides.map((_, s) => $("map-" + (sides.length === 1 ? 1 : s)));
const view = { zoom: 1, x: worldWidth / 2, y: worldHeight / 2 };

// Pixels on the screen of one of the layout; 0 of a map that is not shown.
function scaleOf(map) {
  const { width, height } = map.getBoundingClientRect();
  return view.zoom * Math.min(width / worldWidth, height / worldHeight);
}

// What is drawn as a cell: a GPU, or where that would be too small to see the nodes,
// the columns or the panels that are not. -1 for GPUs.
const LEAST_CELL = 3;
function cellLevel(scale) {
  if (pitch * scale >= LEAST_CELL) return -1;
  const seen = boxes.findIndex((level) => level.every(([, , width, height]) => Math.min(width, height) * scale >= LEAST_CELL));
  return seen < 0 ? 2 : seen;
}

const cellBox = (level, index) => (level < 0 ? [...gpuCorner(index), pitch, pitch] : boxes[level][index]);
const cellOfGpu = (level, gpu) => {
  const node = nodeOfGpu[gpu];
  return [gpu, node, columnOf[node], panelOf[columnOf[node]]][level + 1];
};

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

// Half the width and height of what is seen; a map may be wider than the part it shows.
function halves() {
  const { width, height } = maps[after].getBoundingClientRect(), scale = scaleOf(maps[after]) || 1;
  return [width / scale / 2, height / scale / 2];
}

const isSeen = ([left, top, width, height], [halfX, halfY]) => left + width >= view.x - halfX && left <= view.x + halfX
  && top + height >= view.y - halfY && top <= view.y + halfY;

function bringIntoView(gpu) {
  if (!isSeen(cellBox(-1, gpu), halves().map((half) => half * 0.9))) moveView(view.zoom, ...gpuCorner(gpu));
}
