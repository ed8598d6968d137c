"""Groups count as leaving a tier only where that tier could hold them."""

import numpy as np

from placer import testing
from placer.api.predict import scored_plan
from placer.api.report import report_html
from placer.draw.placement_map import placement_map
from placer.placement.inputs import Inputs
from placer.placement.placement import Placement
from placer.topology.read import read_topology

ORDER = "tp-cp-ep-pp-dp"


def plan_of(machine, sizes):
    """Ranks in their order."""
    topology = read_topology(machine)
    job = testing.job(
        **{**dict(zip(("tp", "pp", "dp"), sizes, strict=True)), "order": ORDER},
        model={"layers": 16, "hidden": 64, "ffn": 128, "heads": 8, "vocab": 512},
        sequence=128,
        micro_batches=4,
        compute={"micro_batch_time": 0.01},
    )
    ranks = Placement(np.arange(job.world_size))
    return scored_plan(Inputs(topology, job), ranks, "by hand")


def line(plan):
    """What the report says over its map."""
    return report_html(plan, None).partition("<figcaption>")[2].partition("</fig")[0]


def test_a_tier_too_small_for_a_group_is_not_left():
    """Pipelines of sixteen nodes do not leave racks of eight, but lie in their pod.

    Where no tier can hold a group, none is said to leave one.
    """
    plan = plan_of("pod:2 rack:4 node:8 gpu:8", (8, 16, 4))
    assert "none of 32 pipelines leaves its pod" in placement_map(plan, "pp")
    assert "every tp and pp group is where it belongs" in line(plan)
    plan = plan_of("rack:16 node:1 gpu:8", (8, 16, 1))
    assert "8 of 8 pipelines span the whole cluster" in placement_map(plan, "pp")
