"""Maps of a report show all of the machine, and mark what was asked for."""

from pathlib import Path

import numpy as np
import pytest

from placer.api.report import report_html
from placer.topology.read import read_topology
from tests.page.browser import Browser
from tests.page.plans import plan_on, small_job

SPY = """
window.said = [];
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
  said.push(text);
  write.call(this, text, ...at);
};
refresh();
CanvasRenderingContext2D.prototype.fillText = write;
return said;
"""
EDGE = """
const canvas = canvases[0], context = canvas.getContext("2d");
const { width, height } = canvas, seen = new Set();
const pixels = context.getImageData(0, 0, width, height).data;
for (let y = 0; y < height; y++) {
  for (let x = 0; x < width; x += y % (height - 1) ? width - 1 : 1) {
    const i = 4 * (y * width + x);
    seen.add(pixels.slice(i, i + 3).join());
  }
}
return [...seen];
"""


def written(path: Path, machine: str, pp: int, dp: int, gpus: np.ndarray) -> Path:
    """The report of one placement."""
    job = small_job(2 * pp, 8, tp=8, pp=pp, dp=dp, order="tp-cp-ep-pp-dp")
    path.write_text(report_html(plan_on(read_topology(machine), job, gpus), None))
    return path


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3,072 GPUs of two pods; three replicas of each have a stage in the other."""
    stages = np.arange(3072).reshape(24, 16, 8)
    stages[[0, 1, 2, 12, 13, 14], 0] = stages[[12, 13, 14, 0, 1, 2], 0]
    folder = tmp_path_factory.mktemp("wide")
    return written(folder / "wide.html", "pod:2 rack:24 node:8 gpu:8", 16, 24,
                   stages.reshape(-1))  # fmt: skip


@pytest.mark.parametrize(
    "machine", ["rack:2 node:18 gpu:8", "rack:30 node:1 gpu:8", "node:8 gpu:8",
                "pod:1 rack:1 node:100 gpu:8"],
)  # fmt: skip
@pytest.mark.parametrize("size", [(400, 800), (1440, 900), (800, 300)])
def test_no_map_is_cut(
    browser: Browser, tmp_path: Path, machine: str, size: tuple[int, int]
) -> None:
    """Nothing touches the edge of a map of the whole machine, not even a frame."""
    path = written(tmp_path / "map.html", machine, 2, 2, np.arange(32))
    browser.resize(*size)
    browser.read(path)
    assert len(browser.run(EDGE)) == 1
    browser.resize(1600, 1000)


def test_small_cells_are_those_of_racks(browser: Browser, wide: Path) -> None:
    """Of GPUs too small to see, a rack has the share of those in crossing groups."""
    browser.resize(420, 900)
    browser.read(wide)
    text = browser.run("return document.getElementById('scale').textContent;")
    assert "A cell is a rack" in text
    found = browser.run(
        """const { context, at } = paint(0, null), cells = [];
           const image = context.getImageData(0, 0, 5000, 2000);
           for (let rack = 0; rack < machine.names[1].length; rack++) {
             const [x, y, w, h] = cellBox(1, rack);
             const [px, py] = [at.x(x + w / 2) * ratio, at.y(y + h / 2) * ratio];
             const i = 4 * (Math.floor(py) * 5000 + Math.floor(px));
             const pixel = image.data.slice(i, i + 3);
             let strayed = 0, all = 0;
             for (let rank = 0; rank < sides[0].world; rank++) {
               if (domainOfRank(sides[0], rank, 1) !== rack) continue;
               all++;
               strayed += strays[0][rank] > 0;
             }
             cells.push([[...pixel], strayed / all]);
           }
           return cells;"""
    )
    calm = np.array(browser.run("return rgb(css('--calm'));"))
    far = np.array(browser.run("return TIERS.at(-1);"))
    assert {share for _, share in found} >= {0.0, 1.0}
    for pixel, share in found:
        assert np.abs(pixel - (calm + (far - calm) * share)).max() <= 2
    browser.resize(1600, 1000)


@pytest.mark.parametrize("width", [420, 1600])
def test_pods_keep_their_names(browser: Browser, wide: Path, width: int) -> None:
    """However small the cells are, the outermost domains are named."""
    browser.resize(width, 900)
    browser.read(wide)
    assert {"p1", "p2"} <= set(browser.run(SPY))
    browser.resize(1600, 1000)


@pytest.mark.parametrize("width", [420, 1600])
@pytest.mark.parametrize("text", ["rank 700", "dp=5", "p2-r03"])
def test_what_is_found_is_marked(
    browser: Browser, wide: Path, text: str, width: int
) -> None:
    """Around every rank that is found there is a line in ink."""
    browser.resize(width, 900)
    browser.read(wide)
    far = browser.run(
        """const field = document.getElementById("find"), ink = rgb(css("--ink"));
           field.value = arguments[0];
           field.dispatchEvent(new Event("input"));
           redrawNow();
           const at = project(canvases[0]), context = canvases[0].getContext("2d");
           const { data } = context.getImageData(0, 0, 1600, 1600);
           return search(arguments[0]).map((rank) => {
             const [x, y] = gpuCorner(sides[0].seats[rank]);
             const px = at.x(x + 0.5), py = at.y(y + 0.5);
             for (let y = Math.round(py) - 24; y < py + 24; y++) {
               for (let x = Math.round(px) - 24; x < px + 24; x++) {
                 const i = 4 * (y * 1600 + x);
                 if (ink.every((v, c) => Math.abs(v - data[i + c]) < 8)) return true;
               }
             }
             return false;
           });""",
        text,
    )
    assert far
    assert all(far)
    browser.run("document.getElementById('find').value = ''; searched();")
    browser.resize(1600, 1000)


def test_many_stages_have_rows_to_read(browser: Browser, tmp_path: Path) -> None:
    """Of thirty stages the first and last eight are drawn, and a break says so."""
    path = written(tmp_path / "long.html", "rack:8 node:8 gpu:8", 30, 2, np.arange(480))
    browser.read(path)
    said = browser.run(SPY)
    rows = [int(text.split()[1]) for text in said if str(text).startswith("stage ")]
    assert rows == [*range(8), *range(22, 30)]
    assert "14 more stages" in said
