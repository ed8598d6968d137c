// Lines and words over a map: names with room for them, pipelines, a rank's groups.

const MOST_OUTLINES = 2000;
const FONT = "system-ui, -apple-system, 'Segoe UI', Arial, sans-serif";
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

const middle = (at, side, rank) => {
  const [x, y] = gpuCorner(side.seats[rank]);
  return [at.x(x + 0.5), at.y(y + 0.5)];
};

// Names of the innermost level that has room for them, and of blocks above theirs.
function names(context, at) {
  for (let level = machine.levels.length - 1; level >= 1 && nameRoom(level); level--) {
    const room = nameRoom(level) * at.scale, font = Math.max(7, Math.min(13, room * 0.75));
    if (room >= 8.5) nameAll(context, at, level, font, (y) => y + room - Math.min(5, 0.3 * font), false);
  }
  const level = [0, 1].find((one) => sizes[one][0] * at.scale >= 34 && sizes[one][1] * at.scale >= (one ? 40 : 16));
  if (level === undefined || level >= machine.levels.length || (level && nameRoom(level) * at.scale >= 10)) return;
  const font = level ? 11.5 : Math.min(11, at.scale * 0.3);
  if (font >= 6) nameAll(context, at, level, font, (y) => Math.max(y, 0) + font + 1, true);
  if (level === 0 && machine.levels.length > 1 && !nameRoom(1)) nameAll(context, at, 1, 11.5, (y) => y - 3, false);
}

function nameAll(context, at, level, font, baseline, hasGround) {
  const width = sizes[level][0] * at.scale, high = sizes[level][1] * at.scale;
  context.font = (level ? "600 " : "") + font + "px " + FONT;
  machine.names[level].forEach((name, d) => {
    const x = at.x(corners[level][2 * d]), y = at.y(corners[level][2 * d + 1]);
    if (x > at.width || y > at.height || x + width < 0 || y + high < 0) return;
    let text = name;
    while (text.length > 2 && context.measureText(text).width > width - 2) text = text.slice(0, -2) + "\u2026";
    if (text.length <= 2 && text !== name) return;
    const left = Math.max(x, 0), base = baseline(y);
    if (hasGround) {
      context.globalAlpha = 0.8;
      context.fillStyle = css("--card");
      context.fillRect(left, base - font, context.measureText(text).width + 4, font + 3);
      context.globalAlpha = 1;
    }
    context.fillStyle = css(level >= 2 ? "--soft" : "--ink");
    context.fillText(text, left + (hasGround ? 2 : 0), base);
  });
}

function rankNumbers(context, at, side) {
  if (at.scale < 26) return;
  context.font = Math.min(13, at.scale * 0.3) + "px " + FONT;
  context.textAlign = "center";
  side.seats.forEach((gpu, rank) => {
    const [x, y] = middle(at, side, rank);
    if (x < -at.scale || y < -at.scale || x > at.width + at.scale || y > at.height + at.scale) return;
    context.fillStyle = css("--card");
    context.globalAlpha = 0.78;
    const width = context.measureText(String(rank)).width + 6;
    context.fillRect(x - width / 2, y - 2, width, at.scale * 0.34);
    context.globalAlpha = 1;
    context.fillStyle = css("--ink");
    context.fillText(rank, x, y + at.scale * 0.22);
  });
  context.textAlign = "left";
}

function arc(context, [x1, y1], [x2, y2]) {
  context.moveTo(x1, y1);
  context.quadraticCurveTo((x1 + x2) / 2 - (y2 - y1) * 0.12, (y1 + y2) / 2 - Math.abs(x2 - x1) * 0.07, x2, y2);
}

function drawThreads(context, at, s) {
  context.strokeStyle = css("--thread");
  context.globalAlpha = 0.34;
  context.lineWidth = Math.min(1.8, 0.75 + at.scale * 0.03);
  context.beginPath();
  for (const [a, b] of threadsOf[s]) arc(context, middle(at, sides[s], a), middle(at, sides[s], b));
  context.stroke();
  context.globalAlpha = 1;
}

