"""Named links, hosts of unequal speed, bytes that are sent, rails that cannot be."""

from dataclasses import replace

import numpy as np
import pytest

from placer.base.errors import InputError
from placer.explain.score import score
from placer.job.axes import Parallelism
from placer.job.model import Collectives, Compute, ExpertParallel, Job
from placer.job.parallel import Overlap, TensorParallel
from placer.placement.placement import Placement
from placer.topology.read import parse_topology
from tests.cost.random_cases import random_case, unequal
from tests.cost.two_racks import JOB, two_racks

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


def bytes_of(axis, **changes):
    """What ranks send along an axis in a step of the toy job, changed."""
    job = replace(JOB, collectives=Collectives("ring"), **changes)
    found = score(two_racks(), job, Placement(np.arange(8)))
    return sum(found["traffic_bytes"][axis].values())


def test_bytes_are_those_of_operations():
    """Backward repeats gathers with sequence parallelism alone, 2 beside 8.

    The busiest rank of experts sets the time, not the bytes of all.
    """
    whole = bytes_of("tp", tensor_parallel=TensorParallel(sequence=False))
    assert whole == pytest.approx(bytes_of("tp") * 8 / 10)
    model = replace(JOB.model, experts=4, top_k=2, expert_ffn=256, moe_layers=4)
    experts = {"model": model, "parallelism": Parallelism(tp=2, dp=4, ep=4)}
    busy = bytes_of("ep", **experts, expert_parallel=ExpertParallel(imbalance=1.5))
    assert busy == pytest.approx(bytes_of("ep", **experts))


RAILS = """\
format: placer/topology
version: 1
name: rails
tiers:
  - {name: node, size: 4, bandwidth: 450GB/s, latency: 1us, scale_up: true}
  - {name: leaf, bandwidth: 50GB/s, latency: 5us, rails: true}
  - {name: cluster, bandwidth: 50GB/s, latency: 8us}
layout: "cluster:1 leaf:2 node:4"
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("latency: 1us, scale_up: true", "latency: 1us", "cannot reach other rails"),
        ("scale_up: true}", "scale_up: true, rails: true}", "around nodes has rails"),
        ("size: 4", "size: 64", "64 rails"),
    ],
)
def test_rails_that_cannot_be(old, new, words):
    """A fabric of rails alone needs NVLink in the node to join them."""
    with pytest.raises(InputError, match=words):
        parse_topology(RAILS.replace(old, new), "m.yaml")
