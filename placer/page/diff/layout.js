// Where cells lie: domains are columns, their nodes rows, GPUs cells beside each other.
// Columns that do not fit beside each other go on below.

const GAP = 3;
const LABEL = 14;

const nodesOf = machine.homes.map(() => []);
machine.home_of_node.forEach((home, node) => nodesOf[home].push(node));
const rowOf = new Int32Array(machine.nodes.length);
for (const nodes of nodesOf) nodes.forEach((node, row) => { rowOf[node] = row; });
const tallest = Math.max(1, ...nodesOf.map((nodes) => nodes.length));

function layout(width, cell) {
  const column = stride * cell + GAP;
  const across = Math.max(1, Math.floor((width - GAP) / column));
  const band = tallest * cell + LABEL + GAP;
  return { cell, column, across, band, height: Math.ceil(machine.homes.length / across) * band + GAP };
}

// The largest cells with which both pictures fit a screen.
function bestCell(width) {
  for (let cell = 16; cell > 3; cell--) {
    if (layout(width, cell).height <= 330) return cell;
  }
  return 3;
}

function corner(plan, node, gpu) {
  const home = machine.home_of_node[node];
  return [
    GAP + (home % plan.across) * plan.column + gpu * plan.cell,
    Math.floor(home / plan.across) * plan.band + LABEL + rowOf[node] * plan.cell,
  ];
}

// The seat under a point, or null.
function seatAt(plan, x, y) {
  const home = Math.floor(y / plan.band) * plan.across + Math.floor((x - GAP) / plan.column);
  if (x < GAP || x >= GAP + plan.across * plan.column || !nodesOf[home]) return null;
  const gpu = Math.floor(((x - GAP) % plan.column) / plan.cell);
  const row = Math.floor(((y % plan.band) - LABEL) / plan.cell);
  const node = row < 0 ? undefined : nodesOf[home][row];
  return node === undefined || gpu >= machine.gpus[node] ? null : [node, gpu];
}

// The next seat in a direction, from a seat.
function nextSeat([node, gpu], dx, dy) {
  const home = machine.home_of_node[node];
  if (dy) {
    const other = nodesOf[home][rowOf[node] + dy];
    return other === undefined ? [node, gpu] : [other, Math.min(gpu, machine.gpus[other] - 1)];
  }
  if (gpu + dx >= 0 && gpu + dx < machine.gpus[node]) return [node, gpu + dx];
  const beside = nodesOf[home + dx];
  if (!beside) return [node, gpu];
  const other = beside[Math.min(rowOf[node], beside.length - 1)];
  return [other, dx > 0 ? 0 : machine.gpus[other] - 1];
}
