"""Maps of a report show all of the machine, and mark what was asked for."""

import numpy as np
import pytest

from placer.api.report import report_html
from placer.topology.read import read_topology
from tests.page.plans import plan_on, small_job

# Boxes and names that do not lie inside the map.
CUT = """
const map = maps[0].getBoundingClientRect();
return [...maps[0].querySelectorAll("rect, text, path")].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.width && !one.closest("defs, .marks") && (box.left < map.left
    || box.right > map.right || box.top < map.top || box.bottom > map.bottom);
}).map((one) => one.outerHTML.slice(0, 100));
"""


def written(path, machine, pp, dp, gpus):
    """The report of one placement."""
    job = small_job(2 * pp, 8, tp=8, pp=pp, dp=dp, order="tp-cp-ep-pp-dp")
    path.write_text(report_html(plan_on(read_topology(machine), job, gpus), None))
    return path


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """3,072 GPUs of two pods; three replicas of each have a stage in the other."""
    stages = np.arange(3072).reshape(24, 16, 8)
    stages[[0, 1, 2, 12, 13, 14], 0] = stages[[12, 13, 14, 0, 1, 2], 0]
    folder = tmp_path_factory.mktemp("wide")
    return written(folder / "wide.html", "pod:2 rack:24 node:8 gpu:8", 16, 24,
                   stages.reshape(-1))  # fmt: skip


@pytest.mark.parametrize(
    ("machine", "size"),
    [
        ("rack:2 node:18 gpu:8", (400, 800)),
        ("rack:30 node:1 gpu:8", (1440, 900)),
        ("node:8 gpu:8", (800, 300)),
        ("pod:1 rack:1 node:100 gpu:8", (400, 800)),
    ],
)
def test_no_map_is_cut(browser, tmp_path, machine, size):
    """All of the machine, its boxes and their names lie inside the map."""
    path = written(tmp_path / "map.html", machine, 2, 2, np.arange(32))
    browser.resize(*size)
    browser.read(path)
    assert browser.run(CUT) == []
    browser.resize(1600, 1000)


def test_small_cells_are_those_of_racks(browser, wide):
    """Of GPUs too small to see, a rack has the share of those in crossing groups."""
    browser.resize(340, 900)
    browser.read(wide)
    text = browser.run("return document.getElementById('scale').textContent;")
    assert "A cell is a rack" in text
    found = browser.run(
        """const cells = [], paths = [...layers[0].cells.children];
           for (let rack = 0; rack < machine.names[1].length; rack++) {
             const [left, top, width, height] = cellBox(1, rack);
             const middle = { x: left + width / 2, y: top + height / 2 };
             const path = paths.find((one) => one.isPointInFill(middle));
             let strayed = 0, all = 0;
             for (let rank = 0; rank < sides[0].world; rank++) {
               if (domainOfRank(sides[0], rank, 1) !== rack) continue;
               all++;
               strayed += strays[0][rank] > 0;
             }
             cells.push([rgb(path.getAttribute("fill")), strayed / all]);
           }
           return cells;"""
    )
    calm = np.array(browser.run("return rgb(css('--calm'));"))
    far = np.array(browser.run("return rgb(TIERS.at(-1));"))
    assert {share for _, share in found} >= {0.0, 1.0}
    for pixel, share in found:
        assert np.abs(pixel - (calm + (far - calm) * share)).max() <= 2
    browser.resize(1600, 1000)


@pytest.mark.parametrize("width", [420, 1600])
@pytest.mark.parametrize("text", ["rank 700", "dp=5", "p2-r03"])
def test_what_is_found_is_marked(browser, wide, text, width):
    """Around every rank that is found there is a line."""
    browser.resize(width, 900)
    browser.read(wide)
    far = browser.run(
        """const field = document.getElementById("find");
           field.value = arguments[0];
           field.dispatchEvent(new Event("input"));
           redrawNow();
           const lines = [...maps[0].querySelectorAll(".marks .p-out")];
           return search(arguments[0]).map((rank) => {
             const [x, y] = middle(sides[0], rank);
             return lines.some((line) => line.isPointInFill({ x, y }));
           });""",
        text,
    )
    assert far
    assert all(far)
    browser.run("document.getElementById('find').value = ''; searched();")
    browser.resize(1600, 1000)
