// Fills the page and keeps it up to date.

function showModes() {
  for (const one of MODES) {
    const button = part("button", one.name);
    button.dataset.mode = one.key;
    button.addEventListener("click", () => {
      mode = one;
      showMode();
      redraw();
      remember();
    });
    $("modes").append(button);
  }
}

function showMode() {
  for (const button of $("modes").children) button.setAttribute("aria-pressed", String(button.dataset.mode === mode.key));
  $("legend").replaceChildren(...mode.legend().map(([colour, text, how]) => {
    const key = part("span", "");
    key.className = "key";
    if (colour) {
      const box = part("i", "");
      box.className = "sw";
      box.style.background = how ? "repeating-linear-gradient(135deg," + colour + " 0 5px,transparent 5px 7px)" : colour;
      key.append(box);
    }
    key.append(text);
    return key;
  }));
}

function showScale() {
  const level = cellLevel(scaleOf(maps[after])), [node, rack, panel] = [...machine.levels, machine.whole];
  const hasRacks = machine.levels.length > 1, hasPanels = machine.levels.length > 2;
  const cell = level < 0
    ? "A cell is a GPU, a row of " + across + " a " + node + (hasRacks ? ", a column a " + rack : "") + (hasPanels ? ", a box a " + panel : "")
    : "A cell is a " + [node, hasRacks ? rack : "column of nodes", panel ?? rack][level] + ", its colour "
      + (mode.key === "cross" ? "the share of its GPUs with a group that reaches further" : "the mean of its GPUs") + "; zoom in to see them";
  $("scale").textContent = cell + "." + (after ? " Both maps zoom and light up together." : "");
}

function refresh() {
  showMode();
  redrawNow();
}

for (const button of document.querySelectorAll("[data-zoom]")) {
  button.addEventListener("click", () => {
    const how = button.dataset.zoom;
    if (how === "all") showAll();
    else zoomAt(how === "in" ? 1.8 : 1 / 1.8, ...centre(after));
    redraw();
    remember();
  });
}
$("find").addEventListener("input", searched);
sides.forEach((_, s) => follow(s));
showModes();
tell(-1);
recall();
refresh();
addEventListener("resize", refresh);
$("fold")?.addEventListener("toggle", refresh); // a map that is folded away has no size
addEventListener("hashchange", () => { recall(); refresh(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);
addEventListener("beforeprint", refresh);
addEventListener("afterprint", refresh);
