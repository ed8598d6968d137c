// What the reader does: points, presses keys, drags, searches, shares the address.

let chosen = -1;      // a rank of the last side
let isPinned = false;
let found = null;     // ranks that a search asks for, of the last side

let isDue = false;
function redraw() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    redrawNow();
  });
}

function redrawNow() {
  const box = [view.x - worldWidth / view.zoom / 2, view.y - worldHeight / view.zoom / 2, worldWidth / view.zoom, worldHeight / view.zoom];
  sides.forEach((side, s) => {
    if (!scaleOf(maps[s])) return; // printed, or in a frame that is hidden
    const rank = partner(chosen, after, s);
    let marked = null;
    if (rank >= 0) marked = companions(side, rank);
    else if (found) marked = new Set([...found].map((r) => partner(r, after, s)));
    maps[s].setAttribute("viewBox", box.join(" "));
    const scale = paint(s, marked);
    mark(s, rank, rank < 0 ? marked : null, scale);
    sizeNames(scale);
    $("hatch").setAttribute("patternTransform", "scale(" + 1 / scale + ")");
  });
  showScale();
}

function choose(rank, pin = isPinned) {
  isPinned = pin && rank >= 0;
  if (rank === chosen) return;
  chosen = rank;
  tell(rank);
  redraw();
}

// The place of the map under the pointer.
function place(map, event) {
  const box = map.getBoundingClientRect(), scale = scaleOf(map);
  return [(event.clientX - box.left - box.width / 2) / scale + view.x, (event.clientY - box.top - box.height / 2) / scale + view.y];
}

function rankUnder(s, event) {
  const gpu = gpuAt(...place(maps[s], event));
  return gpu < 0 ? -1 : partner(sides[s].rankAt[gpu], s, after);
}

// Names in full of the domains around a GPU that are shown shortened.
function fullNames(gpu) {
  if (gpu < 0) return "";
  const around = machine.full.map((list, level) => list && domainOf[level][nodeOfGpu[gpu]]);
  return around.map((d, level) => (d === null ? "" : machine.names[level][d] + ": " + machine.full[level][d] + "\n")).join("").trim();
}

function follow(s) {
  const map = maps[s];
  let drag = null;
  map.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, y: event.clientY, view: { ...view }, isFar: false };
    if (event.pointerType === "mouse") map.setPointerCapture(event.pointerId);
  });
  map.addEventListener("pointermove", (event) => {
    if (!drag) {
      layers[s].title.textContent = fullNames(gpuAt(...place(map, event)));
      if (!isPinned) choose(rankUnder(s, event), false);
      return;
    }
    const scale = scaleOf(map);
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    drag.isFar ||= Math.hypot(dx, dy) > 4;
    if (!drag.isFar) return;
    moveView(view.zoom, drag.view.x - dx / scale, drag.view.y - dy / scale);
    redraw();
  });
  map.addEventListener("pointerup", (event) => {
    if (drag && !drag.isFar) {
      const rank = rankUnder(s, event);
      const isAgain = isPinned && rank === chosen;
      choose(isAgain ? -1 : rank, !isAgain);
      isPinned = rank >= 0 && !isAgain;
    }
    drag = null;
    remember();
  });
  map.addEventListener("pointercancel", () => { drag = null; });
  map.addEventListener("pointerleave", () => { if (!isPinned && document.activeElement !== map) choose(-1); });
  map.addEventListener("wheel", (event) => {
    if (document.activeElement !== map && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoomAt(Math.exp(-event.deltaY * 0.0022), ...place(map, event));
    redraw();
    remember();
  }, { passive: false });
  map.addEventListener("dblclick", (event) => {
    zoomAt(3, ...place(map, event));
    redraw();
    remember();
  });
  map.addEventListener("keydown", (event) => pressed(s, event));
}

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function pressed(s, event) {
  const step = STEPS[event.key];
  if (step) choose(nextRank(s, step), true);
  else if (event.key === "+" || event.key === "=") zoomAt(1.6, ...centre(s));
  else if (event.key === "-") zoomAt(1 / 1.6, ...centre(s));
  else if (event.key === "0") showAll();
  else if (event.key === "Escape") choose(-1, false);
  else return;
  event.preventDefault();
  redraw();
  remember();
}

