// Fills the page and follows the reader.

let chosen = wanted();

function refresh() {
  chosen = wanted();
  const count = chosen.filter(Boolean).length;
  const moved = data.diff.moved.filter((move) => chosen[move.rank]).length;
  document.getElementById("count").textContent = isFiltered()
    ? FORMATS.count(count) + " ranks, " + FORMATS.count(moved) + " of them move" : "";
  const section = document.getElementById("moved");
  section.replaceChildren(section.firstElementChild);
  section.append(moved ? movedTable(chosen) : element("p", "None.", { class: "hint" }));
  showFolds();
  redraw();
}

// Draw once before the next frame, however often it is asked for.
let isDue = false;

function redraw() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    draw(chosen);
  });
}

function tell(event) {
  const tip = document.getElementById("tip");
  const text = cursor === null ? "" : cursorText();
  if (text) document.getElementById("told").textContent = text;
  tip.hidden = !text || event === null;
  if (tip.hidden) return;
  tip.textContent = text;
  const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
  tip.style.left = Math.max(0, left) + "px";
  tip.style.top = event.clientY + 18 + "px";
}

function cursorText() {
  if (cursor.work !== NOWHERE) return told(cursor.work);
  return machine.nodes[cursor.seat[0]] + ":" + cursor.seat[1] + " is free in this placement";
}

function moveTo(side, seat, event) {
  const found = seat && seats[side][seat[0] * stride + seat[1]];
  cursor = seat && { side, seat, work: found };
  redraw();
  tell(event);
}

function filterByCursor() {
  if (cursor === null || cursor.work === NOWHERE) return;
  const rank = work.old_rank[cursor.work] === NOWHERE ? work.new_rank[cursor.work] : work.old_rank[cursor.work];
  document.getElementById("by-rank").value = String(rank);
  refresh();
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function pressed(side, event) {
  if (event.key in ARROWS) {
    event.preventDefault();
    const seat = cursor === null ? [nodesOf[0][0], 0] : nextSeat(cursor.seat, ...ARROWS[event.key]);
    moveTo(side, seat, null);
  } else if (event.key === "Enter") filterByCursor();
  else if (event.key === "Escape") moveTo(side, null, null);
}

function follow(side, canvas) {
  canvas.addEventListener("pointermove", (event) => moveTo(side, seatAt(plan, event.offsetX, event.offsetY), event));
  canvas.addEventListener("pointerleave", () => moveTo(side, null, null));
  canvas.addEventListener("click", filterByCursor);
  canvas.addEventListener("keydown", (event) => pressed(side, event));
}

function fillHeader() {
  const { old: before, new: after } = data.diff;
  for (const key of ["topology", "job"]) {
    const names = [before[key].name, after[key].name];
    const isSame = before[key].sha256 === after[key].sha256;
    put("inputs", key + " ", element("b", isSame ? names[0] : names.join(" \u2192 ")), " \u00b7 ");
  }
  const sizes = before.world_size === after.world_size ? ["old"] : ["old", "new"];
  sizes.forEach((side, i) => put("inputs", i ? " \u2192 " : "", number([side, "world_size"], "count")));
  put("inputs", " ranks");
  const { verdict } = data.diff;
  put("verdict", verdict[0].toUpperCase() + verdict.slice(1) + ".");
}

function card(term, ...parts) {
  const box = element("div", "", { class: "card" });
  box.append(element("span", term, { class: "term" }), ...parts);
  put("cards", box);
}

function fillCards() {
  for (const [key, label, format] of COSTS.slice(0, 3)) {
    if (!(key in data.diff.cost)) continue;
    const { old: was, new: is } = data.diff.cost[key];
    if (!was && !is) continue; // a job without times, or without weights
    const [before, after, difference] = pair(["cost", key], format);
    card(label, before, " \u2192 ", after, " ", difference);
  }
  card("Ranks moved", number(["ranks_moved"], "count"), " of ", number(["ranks_compared"], "count"));
  card("Nodes changed", number(["restart", "nodes_changed"], "count"));
  if (data.diff.restart.state_bytes) card("State to move", number(["restart", "state_bytes", "to_new", "total"], "bytes"));
}

function fillFolds() {
  const axes = ["dp", ...Object.keys(data.diff.folded_by_axis)];
  const choice = element("select", "", { id: "fold-axis" });
  for (const axis of axes) choice.append(element("option", WORDS[axis] ?? axis, { value: axis }));
  const label = element("label", "By ");
  label.append(choice);
  choice.addEventListener("change", showFolds);
  const place = element("div", "", { id: "fold-table" });
  section("folds", data.diff.folded.length ? [label, place] : [], "No rank moved.");
}

// The folded moves of the axis that is chosen; whole rows, however few of their ranks are asked for.
function showFolds() {
  const place = document.getElementById("fold-table");
  if (place) place.replaceChildren(foldTable(document.getElementById("fold-axis").value, chosen));
}

function start() {
  const colour = document.getElementById("colour");
  colour.append(element("option", "what moves", { value: "" }));
  for (const axis of AXES) colour.append(element("option", WORDS[axis] ?? axis, { value: axis }));
  const cell = document.getElementById("cell");
  cell.value = bestCell(canvases.old.parentElement.clientWidth);
  cell.defaultValue = cell.value;
  fillHeader();
  fillCards();
  legend();
  fillFolds();
  refresh();
  draw(chosen); // at once: a page that is not on a screen has no frames
  section("cost", costTable(), "The two placements have no score in common.");
  section("path", pathTable(), "Not in both scores.");
  section("links", linkTable(), "Not in both scores.");
  section("groups", groupTables(), "The placements do not record their axes.");
  put("restart", ...restartFacts());
  const form = document.getElementById("filters");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { legend(); refresh(); }));
  for (const id of Object.keys(FIELDS)) document.getElementById(id).addEventListener("input", refresh);
  colour.addEventListener("change", () => { legend(); redraw(); });
  cell.addEventListener("input", () => { legend(); redraw(); });
  window.addEventListener("resize", redraw);
  for (const query of ["print", "(prefers-color-scheme: dark)"]) {
    window.matchMedia(query).addEventListener("change", redraw);
  }
  for (const [side, canvas] of Object.entries(canvases)) follow(side, canvas);
}

start();
