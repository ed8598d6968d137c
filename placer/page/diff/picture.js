// The two pictures. A cell that moves has a dot where there is room for one; where colours
// mean an axis, those that stay are pale.

const canvases = { old: document.getElementById("picture-old"), new: document.getElementById("picture-new") };
const DOTTED = 7; // cells smaller than this have no dot
const PALE = 0.4;
let plan = null;
let cursor = null;

function theme(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

function colourOf(w, axis, themed) {
  return axis === "" ? themed.kinds[kinds[w]] : data.colours[axis][coordinates[axis][w]];
}

function prepare(canvas) {
  const scale = window.devicePixelRatio || 1;
  const width = canvas.parentElement.clientWidth;
  canvas.style.height = plan.height + "px";
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(plan.height * scale);
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, plan.height);
  return pen;
}

function opacity(w, axis, chosen) {
  if (w === NOWHERE) return 1;
  if (!chosen[w]) return 0.15;
  return axis !== "" && kinds[w] === 0 ? PALE : 1;
}

function drawCells(pen, side, chosen, axis, themed) {
  const inner = Math.max(1, plan.cell - (plan.cell > 3 ? 1 : 0));
  const dot = plan.cell >= DOTTED ? Math.max(2, Math.round(inner / 3)) : 0;
  for (let seat = 0; seat < seats[side].length; seat++) {
    const node = Math.floor(seat / stride);
    const gpu = seat % stride;
    if (gpu >= machine.gpus[node]) continue;
    const w = seats[side][seat];
    const [x, y] = corner(plan, node, gpu);
    pen.globalAlpha = opacity(w, axis, chosen);
    pen.fillStyle = w === NOWHERE ? themed.free : colourOf(w, axis, themed);
    pen.fillRect(x, y, inner, inner);
    if (dot && w !== NOWHERE && kinds[w]) {
      pen.fillStyle = themed.page;
      pen.fillRect(x + (inner - dot) / 2, y + (inner - dot) / 2, dot, dot);
    }
  }
  pen.globalAlpha = 1;
}

// Names of the domains over their columns, as many as fit.
function drawLabels(pen, themed) {
  pen.font = "11px system-ui, sans-serif";
  pen.fillStyle = themed.soft;
  pen.textBaseline = "bottom";
  let free = 0;
  machine.homes.forEach((path, home) => {
    const [x, y] = corner(plan, nodesOf[home][0], 0);
    if (home % plan.across === 0) free = 0;
    const text = path[path.length - 1];
    const width = pen.measureText(text).width;
    if (x < free || x + width > pen.canvas.clientWidth) return;
    pen.fillText(text, x, y - 1);
    free = x + width + 6;
  });
}

function drawCursor(pen, side, themed) {
  if (cursor === null) return;
  const w = cursor.work;
  const seat = w === NOWHERE ? cursor.seat : [work[side + "_node"][w], work[side + "_gpu"][w]];
  if (seat[0] === NOWHERE || (w === NOWHERE && side !== cursor.side)) return;
  const [x, y] = corner(plan, ...seat);
  pen.strokeStyle = themed.ink;
  pen.lineWidth = 2;
  pen.strokeRect(x - 2, y - 2, plan.cell + 3, plan.cell + 3);
}

function draw(chosen) {
  const axis = document.getElementById("colour").value;
  const themed = {
    page: theme("page"), ink: theme("ink"), soft: theme("soft"), free: theme("free"),
    kinds: KINDS.map((kind) => theme(kind.name)),
  };
  plan = layout(canvases.old.parentElement.clientWidth, Number(document.getElementById("cell").value));
  for (const [side, canvas] of Object.entries(canvases)) {
    const pen = prepare(canvas);
    drawCells(pen, side, chosen, axis, themed);
    drawLabels(pen, themed);
    drawCursor(pen, side, themed);
    const count = work[side + "_rank"].filter((rank) => rank !== NOWHERE).length;
    canvas.setAttribute("aria-label", FORMATS.count(count) + " ranks on the nodes of "
      + FORMATS.count(machine.homes.length) + " domains of tier " + machine.home_tier
      + "; use the arrow keys to read cell by cell");
  }
}

function legend() {
  const axis = document.getElementById("colour").value;
  const list = document.getElementById("legend");
  list.replaceChildren();
  const add = (text, colour, isDotted) => {
    const item = element("li", text);
    const mark = element("span", "", { class: isDotted ? "mark dotted" : "mark" });
    mark.style.background = colour;
    item.prepend(mark);
    list.append(item);
  };
  const isDotted = Number(document.getElementById("cell").value) >= DOTTED;
  if (axis === "") {
    KINDS.forEach((kind, i) => {
      const count = kinds.filter((found) => found === i).length;
      if (count) add(kind.text + ": " + FORMATS.count(count), "var(--" + kind.name + ")", i > 0 && isDotted);
    });
  } else {
    const colours = data.colours[axis];
    const step = Math.max(1, Math.ceil(colours.length / 8));
    colours.forEach((colour, i) => {
      if (i % step === 0 || i === colours.length - 1) add((WORDS[axis] ?? axis) + " " + i, colour, false);
    });
    add("pale: " + KINDS[0].text, "color-mix(in srgb, " + colours[0] + " 40%, var(--page))", false);
  }
  add("free in this placement", "var(--free)", false);
}
