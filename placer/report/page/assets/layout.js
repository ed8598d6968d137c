// Where everything lies on a map, in the pixels of its layout: nodes are rows of columns.

const HUNDREDTH = 0.01;
const { pitch, across, lines, size: [worldWidth, worldHeight] } = machine;

// Boxes as [left, top, width, height]: of nodes, of columns, of the panels around them.
const boxes = [[], [], []];
const columnOf = new Int32Array(numNodes), panelOf = [], firstNode = [];
{
  const rows = decoded(machine.columns), panels = decoded(machine.panels);
  for (let i = 0; i < panels.length; i += 4) boxes[2].push([...panels.subarray(i, i + 4)].map((length) => length * HUNDREDTH));
  for (let i = 0; i < rows.length; i += 4) {
    const [left, top] = [rows[i] * HUNDREDTH, rows[i + 1] * HUNDREDTH];
    firstNode.push(boxes[0].length);
    for (let row = 0; row < rows[i + 2]; row++) {
      columnOf[boxes[0].length] = boxes[1].length;
      boxes[0].push([left, top + row * lines * pitch, across * pitch, (lines > 1 ? lines - 1 : 1) * pitch]);
    }
    boxes[1].push([left, top, across * pitch, rows[i + 2] * lines * pitch]);
    panelOf.push(rows[i + 3]);
  }
}

function gpuCorner(gpu) {
  const node = nodeOfGpu[gpu], i = gpu - firstGpu[node];
  return [boxes[0][node][0] + (i % across) * pitch, boxes[0][node][1] + Math.floor(i / across) * pitch];
}

const holds = ([left, top, width, height], x, y) => x >= left && y >= top && x < left + width && y < top + height;

// The GPU at a place of the map, or -1.
function gpuAt(x, y) {
  const column = boxes[1].findIndex((box) => holds(box, x, y));
  if (column < 0) return -1;
  const node = firstNode[column] + Math.floor((y - boxes[1][column][1]) / (lines * pitch));
  if (!boxes[0][node] || !holds(boxes[0][node], x, y)) return -1;
  const i = Math.floor((y - boxes[0][node][1]) / pitch) * across + Math.floor((x - boxes[0][node][0]) / pitch);
  return i < machine.gpus[node] ? firstGpu[node] + i : -1;
}
