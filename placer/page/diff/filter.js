// Which pieces of work the three fields ask for; null stands for a text without meaning.

const GROUP_AXES = { tp: "dense", cp: "dense", pp: "dense", dp: "dense", ep: "expert", etp: "expert", edp: "expert" };
const FIXED = { dense: ["tp", "cp", "pp", "dp"], expert: ["etp", "ep", "pp", "edp"] };

// "37, 64-127" as a test of a number.
function numbers(text) {
  const ranges = [];
  for (const part of text.split(/[\s,]+/).filter(Boolean)) {
    const found = /^(\d+)(?:-(\d+))?$/.exec(part);
    if (!found) return null;
    ranges.push([Number(found[1]), Number(found[2] ?? found[1])]);
  }
  return (value) => ranges.some(([low, high]) => value >= low && value <= high);
}

function rankTest(text) {
  const test = numbers(text);
  return test && ((w) => test(work.old_rank[w] === NOWHERE ? work.new_rank[w] : work.old_rank[w]));
}

function hostTest(text) {
  const wanted = text.toLowerCase();
  const named = machine.nodes.map((node, i) =>
    [node, ...machine.homes[machine.home_of_node[i]]].some((name) => name.toLowerCase().includes(wanted)));
  return (w) => ["old", "new"].some((side) => {
    const node = work[side + "_node"][w];
    return node !== NOWHERE && (named[node] || seatName(side, w).toLowerCase() === wanted);
  });
}

// "tp@12": all that agree with rank 12 on the other axes.
function groupOfRank(axis, rank) {
  const first = work.old_rank.indexOf(rank);
  if (!(axis in GROUP_AXES) || first < 0) return null;
  const fixed = FIXED[GROUP_AXES[axis]].filter((other) => other !== axis && other in coordinates);
  return (w) => fixed.every((other) => coordinates[other][w] === coordinates[other][first]);
}

function groupTest(text) {
  const tests = [];
  for (const part of text.toLowerCase().replace(/\s*([=@,])\s*/g, "$1").split(/\s+/).filter(Boolean)) {
    const found = /^([a-z]+)([=@])(.+)$/.exec(part);
    if (!found) return null;
    const [, axis, sign, value] = found;
    let test = null;
    if (sign === "@") test = /^\d+$/.test(value) ? groupOfRank(axis, Number(value)) : null;
    else if (axis in coordinates) {
      const wanted = numbers(value);
      test = wanted && ((w) => wanted(coordinates[axis][w]));
    }
    if (!test) return null;
    tests.push(test);
  }
  return (w) => tests.every((test) => test(w));
}

const FIELDS = { "by-rank": rankTest, "by-host": hostTest, "by-group": groupTest };

// Whether each piece of work is asked for. Fields that mean nothing are marked.
function wanted() {
  const tests = [];
  for (const [id, parse] of Object.entries(FIELDS)) {
    const field = document.getElementById(id);
    const text = field.value.trim();
    const test = text ? parse(text) : () => true;
    field.setAttribute("aria-invalid", String(test === null));
    tests.push(test ?? (() => false));
  }
  return work.old_rank.map((_, w) => tests.every((test) => test(w)));
}

function isFiltered() {
  return Object.keys(FIELDS).some((id) => document.getElementById(id).value.trim());
}
