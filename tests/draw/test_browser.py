"""Pictures in headless Chromium: drawn as they say, quiet, in both themes."""

import re

import pytest

import placer
from placer.api.place import place
from placer.cost.step import StepModel
from placer.draw.heat_map import traffic_map
from placer.draw.pipeline import pipeline_chart
from placer.draw.placement_map import placement_map
from placer.draw.time_line import time_line
from placer.placement.build import placement_of_plan
from placer.sweep.result import sweep_plot
from placer.topology.read import read_topology
from placer.tune.plot import tune_plot
from tests.page.plans import small_job

# Texts that do not lie inside the picture, or lie on another one.
MISPLACED = """
const all = document.documentElement.getBoundingClientRect();
const texts = [...document.querySelectorAll("text")]
  .filter((one) => one.textContent.trim());
const boxes = texts.map((one) => one.getBoundingClientRect());
const out = texts.filter((_, i) => boxes[i].left < all.left
  || boxes[i].right > all.right + 0.5
  || boxes[i].top < all.top || boxes[i].bottom > all.bottom + 0.5);
const crossed = texts.filter((_, i) => boxes.some((box, j) => j < i
  && box.left + 1 < boxes[i].right && boxes[i].left + 1 < box.right
  && box.top + 3 < boxes[i].bottom && boxes[i].top + 3 < box.bottom));
return [...out, ...crossed].map((one) => one.textContent);
"""
BEHIND = """
const back = document.querySelector("rect");
return getComputedStyle(back).fill;
"""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    topology = read_topology("block:2 rack:3 node:3 gpu:4")
    job = small_job(8, tp=4, pp=2, dp=9, order="tp-cp-ep-pp-dp")
    plan = place(topology, job).plan
    step = StepModel(topology, job).step(placement_of_plan(plan, topology).gpu_of_rank)
    swept = placer.sweep(topology, job, dp=[1, 2, 4], nic_rate=[25e9, 50e9])
    few = {"tp": [2, 4], "cp": [1], "pp": [2], "micro_batch": [1]}
    tuned = placer.tune(topology, job, gpus=[36, 72], memory=80e9, slack=0.5, **few)
    drawn = {
        "map": placement_map(plan),
        "stages": placement_map(plan, colour="pp"),
        "rack": placement_map(plan, zoom="b1-r2"),
        "traffic": traffic_map(plan),
        "timeline": time_line(plan),
        "pipeline": pipeline_chart(step),
        "sweep": sweep_plot(swept.rows, swept.swept),
        "choices": tune_plot(tuned),
    }
    for name, text in drawn.items():
        (folder / f"{name}.svg").write_text(text)
    return {name: folder / f"{name}.svg" for name in drawn}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("map", "stages", "rack", "traffic", "timeline", "pipeline"),
        *("sweep", "choices"),
    ],
)
def test_picture(browser, pictures, name):
    """Nothing on the console, no request, texts apart, dark ground in the dark."""
    path = pictures[name]
    brightness = {}
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        browser.open(path)
        assert browser.requests() == [path.as_uri()]
        assert browser.log() == []
        assert browser.run(MISPLACED) == []
        rgb = [int(part) for part in re.findall(r"\d+", browser.run(BEHIND))[:3]]
        brightness[scheme] = sum(rgb) / 3
    assert brightness["light"] > 200
    assert brightness["dark"] < 60
