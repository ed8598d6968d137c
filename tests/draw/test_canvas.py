"""Pictures use their canvas, and follow the width of their page."""

import numpy as np
import pytest

from placer.api.place import place
from placer.cost.step import StepModel
from placer.draw.heat_map import traffic_map
from placer.draw.line_plot import Panel, Series, line_plot
from placer.draw.pipeline import pipeline_chart
from placer.draw.placement_map import placement_map
from placer.draw.time_line import time_line
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.read import read_job
from placer.placement.build import build_plan, placement_of_plan
from placer.placement.placement import Placement
from placer.topology.read import read_topology
from tests.draw.pictures import of_class, parse


@pytest.mark.parametrize(
    "machine",
    ["node:2 gpu:8", "rack:1 node:18 gpu:4", "rack:1 node:4 gpu:4", "node:1 gpu:8",
     "node:16 gpu:1", "rack:4 node:16 gpu:4", "node:4 gpu:4", "node:32 gpu:8",
     "rack:28 node:18 gpu:4"],
)  # fmt: skip
def test_cells_fill_the_map(machine):
    """The panels of a map of GPUs take at least 70 % of its width."""
    topology = read_topology(machine)
    job = Job("job", Parallelism(dp=topology.num_gpus))
    placement = Placement(np.arange(topology.num_gpus))
    root = parse(placement_map(build_plan(topology, job, placement)))
    panels = of_class(root, "p-panel")
    right = max(float(p.get("x", 0)) + float(p.get("width", 0)) for p in panels)
    assert right >= 0.7 * float(root.get("width", 0))
    assert float(root.get("height", 0)) <= 1100


def test_pictures_scale():
    """Every picture follows the width of its page, and keeps its shape."""
    topology, job = read_topology("rack:4 node:9 gpu:8"), read_job("quickstart")
    plan = place(topology, job).plan
    step = StepModel(topology, job).step(placement_of_plan(plan, topology).gpu_of_rank)
    one = Panel("t", (Series("", ((1.0, 1.0, ""),)),), str, "x", str)
    pictures = {
        "map": placement_map(plan),
        "traffic": traffic_map(plan),
        "time line": time_line(plan),
        "pipeline": pipeline_chart(step),
        "plot": line_plot([one], "t"),
    }
    for picture in pictures.values():
        root = parse(picture)
        assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
        assert "width:100%" in root.get("style", "")
        assert "height:auto" in root.get("style", "")
        assert root.get("aria-label")