// A frame around every NVLink domain, or the first domain above the node.
function frames(context, at) {
  const [w, h] = sizes[data.level];
  if (!data.level || w * at.scale < 5 || cellLevel(at.scale) >= data.level) return;
  context.strokeStyle = css("--frame");
  context.lineWidth = 1;
  const room = Math.min(3, gapOf(data.level + 1) * at.scale * 0.35);
  for (let d = 0; d < machine.names[data.level].length; d++) {
    const x = at.x(corners[data.level][2 * d]) - room, y = at.y(corners[data.level][2 * d + 1]) - room;
    context.strokeRect(Math.round(x) + 0.5, Math.round(y) + 0.5, Math.round(w * at.scale + 2 * room), Math.round(h * at.scale + 2 * room));
  }
}

// A chain of ranks as one line, with numbers where there is room.
function route(context, at, side, ranks) {
  const points = ranks.map((rank) => middle(at, side, rank));
  const stroke = (colour, width) => {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    points.forEach((point, i) => { if (i) arc(context, points[i - 1], point); });
    context.stroke();
  };
  context.lineCap = context.lineJoin = "round";
  stroke(css("--card"), 5);
  stroke(css("--ink"), 2);
  const spread = Math.max(...points.map(([x]) => x)) - Math.min(...points.map(([x]) => x));
  if (spread < 60 || ranks.length > 24) return;
  context.font = "600 10.5px " + FONT;
  context.textAlign = "center";
  const numbered = [];
  points.forEach(([pointX, pointY], i) => {
    const x = inside(pointX, at.width), y = inside(pointY, at.height);
    if (numbered.some(([left, top]) => Math.hypot(left - x, top - y) < 17)) return;
    numbered.push([x, y]);
    context.fillStyle = css("--card");
    context.strokeStyle = css("--ink");
    context.lineWidth = 1.4;
    context.beginPath();
    context.arc(x, y, 8, 0, 7);
    context.fill();
    context.stroke();
    context.fillStyle = css("--ink");
    context.fillText(i, x, y + 3.8);
  });
  context.textAlign = "left";
}

// Where a mark shows in full, if its place is seen.
const inside = (place, room) => (place < 0 || place > room ? place : Math.min(Math.max(place, 9), room - 9));

function ring(context, at, side, rank, colour, width) {
  const [x, y] = gpuCorner(side.seats[rank]);
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.strokeRect(at.x(x) - width / 2, at.y(y) - width / 2, at.scale + width, at.scale + width);
}

// The ranks of all groups of a rank.
function companions(side, rank) {
  const found = new Set([rank]);
  for (const axis of side.axes.keys()) for (const r of group(side, axis, rank)) found.add(r);
  return found;
}

// A line around the cell of each rank, at least so many pixels wide.
function outline(context, at, side, ranks, least) {
  const level = cellLevel(at.scale), cells = new Set();
  for (const rank of ranks) if (rank >= 0) cells.add(cellOf(side, level, rank));
  if (cells.size > MOST_OUTLINES) return;
  context.beginPath();
  for (const cell of cells) {
    const [x, y, width, height] = cellBox(level, cell);
    const [w, h] = [width, height].map((length) => Math.max(length * at.scale + 2, least));
    context.rect(at.x(x + width / 2) - w / 2, at.y(y + height / 2) - h / 2, w, h);
  }
  for (const [colour, width] of [["--card", 4], ["--ink", 2]]) {
    context.strokeStyle = css(colour);
    context.lineWidth = width;
    context.stroke();
  }
}

function mark(s, context, at, rank, wanted) {
  const side = sides[s];
  frames(context, at);
  names(context, at);
  rankNumbers(context, at, side);
  if (wanted) outline(context, at, side, wanted, 9);
  else if (rank < 0) {
    if (mode.key === "cross") {
      drawThreads(context, at, s);
      const slowest = side.pipeline?.replica;
      if (slowest !== undefined && side.axes.has("pp")) {
        const first = slowest * (side.axes.get("dp")?.stride ?? 0);
        route(context, at, side, group(side, "pp", first));
      }
    }
  } else {
    if (side.axes.has("pp")) route(context, at, side, group(side, "pp", rank));
    const ink = css("--ink");
    for (const axis of side.axes.keys()) {
      if (axis === "pp" || axis === "edp") continue;
      const members = group(side, axis, rank);
      if (members.length <= 4096 && cellLevel(at.scale) < 0) for (const r of members) ring(context, at, side, r, axis === "dp" ? css("--net") : ink, 1.2);
    }
    outline(context, at, side, [rank], 14);
  }
}
