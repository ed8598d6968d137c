// What the page was given: the machine, the sides, and the groups of every rank.

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

// Whole numbers of 32 bits from base64.
function decoded(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return new Int32Array(bytes.buffer);
}

// Names are short ones; `full` has the others, of each level whose names are shortened.
const machine = { ...data.machine, parents: data.machine.parents.map(decoded), gpus: decoded(data.machine.gpus) };
const numNodes = machine.gpus.length;
const firstGpu = new Int32Array(numNodes + 1);
for (let n = 0; n < numNodes; n++) firstGpu[n + 1] = firstGpu[n] + machine.gpus[n];
const numGpus = firstGpu[numNodes];
const nodeOfGpu = new Int32Array(numGpus);
for (let n = 0; n < numNodes; n++) nodeOfGpu.fill(n, firstGpu[n], firstGpu[n + 1]);

// domainOf[level][node]; the last entry is the whole machine.
const domainOf = [Int32Array.from({ length: numNodes }, (_, n) => n)];
for (const parent of machine.parents) domainOf.push(domainOf.at(-1).map((d) => parent[d]));
domainOf.push(new Int32Array(numNodes));
const levelNames = [...machine.levels, machine.whole];

const sides = data.sides.map((side) => {
  const seats = decoded(side.seats);
  const rankAt = new Int32Array(numGpus).fill(-1);
  seats.forEach((gpu, rank) => { rankAt[gpu] = rank; });
  const axes = new Map(side.axes.map(([axis, size, stride, word]) => [axis, { size, stride, word }]));
  return { ...side, seats, rankAt, axes };
});
const after = sides.length - 1;

// Role and instance of a rank of a workload: roles are [name, instances, ranks of one].
function roleOf(side, rank) {
  let first = 0;
  for (const [index, [name, instances, ranks]] of side.roles.entries()) {
    if (rank < first + instances * ranks) return { index, name, instance: Math.floor((rank - first) / ranks) };
    first += instances * ranks;
  }
  return null;
}

const coordinate = (side, axis, rank) => {
  const { size, stride } = side.axes.get(axis);
  return Math.floor(rank / stride) % size;
};

// The ranks of a rank's group of an axis.
function group(side, axis, rank) {
  const { size, stride } = side.axes.get(axis);
  const first = rank - coordinate(side, axis, rank) * stride;
  return Array.from({ length: size }, (_, i) => first + i * stride);
}

const domainOfRank = (side, rank, level) => domainOf[level][nodeOfGpu[side.seats[rank]]];
const domainsOf = (side, ranks, level) => new Set(ranks.map((r) => domainOfRank(side, r, level)));

// The innermost level with all ranks of every rank's group of an axis in one domain.
function reach(side, axis) {
  const { size, stride } = side.axes.get(axis);
  const found = new Uint8Array(side.world);
  for (let first = 0; first < side.world; first++) {
    if (Math.floor(first / stride) % size) continue;
    const own = nodeOfGpu[side.seats[first]];
    let level = 0;
    for (let i = 1; i < size; i++) {
      const node = nodeOfGpu[side.seats[first + i * stride]];
      while (domainOf[level][node] !== domainOf[level][own]) level++;
    }
    for (let i = 0; i < size; i++) found[first + i * stride] = level;
  }
  return found;
}

// The number of each rank's group when groups differ in `over`, counted by first rank.
const numbering = new Map();
function groupNumbers(side, over) {
  const key = over.join() + sides.indexOf(side);
  if (!numbering.has(key)) {
    const axes = over.filter((axis) => side.axes.has(axis)).map((axis) => side.axes.get(axis));
    const number = new Int32Array(side.world);
    let count = 0;
    for (let rank = 0; rank < side.world; rank++) {
      let first = rank;
      for (const { size, stride } of axes) first -= (Math.floor(rank / stride) % size) * stride;
      number[rank] = first === rank ? count++ : number[first];
    }
    numbering.set(key, number);
  }
  return numbering.get(key);
}

// Seconds of one operation of a rank's group, or null.
function groupSeconds(side, axis, rank) {
  const found = side.groups?.[axis];
  if (!found) return null;
  found.index ??= found.of_group ? decoded(found.of_group) : null;
  return found.seconds[found.index ? found.index[groupNumbers(side, found.over)[rank]] : 0];
}

// The rank of another side that does the same work, or -1.
const toNew = data.partners ? decoded(data.partners) : null;
const toOld = toNew && new Int32Array(sides[after].world).fill(-1);
if (toNew) toNew.forEach((rank, old) => { if (rank >= 0) toOld[rank] = old; });
function partner(rank, from, to) {
  if (from === to || rank < 0) return rank;
  if (!toNew) return rank;
  return (from === 0 ? toNew : toOld)[rank];
}

const number = (value) => value.toLocaleString("en-US");
const plural = (count, word) => number(count) + " " + (count === 1 ? word : several(word));
// As `plural` of placer/base/units.py.
function several(word) {
  if (/leaf$/.test(word)) return word.slice(0, -1) + "ves";
  if (/(ss|us|x|ch|sh)$/.test(word)) return word + "es";
  return /[s\d]$/.test(word) ? word : word.replace(/([^aeiou])y$/, "$1ie") + "s";
}
function seconds(value) {
  const unit = value >= 1 ? [1, "s"] : value >= 1e-3 ? [1e3, "ms"] : [1e6, "\u00b5s"];
  return Number((value * unit[0]).toPrecision(4)) + " " + unit[1];
}
