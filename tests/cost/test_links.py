"""Links between named domains, and hosts of unequal speed: the examples of the page."""

import numpy as np
import pytest

from placer.cost.fabric import Fabric
from placer.cost.network import PlacedNetwork
from placer.explain.score import score
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.parallel import Overlap
from placer.placement.placement import Placement
from placer.topology.read import parse_topology
from tests.cost.random_cases import random_case, unequal

GB = 1e9
REGIONS = """
format: placer/topology
version: 1
name: regions
tiers:
  - {name: region, size: 1, bandwidth: 4GB/s}
  - {name: cluster, bandwidth: 4GB/s, latency: 1ms}
nodes:
  - {names: "a"}
  - {names: "b"}
  - {names: "c"}
links:
  - {between: [a, b], bandwidth: 2GB/s, latency: 5ms}
  - {between: [c, b], bandwidth: 1GB/s}
"""


def network(*gpus):
    """Ranks on the GPUs of the three regions of the page."""
    return PlacedNetwork(Fabric.of(parse_topology(REGIONS, "regions")), np.array(gpus))


ALL, BOTH = np.array([[0, 1, 2]]), np.array([0, 0, 1])


@pytest.mark.parametrize(
    ("call", "seconds"),
    [
        # 4 GB on the link of 1 GB/s; of three hops, in n - 1 steps, one of 5 ms.
        (lambda: network(0, 1, 2).gather(ALL, 6 * GB), [4.0 + 2 * 7e-3 / 3]),
        # 2 GB to each other GPU, 2 s from b to c; a waits for 5 and 1 ms, b for 6.
        (lambda: network(0, 1, 2).all_to_all(ALL, 6 * GB), [2.0 + 6e-3]),
        # Two messages from b to c share the link one way; the other way it is free.
        (
            lambda: network(1, 2).send(BOTH, 1 - BOTH, 3 * GB),
            [6.001, 6.001, 3.001],
        ),
    ],
    ids=["ring", "all-to-all", "messages"],
)
def test_what_takes_the_slowest_link_it_uses(call, seconds):
    """The examples of the page."""
    assert call().seconds.tolist() == pytest.approx(seconds)


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
