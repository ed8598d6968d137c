// What part of the machine both maps show.

const MOST_ZOOM = Math.max(6, worldWidth / 8); // then eight GPUs lie side by side
const view = { zoom: 1, x: worldWidth / 2, y: worldHeight / 2 };

// Pixels of a unit of the map on a canvas so wide and high.
const scaleOf = (width, height) => view.zoom * Math.min(width / worldWidth, height / worldHeight) * 0.985;

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

function bringIntoView(gpu) {
  const [x, y] = gpuCorner(gpu);
  const halfX = worldWidth / view.zoom / 2, halfY = worldHeight / view.zoom / 2;
  if (Math.abs(x - view.x) > halfX * 0.9 || Math.abs(y - view.y) > halfY * 0.9) moveView(view.zoom, x, y);
}
