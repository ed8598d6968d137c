// Tables of the difference. Cells are texts, or elements such as those of `number`.

const STEP = 50;
const NONE = "\u2013";

function cells(kind, values) {
  const row = element("tr");
  for (const value of values) {
    const cell = element(kind);
    if (kind === "th") cell.setAttribute("scope", "col");
    cell.append(value);
    if (isAmount(value)) cell.className = "amount";
    row.append(cell);
  }
  return row;
}

function isAmount(value) {
  return value instanceof Element && value.matches("data, .change");
}

// A table of `count` rows, made as they are shown; a button shows more of them.
function table(head, count, rowOf, isShort = false) {
  const box = element("div", "", { class: "table" });
  const made = element("table");
  const body = element("tbody");
  const button = element("button", "", { type: "button" });
  const heads = element("thead");
  const amounts = count ? rowOf(0).map(isAmount) : [];
  heads.append(cells("th", head));
  heads.querySelectorAll("th").forEach((cell, i) => { if (amounts[i]) cell.className = "amount"; });
  made.append(heads, body);
  let shown = 0;
  function more(step) {
    const last = Math.min(count, shown + step);
    for (; shown < last; shown++) body.append(cells("td", rowOf(shown)));
    button.textContent = "Show more (" + FORMATS.count(count - shown) + " left)";
    button.hidden = shown >= count;
  }
  button.addEventListener("click", () => more(10 * STEP));
  more(isShort ? 12 : STEP);
  box.append(made, button);
  return box;
}

function changed(oldValue, newValue, absolute = false) {
  return element("span", change(oldValue, newValue, absolute), { class: "change" });
}

// Old, new and change of a pair in the difference; `key` inside of each, if any.
function pair(path, format, key) {
  const inside = key === undefined ? [] : [key];
  const [oldSide, newSide] = ["old", "new"].map((side) => at([...path, side]));
  const shown = ["old", "new"].map((side) =>
    (at([...path, side]) === null ? element("span", NONE, { class: "change" }) : number([...path, side, ...inside], format)));
  const amounts = [oldSide, newSide].map((side) => (key === undefined || side === null ? side : side[key]));
  return [...shown, amounts.includes(null) ? "" : changed(...amounts, format === "count")];
}

function put(id, ...parts) {
  document.getElementById(id).append(...parts);
}

function section(id, parts, none) {
  put(id, ...(parts.length ? parts : [element("p", none, { class: "hint" })]));
}

function movedTable(chosen) {
  const rows = data.diff.moved.map((_, i) => i).filter((i) => chosen[data.diff.moved[i].rank]);
  const renumbered = data.diff.moved.some((move) => move.rank !== move.new_rank);
  const head = ["Rank", ...(renumbered ? ["New rank"] : []), ...AXES, "From", "To", ""];
  return table(head, rows.length, (row) => {
    const i = rows[row];
    const move = data.diff.moved[i];
    return [
      number(["moved", i, "rank"], "plain"),
      ...(renumbered ? [number(["moved", i, "new_rank"], "plain")] : []),
      ...AXES.map((axis) => String(coordinates[axis][move.rank])),
      move.old,
      move.new,
      KINDS[kinds[move.rank]].text,
    ];
  }, true);
}

function homeName(node) {
  return machine.homes[machine.home_of_node[node]].at(-1);
}

// Rows of the folded moves, those with a rank that is asked for.
function foldTable(axis, chosen) {
  const path = axis === "dp" ? ["folded"] : ["folded_by_axis", axis];
  const index = axis === "dp" ? "replica" : "index";
  const all = at(path);
  const tier = data.diff.folded_by;
  const asked = new Set(data.diff.moved.filter((move) => chosen[move.rank]).map(({ rank }) =>
    [coordinates[axis]?.[rank] ?? null, homeName(work.old_node[rank]), homeName(work.new_node[rank])].join("\n")));
  const rows = all.map((_, i) => i).filter((i) => asked.has([all[i][index], all[i].old, all[i].new].join("\n")));
  return table([WORDS[axis] ?? axis, "Nodes", "From " + tier, "To " + tier, "Ranks"], rows.length, (row) => {
    const i = rows[row];
    return [
      all[i][index] === null ? NONE : number([...path, i, index], "plain"),
      number([...path, i, "nodes"], "count"),
      all[i].old,
      all[i].new,
      number([...path, i, "ranks"], "count"),
    ];
  }, true);
}

const COSTS = [
  ["step_time_s", "Step time", "seconds"],
  ["exposed_scale_out_s", "Exposed scale-out", "seconds"],
  ["hop_cost", "Hop cost", "count"],
  ["exposed_s", "Exposed", "seconds"],
  ["crossings", "Groups in one", "count"],
  ["traffic_bytes", "Traffic at", "bytes"],
];

