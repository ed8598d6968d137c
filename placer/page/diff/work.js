// Pieces of work: a rank before, the rank after that does the same, and their seats.

const { machine, work, coordinates } = data;
const AXES = Object.keys(coordinates);
const NOWHERE = -1;
const WORDS = { dp: "DP replica", pp: "PP stage", cp: "CP rank", tp: "TP rank", ep: "EP rank", etp: "expert TP rank", edp: "expert DP rank" };

const KINDS = [
  { name: "stays", text: "stays on its GPU" },
  { name: "inside", text: "moves inside its " + machine.home_tier },
  { name: "away", text: "moves to another " + machine.home_tier },
  { name: "stopped", text: "stops" },
  { name: "started", text: "starts" },
];

function kindOf(w) {
  if (work.new_rank[w] === NOWHERE) return 3;
  if (work.old_rank[w] === NOWHERE) return 4;
  const [here, there] = [work.old_node[w], work.new_node[w]];
  if (here === there && work.old_gpu[w] === work.new_gpu[w]) return 0;
  return machine.home_of_node[here] === machine.home_of_node[there] ? 1 : 2;
}

const kinds = work.old_rank.map((_, w) => kindOf(w));

// Where one side has a piece of work: node * stride + gpu -> work.
const stride = Math.max(1, ...machine.gpus);

function seatsOf(side) {
  const found = new Int32Array(machine.nodes.length * stride).fill(NOWHERE);
  work[side + "_node"].forEach((node, w) => {
    if (node !== NOWHERE) found[node * stride + work[side + "_gpu"][w]] = w;
  });
  return found;
}

const seats = { old: seatsOf("old"), new: seatsOf("new") };

function seatName(side, w) {
  const node = work[side + "_node"][w];
  return node === NOWHERE ? "" : machine.nodes[node] + ":" + work[side + "_gpu"][w];
}

function who(w) {
  const [rank, other] = [work.old_rank[w], work.new_rank[w]];
  if (rank === NOWHERE) return "new rank " + other;
  return "rank " + rank + (other !== NOWHERE && other !== rank ? " (new number " + other + ")" : "");
}

function where(w) {
  return AXES.map((axis) => axis + " " + coordinates[axis][w]).join(" \u00b7 ");
}

// One sentence about a piece of work.
function told(w) {
  const what = [who(w), where(w)].filter(Boolean).join(", ");
  const [here, there] = [seatName("old", w), seatName("new", w)];
  if (!there) return what + ": stops, was on " + here;
  if (!here) return what + ": starts on " + there;
  return what + ": " + (here === there ? "stays on " + here : here + " \u2192 " + there);
}
