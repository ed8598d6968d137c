"""Links between named domains, and hosts of unequal speed: the examples of the page."""

import numpy as np
import pytest

from placer.explain.score import score
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.parallel import Overlap
from placer.placement.placement import Placement
from placer.topology.read import parse_topology
from tests.cost.random_cases import random_case, unequal

TWO = """
format: placer/topology
version: 1
name: two
tiers:
  - {name: node, size: 1, bandwidth: 4GB/s}
  - {name: cluster, bandwidth: 4GB/s}
nodes:
  - {names: fast}
  - {names: slow, compute_factor: 0.5}
"""
FAST, SLOW = 0, 1


def two_stages():
    """Four micro-batches, 1 s forward and 2 s backward a stage, nothing sent."""
    return Job(
        name="two",
        parallelism=Parallelism(pp=2),
        micro_batches=4,
        compute=Compute(micro_batch_time=3.0),
        overlap=Overlap(),
    )


@pytest.mark.parametrize(
    ("gpus", "seconds"), [((FAST, SLOW), 27.0), ((SLOW, FAST), 25.0)]
)
def test_a_slow_stage_sets_the_pace(gpus, seconds):
    """As worked out by hand; the compute is that of the slow stage."""
    machine = parse_topology(TWO, "two")
    found = score(machine, two_stages(), Placement(np.array(gpus)))
    assert found["step_time_s"] == pytest.approx(seconds)
    assert found["compute_s"] == pytest.approx(24.0)
    assert found["bubble_s"] == pytest.approx(seconds - 24.0)
    assert found["slowest_host"] == {
        "host": "slow",
        "compute_factor": 0.5,
        "replica": 0,
        "stage": gpus.index(SLOW),
    }


def test_links_are_among_the_busiest_by_name():
    """A link is named by both ends, and belongs to whoever sends over it."""
    for seed in range(40):
        case = random_case(seed)
        machine = unequal(case.topology, seed)
        found = score(machine, case.job, Placement(case.gpu_of_rank))["hottest_links"]
        by_name = [link for link in found if link["direction"].startswith("to ")]
        if by_name:
            ends = {(li.between[0], f"to {li.between[1]}") for li in machine.links}
            ends |= {(li.between[1], f"to {li.between[0]}") for li in machine.links}
            assert {(li["domain"], li["direction"]) for li in by_name} <= ends
            return
    pytest.fail("no link is ever busy")
