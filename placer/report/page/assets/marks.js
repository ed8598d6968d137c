// Lines and words over a map: names with room for them, pipelines, a rank's groups.

const MOST_OUTLINES = 2000;
const LEAST_FONT = 6.5, MOST_FONT = 14;
const THREADS = 128;

// Hops of chains that leave their home: of the axis with most strays before.
const threadAxis = (() => {
  const candidates = data.homes.filter(([axis]) => sides[0].axes.has(axis));
  const strayed = ([axis, home]) => reach(sides[0], axis).reduce((sum, level) => sum + (level > home), 0);
  return candidates.map((home) => [strayed(home), ...home]).sort((a, b) => b[0] - a[0])[0];
})();

function threads(side) {
  if (!threadAxis) return [];
  const [, axis, home] = threadAxis;
  if (!side.axes.has(axis)) return [];
  const { size, stride } = side.axes.get(axis);
  const found = [];
  for (let first = 0; first < side.world; first++) {
    if (Math.floor(first / stride) % size) continue;
    for (let i = 1; i < size; i++) {
      const pair = [first + (i - 1) * stride, first + i * stride];
      if (domainOfRank(side, pair[0], home) !== domainOfRank(side, pair[1], home)) found.push(pair);
    }
  }
  let step = Math.ceil(found.length / THREADS);
  if (step > 1 && step % (size - 1) === 0) step++; // else all would be the same hop
  return found.filter((_, i) => i % step === 0);
}
const threadsOf = sides.map(threads);

const middle = (side, rank) => gpuCorner(side.seats[rank]).map((corner) => corner + pitch / 2);

// Names of boxes keep a size to read: no larger, however near, and none where they are
// too small; but the outermost stay where they have the room.
const named = ["boxes", "names"].map((id) => Array.from($(id).querySelectorAll("text"), (text) => ({
  text, own: Number(text.getAttribute("font-size")), y: Number(text.getAttribute("y")), long: (text.firstChild?.data ?? "").length, isBox: id === "boxes" })));
let sizedFor = 0;
function sizeNames(scale) {
  if (scale === sizedFor) return;
  sizedFor = scale;
  for (const texts of named) {
    const longest = Math.max(...texts.map(({ long }) => long)), hasRoom = longest * 8 * 0.6 <= boxes[2][0][2] * scale;
    for (const { text, own, y, isBox } of texts) {
      const font = Math.min(isBox ? Math.max(own, 8 / scale) : own, MOST_FONT / scale);
      text.setAttribute("display", own * scale >= LEAST_FONT || (isBox && hasRoom) ? "inline" : "none");
      text.setAttribute("font-size", short(font));
      text.setAttribute("y", short(y + Math.max(font - own, 0)));
    }
  }
}

// Names of nodes that have none beside them, and numbers of ranks, where there is room.
function nameCells(layer, s, scale) {
  const side = sides[s], cell = pitch * scale;
  if (cell >= 26) {
    const font = Math.min(13, cell * 0.3) / scale, own = { class: "number p-ink", "font-size": font, "stroke-width": 3 / scale };
    for (const gpu of seenCells(-1)) {
      const [x, y] = gpuCorner(gpu), rank = side.rankAt[gpu];
      if (rank >= 0) add(layer, "text", { ...own, x: x + pitch / 2, y: y + pitch / 2 + font * (machine.isLabelled ? 0.36 : 0.8) }, rank);
    }
  }
  if (machine.isLabelled || cell < 20 || across * cell < 34) return;
  const font = Math.min(11, cell * 0.3) / scale;
  for (const node of seenCells(0)) {
    const [x, y] = boxes[0][node], room = Math.floor((across * pitch) / (0.6 * font)), name = machine.names[0][node];
    const text = name.length > room ? name.slice(0, room - 1) + "\u2026" : name;
    add(layer, "text", { class: "name p-ink", "font-size": font, "stroke-width": 3 / scale, x, y: y + font }, text);
  }
}

