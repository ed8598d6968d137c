"""Pictures of pages and drawings as Chromium shows them, to compare with those kept.

``python -m tests.page.shots`` draws those in ``tests/page/shots`` and in
``docs/pictures`` anew. Look at each before it is committed.
"""

import math
import sys
import tempfile
from functools import cache
from pathlib import Path

import placer
from placer.api.predict import scored_plan
from placer.cost.step import StepModel
from placer.draw.pipeline import pipeline_chart
from placer.draw.placement_map import placement_map
from placer.placement.baselines import baseline
from placer.placement.build import placement_of_plan
from placer.placement.inputs import Inputs, inputs_of
from placer.placement.placement import Placement
from tests.page.browser import chromium

KEPT = Path(__file__).parent / "shots"
DOCS = Path(__file__).parents[2] / "docs"
WIDTH = 1000


@cache
def plans():
    """8,192 GPUs: pipelines over the machine, ranks in order, a replica a rack."""
    topology = placer.read_topology("azure-gb200-mlperf-v6")
    job = placer.read_job("llama3.1-405b-mlperf-v6")
    at = job.parallelism.coordinates
    inside = (at["pp"] * job.parallelism.cp + at["cp"]) * job.parallelism.tp + at["tp"]
    good = Placement(at["dp"] * 72 + inside)
    placements = {
        "spread": baseline("megatron-default", topology, job),
        "in order": baseline("sorted-hosts", topology, job),
        "whole": good,
    }
    inputs = Inputs(topology, job)
    return {name: scored_plan(inputs, p, name) for name, p in placements.items()}


def pipeline_of(plan, theme):
    """The pipeline of a plan."""
    inputs = inputs_of(plan)
    model = StepModel(inputs.machine, inputs.job)
    placement = placement_of_plan(plan, inputs.machine)
    return pipeline_chart(model.step(placement.gpu_of_rank), theme)


def shots(browser, folder):
    """Name and PNG of each picture to keep; ``folder`` is for what is drawn."""
    drawn = {
        "map": placement_map(plans()["in order"], theme="light"),
        "pipeline": pipeline_of(plans()["whole"], "dark"),
    }
    for name, picture in drawn.items():
        path = folder / f"{name}.html"
        path.write_text(f"<!doctype html><style>body{{margin:0}}</style>{picture}")
        yield name, screenshot(browser, path)
    page = folder / "report.html"
    page.write_text(placer.report_html(plans()["whole"], plans()["spread"]))
    browser.prefer("light")
    browser.resize(1440, 1000)
    browser.open(page)
    for side, name in enumerate(("before", "after")):
        box = browser.run(
            "const box = maps[arguments[0]].getBoundingClientRect();"
            "return [box.x + scrollX, box.y + scrollY, box.width, box.height];",
            side,
        )
        clip = dict(zip(("x", "y", "width", "height"), box, strict=True))
        yield f"report-{name}", browser.screenshot(clip=clip, full_page=True)


def screenshot(browser, page):
    """A page from its top to its end, `WIDTH` pixels wide."""
    browser.resize(WIDTH, 800)
    browser.open(page)
    box = browser.run(
        "return document.querySelector('svg').getBoundingClientRect().height;"
    )
    browser.resize(WIDTH, math.ceil(box))
    return browser.screenshot()


def example():
    """The plan of the page on pictures."""
    text = (DOCS / "gallery.md").read_text()
    job = text.partition("```yaml\n")[2].partition("```")[0]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(job)
        file.flush()
        return placer.place("block:2 rack:3 node:3 gpu:4", file.name).plan


def drawn_docs():
    """Name and text of each SVG of the documents that shows the example."""
    plan = example()
    yield "map.svg", placement_map(plan)
    yield "pipeline.svg", pipeline_of(plan, "auto")


def _write_report(browser, folder):
    """The report of the README's command, to the foot of its maps."""
    plan = placer.place(
        "rack:4 node:18 gpu:4", "llama3.1-405b-256", exclude="r1-n05,r2-n11"
    ).plan
    page = folder / "shown.html"
    page.write_text(placer.report_html(plan, "given-order"))
    browser.resize(1440, 950)
    browser.open(page)
    box = "document.querySelector('#maps .pair').getBoundingClientRect()"
    browser.resize(1440, math.ceil(browser.run(f"return {box}.bottom;")) + 8)
    (DOCS / "pictures" / "report.png").write_bytes(browser.screenshot())


def main():
    """Write all of them."""
    for name, text in drawn_docs():
        (DOCS / "pictures" / name).write_text(text)
    KEPT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        for shot, png in shots(browser, Path(name)):
            (KEPT / f"{shot}.png").write_bytes(png)
        _write_report(browser, Path(name))


if __name__ == "__main__":
    sys.exit(main())
