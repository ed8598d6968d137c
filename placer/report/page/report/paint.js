// Paints a map pixel by pixel: what a GPU holds, a hatch where its groups stray.

const canvases = sides.map((_, s) => $("map-" + (sides.length === 1 ? 1 : s)));
let mode = MODES[0];

function sizeOf(canvas) {
  const width = canvas.clientWidth;
  const height = Math.round(Math.max(150, Math.min(width * HEIGHT, (width * worldHeight) / worldWidth + 16, window.innerHeight * 0.7)));
  return [width, height];
}

// From map to pixels of the canvas.
function project(canvas) {
  const [width, height] = [canvas.width / ratio, canvas.height / ratio];
  const scale = scaleOf(width, height);
  return { scale, width, height, x: (x) => (x - view.x) * scale + width / 2, y: (y) => (y - view.y) * scale + height / 2 };
}
let ratio = 1;

function fillBox(pixels, stride, box, colour) {
  for (let y = box[1]; y < box[3]; y++) {
    const from = y * stride + box[0], to = y * stride + box[2];
    if (to - from > 16) pixels.fill(colour, from, to);
    else for (let i = from; i < to; i++) pixels[i] = colour;
  }
}

const packed = ([red, green, blue]) => (255 << 24) | (blue << 16) | (green << 8) | red;

// Packed colours of all ranks, and the same dimmed, of each mode, side and theme.
const kept = new Map();
function coloursOf(s, card) {
  const key = [mode.key, s, isDark()].join();
  if (!kept.has(key)) {
    const colour = mode.colour(s), dim = new Map(), { world } = sides[s];
    const full = new Int32Array(world), pale = new Int32Array(world);
    for (let rank = 0; rank < world; rank++) {
      const own = colour(rank);
      if (!dim.has(own)) dim.set(own, [packed(own), packed(mix(own, card, 0.72))]);
      [full[rank], pale[rank]] = dim.get(own);
    }
    kept.set(key, { full, pale });
  }
  return kept.get(key);
}

const channels = (colour) => [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];

// Mean colour of the ranks in each domain of a level; undefined where there are none.
function means(side, level, colourOf) {
  const count = [], sums = [];
  for (let rank = 0; rank < side.world; rank++) {
    const domain = domainOfRank(side, rank, level), own = channels(colourOf(rank));
    count[domain] = (count[domain] ?? 0) + 1;
    sums[domain] ??= [0, 0, 0];
    for (let i = 0; i < 3; i++) sums[domain][i] += own[i];
  }
  return sums.map((sum, domain) => packed(sum.map((value) => Math.round(value / count[domain]))));
}

// Domains as cells, each of the mean colour of its ranks: of groups that reach further
// the shade is their share.
function paintDomains(level, colours, free, scale, left, top, fill) {
  const gap = 0.5 * gapOf(level + 1) * scale >= 1 ? 0 : 1; // else cells would touch
  for (let domain = 0; domain < machine.names[level].length; domain++) {
    const [x, y, width, height] = cellBox(level, domain);
    fill([x * scale + left, y * scale + top, (x + width) * scale + left - gap, (y + height) * scale + top - gap], colours[domain] ?? free);
  }
}

function paint(s, marked) {
  const canvas = canvases[s], side = sides[s];
  const [width, height] = sizeOf(canvas);
  ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.height = height + "px";
  }
  const context = canvas.getContext("2d");
  const image = context.createImageData(w, h);
  const pixels = new Int32Array(image.data.buffer);
  const card = rgb(css("--card"));
  const free = packed(rgb(css("--well"))), ground = packed(card);
  pixels.fill(ground);
  const at = project(canvas), scale = at.scale * ratio;
  const left = (w / 2) - view.x * scale, top = (h / 2) - view.y * scale;
  const { full, pale } = coloursOf(s, card), hatch = mode.hatch?.(s);
  const gap = scale >= 5 ? Math.max(1, Math.round(scale * 0.08)) : 0;
  const period = Math.max(5, Math.round(5 * ratio)), thick = Math.max(1, Math.round(1.6 * ratio));
  const level = cellLevel(at.scale);
  if (level >= 0) {
    const colours = means(side, level, (rank) => (marked && !marked.has(rank) ? pale : full)[rank]);
    paintDomains(level, colours, free, scale, left, top, (edges, colour) => {
      const [x0, y0, x1, y1] = edges.map(Math.round);
      fillBox(pixels, w, [Math.max(0, x0), Math.max(0, y0), Math.min(w, Math.max(x1, x0 + 1)), Math.min(h, Math.max(y1, y0 + 1))], colour);
    });
  }
  for (let node = 0; level < 0 && node < numNodes; node++) {
    const nodeX = corners[0][2 * node] * scale + left, nodeY = corners[0][2 * node + 1] * scale + top;
    if (nodeX > w || nodeY > h || nodeX + sizes[0][0] * scale < 0 || nodeY + sizes[0][1] * scale < 0) continue;
    for (let i = 0; i < machine.gpus[node]; i++) {
      const x = nodeX + (i % across[0]) * scale, y = nodeY + Math.floor(i / across[0]) * scale;
      const box = [Math.max(0, Math.round(x)), Math.max(0, Math.round(y)),
        Math.min(w, Math.max(Math.round(x + scale) - gap, Math.round(x) + 1)),
        Math.min(h, Math.max(Math.round(y + scale) - gap, Math.round(y) + 1))];
      if (box[0] >= box[2] || box[1] >= box[3]) continue;
      const rank = side.rankAt[firstGpu[node] + i];
      if (rank < 0) {
        fillBox(pixels, w, box, free);
        continue;
      }
      const isDim = marked && !marked.has(rank);
      fillBox(pixels, w, box, (isDim ? pale : full)[rank]);
      if (hatch?.[rank] && !isDim) {
        for (let py = box[1]; py < box[3]; py++) {
          for (let px = box[0]; px < box[2]; px++) if ((px + py) % period < thick) pixels[py * w + px] = ground;
        }
      }
    }
  }
  context.putImageData(image, 0, 0);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, at };
}