// Paths of all pairs of old and new below one in the difference.
function pairsBelow(path) {
  const value = at(path);
  if ("old" in value && "new" in value && typeof value.old === "number") return [path];
  return Object.keys(value).flatMap((key) => pairsBelow([...path, key]));
}

function costTable() {
  const rows = COSTS.filter(([key]) => key in data.diff.cost).flatMap(([key, label, format]) =>
    pairsBelow(["cost", key]).map((path) => [path, [label, path[3]].filter(Boolean).join(" "), path[2] ?? "", format]));
  const made = table(["", "Axis", "Before", "After", "Change"], rows.length,
    (i) => [rows[i][1], rows[i][2], ...pair(rows[i][0], rows[i][3])]);
  const { noise, cost } = data.diff;
  const step = cost.step_time_s;
  const note = noise?.within && step && step.old !== step.new
    ? [element("p", `The change of the step time is within the noise of the model (${noise.relative * 100}%).`, { class: "hint" })]
    : [];
  return rows.length ? [made, ...note] : [];
}

function pathTable() {
  const rows = data.diff.critical_path;
  const made = table(["Operation", "Before", "After", "Change"], rows.length, (i) =>
    [rows[i].operation, ...pair(["critical_path", i], "seconds", "seconds")]);
  return rows.length ? [made] : [];
}

function linkTable() {
  const rows = data.diff.hottest_links;
  const made = table(["Link", "Direction", "Into tier", "Bytes before", "Bytes after", "Busy before", "Busy after", "Change"],
    rows.length, (i) => [
      rows[i].domain, rows[i].direction, rows[i].tier,
      ...pair(["hottest_links", i], "bytes", "bytes").slice(0, 2),
      ...pair(["hottest_links", i], "seconds", "busy_s"),
    ]);
  const hint = element("p", NONE + ": not among the busiest links that are listed for that placement.", { class: "hint" });
  return rows.length ? [made, hint] : [];
}

function staysInTier(row) {
  return row.old_tier === row.new_tier;
}

function groupTables() {
  const axes = Object.keys(data.diff.groups);
  if (!axes.length) return [];
  const counts = table(["Axis", "Groups", "In another domain", "Entered a lower tier", "Left for a higher tier"],
    axes.length, (i) => [axes[i], ...["groups", "changed_domain", "entered", "left"].map((key) =>
      number(["groups", axes[i], key], "count"))]);
  const rows = axes.flatMap((axis) => data.diff.groups[axis].domains.map((_, i) => ["groups", axis, "domains", i]));
  // First the groups that entered or left a domain, then those that went along with a move.
  rows.sort((one, other) => Number(staysInTier(at(one))) - Number(staysInTier(at(other))));
  const named = table(["Axis", "From", "", "To", "", "Groups"], rows.length, (i) => {
    const row = at(rows[i]);
    return [rows[i][1], row.old_tier, row.old, row.new_tier, row.new, number([...rows[i], "groups"], "count")];
  }, true);
  return rows.length ? [counts, named] : [counts];
}

function facts(pairs) {
  const list = element("dl");
  for (const [term, ...values] of pairs) {
    const value = element("dd");
    value.append(...values);
    list.append(element("dt", term), value);
  }
  return list;
}

function names(term, list) {
  const box = element("details");
  box.append(element("summary", term + " (" + FORMATS.count(list.length) + ")"), element("p", list.join(" "), { class: "names" }));
  return box;
}

function restartFacts() {
  const { restart, nodes_gained: gained, nodes_lost: lost } = data.diff;
  const rows = [["Nodes whose ranks changed", number(["restart", "nodes_changed"], "count")]];
  for (const [key, term] of [["ranks_started", "Ranks that start"], ["ranks_stopped", "Ranks that stop"]]) {
    if (restart[key]) rows.push([term, number(["restart", key], "count")]);
  }
  for (const way of Object.keys(restart.state_bytes ?? {})) {
    const of = (key) => number(["restart", "state_bytes", way, key], "bytes");
    const term = way === "to_new" ? "State that nodes must receive" : "The same for the way back";
    rows.push([term, of("total"), " (parameters ", of("parameters"), ", optimizer ", of("optimizer"), ")"]);
  }
  const lists = [["Nodes whose ranks changed", restart.nodes], ["Nodes gained", gained], ["Nodes lost", lost]];
  return [facts(rows), ...lists.filter(([, list]) => list.length).map((entry) => names(...entry))];
}