// The next rank in a direction: over gaps and free GPUs, to the edge.
function nextRank(s, [dx, dy]) {
  const own = partner(chosen, after, s);
  if (own < 0) return partner(sides[s].rankAt.find((rank) => rank >= 0), s, after);
  let [x, y] = middle(sides[s], own);
  for (let tries = 0; tries < (worldWidth + worldHeight) / pitch; tries++) {
    x += dx * pitch;
    y += dy * pitch;
    const gpu = gpuAt(x, y);
    const rank = gpu < 0 ? -1 : partner(sides[s].rankAt[gpu], s, after);
    if (rank >= 0 && rank !== chosen) {
      bringIntoView(gpu);
      return rank;
    }
  }
  return chosen;
}

const centre = (s) => {
  const own = partner(chosen, after, s);
  return own < 0 ? [view.x, view.y] : gpuCorner(sides[s].seats[own]);
};

// Ranks that a text asks for: a rank, a host or domain, or a group such as dp=5.
function search(text) {
  const side = sides[after], asked = text.trim().toLowerCase();
  const one = /^(?:rank|r)?\s*[=:]?\s*(\d+)$/.exec(asked);
  // r12 may be a rack.
  if (one && !(/^r\d/.test(asked) && isName(asked))) return Number(one[1]) < side.world ? [Number(one[1])] : [];
  const every = Array.from({ length: side.world }, (_, rank) => rank);
  const coordinates = /^([a-z]+)\s*[=: ]\s*(\d+)$/.exec(asked);
  if (coordinates && side.axes.has(coordinates[1])) {
    return every.filter((rank) => coordinate(side, coordinates[1], rank) === Number(coordinates[2]));
  }
  const hits = called(asked);
  return every.filter((rank) => hits.some((set, level) => set.has(domainOfRank(side, rank, level))));
}

// Domains of each level with a text in their name.
const called = (asked) => machine.names.map((list, level) => new Set(list.flatMap((name, d) => {
  const full = machine.full[level]?.[d] ?? "";
  return (name + "\n" + full).toLowerCase().includes(asked) ? [d] : [];
})));

// Whether some name has a text as a word of its own.
function isName(asked) {
  const word = new RegExp("(^|[^a-z0-9])" + asked + "($|[^a-z0-9])");
  return machine.names.some((list) => list.some((name) => word.test(name.toLowerCase())));
}

function foundText(text, count) {
  if (count) return plural(count, "rank") + " found";
  if (called(text.trim().toLowerCase()).some((set) => set.size)) return "No rank is there" + (after ? " after." : ".");
  return "Nothing is called so: ask for rank 100, a host, a rack, or dp=5.";
}

function searched() {
  const text = $("find").value, ranks = text.trim() ? search(text) : null;
  $("find").setAttribute("aria-invalid", String(ranks !== null && ranks.length === 0));
  found = ranks && ranks.length > 1 ? new Set(ranks) : null;
  if (ranks && ranks.length === 1) {
    choose(ranks[0], true);
    bringIntoView(sides[after].seats[ranks[0]]);
  } else {
    choose(-1, false);
    const half = halves();
    if (found && !ranks.some((rank) => isSeen(cellBox(-1, sides[after].seats[rank]), half))) showAll();
    if (ranks) $("told").textContent = foundText(text, ranks.length);
    else tell(-1);
  }
  redraw();
  remember();
}

// The address keeps what is seen, so that a link shows it to others.
function remember() {
  const kept = new URLSearchParams();
  if (mode !== MODES[0]) kept.set("colour", mode.key);
  if (isPinned) kept.set("rank", chosen);
  if (found) kept.set("find", $("find").value);
  if (view.zoom > 1) kept.set("view", [view.zoom, view.x, view.y].map((v) => v.toFixed(2)).join());
  try { history.replaceState(null, "", "#" + kept); } catch { /* a page from a string has no address */ }
}

function recall() {
  const kept = new URLSearchParams(location.hash.slice(1));
  const place = (kept.get("view") ?? "").split(",").map(Number);
  if (place.length === 3 && place.every(Number.isFinite)) moveView(...place);
  mode = MODES.find((one) => one.key === kept.get("colour")) ?? MODES[0];
  const rank = Number(kept.get("rank") ?? -1);
  if (Number.isInteger(rank) && rank >= 0 && rank < sides[after].world) choose(rank, true);
  if (kept.get("find")) {
    $("find").value = kept.get("find");
    searched();
  }
}