const arc = ([x1, y1], [x2, y2]) => "M" + short(x1) + " " + short(y1) + "Q"
  + [(x1 + x2) / 2 - (y2 - y1) * 0.12, (y1 + y2) / 2 - Math.abs(x2 - x1) * 0.07, x2, y2].map(short).join(" ");
const chain = (points) => points.slice(1).map((point, i) => arc(points[i], point)).join("");

// A line in ink, with a halo that parts it from what is below.
function inked(layer, d, scale) {
  add(layer, "path", { class: "line p-halo", "stroke-width": 5 / scale, d });
  add(layer, "path", { class: "line p-out", "stroke-width": 2 / scale, d });
}

// A chain of ranks as one line, with numbers where there is room.
function route(layer, side, ranks, scale) {
  const points = ranks.map((rank) => middle(side, rank)), left = points.map(([x]) => x);
  inked(layer, chain(points), scale);
  if ((Math.max(...left) - Math.min(...left)) * scale < 60 || ranks.length > 24) return;
  const numbered = [], radius = 8 / scale;
  points.forEach(([x, y], i) => {
    if (numbered.some(([ownX, ownY]) => Math.hypot(ownX - x, ownY - y) * scale < 17)) return;
    numbered.push([x, y]);
    add(layer, "circle", { class: "p-page p-out", cx: x, cy: y, r: radius, "stroke-width": 1.4 / scale });
    add(layer, "text", { class: "p-ink", "text-anchor": "middle", "font-weight": 600, "font-size": 10.5 / scale, x, y: y + 3.8 / scale }, i);
  });
}

// The ranks of all groups of a rank.
function companions(side, rank) {
  const found = new Set([rank]);
  for (const axis of side.axes.keys()) for (const r of group(side, axis, rank)) found.add(r);
  return found;
}

// A line around the cell of each rank, at least so many pixels wide.
function outline(layer, side, ranks, least, scale) {
  const level = cellLevel(scale);
  const cells = new Set([...ranks].filter((rank) => rank >= 0).map((rank) => cellOfGpu(level, side.seats[rank])));
  if (cells.size > MOST_OUTLINES) return;
  inked(layer, [...cells].map((cell) => {
    const [x, y, width, height] = cellBox(level, cell);
    const [w, h] = [width, height].map((length) => Math.max(length + 2 / scale, least / scale));
    return rect(x + width / 2 - w / 2, y + height / 2 - h / 2, w, h);
  }).join(""), scale);
}

// Rings around the groups of a rank, that of its replicas in another colour.
function ring(layer, side, rank, scale) {
  for (const axis of side.axes.keys()) {
    const ranks = axis === "pp" || axis === "edp" ? [] : group(side, axis, rank);
    if (!ranks.length || ranks.length > 4096 || cellLevel(scale) >= 0) continue;
    const d = ranks.map((one) => rect(...gpuCorner(side.seats[one]), pitch, pitch)).join("");
    add(layer, "path", { class: axis === "dp" ? "net" : "line p-out", "stroke-width": 1.2 / scale, d });
  }
}

function mark(s, rank, wanted, scale) {
  const side = sides[s], layer = layers[s].marks;
  layer.replaceChildren();
  nameCells(layer, s, scale);
  if (wanted) outline(layer, side, wanted, 9, scale);
  else if (rank >= 0) {
    if (side.axes.has("pp")) route(layer, side, group(side, "pp", rank), scale);
    ring(layer, side, rank, scale);
    outline(layer, side, [rank], 14, scale);
  } else if (mode.key === "cross") {
    const d = threadsOf[s].map((pair) => chain(pair.map((one) => middle(side, one)))).join("");
    add(layer, "path", { class: "thread", "stroke-width": Math.min(1.8, 0.75 + pitch * scale * 0.03) / scale, d });
    if (side.slowest != null && side.axes.has("pp")) {
      route(layer, side, group(side, "pp", side.slowest * (side.axes.get("dp")?.stride ?? 0)), scale);
    }
  }
}
