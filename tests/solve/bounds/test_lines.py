"""Parts of rings and cliques add up, in whole numbers: tighter so, and never false."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.cluster_jobs import drawn
from benchmarks.generate import random_case
from placer.cost.hop_cost import hop_cost
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.placement import Placement
from placer.solve.problem.params import Params
from tests.marks import slow
from tests.solve.bounds.hop_bound import cut_bound
from tests.solve.bounds.test_cut_against_brute_force import machine, optimum

ORDER = ("tp", "cp", "ep", "dp", "pp")
WITHOUT = Params(part_columns=0)


def nodes_of(*gpus: int) -> list[list[int]]:
    """Rows of domains of a machine of nodes."""
    return [[*range(len(gpus))], [0] * len(gpus)]


def rings(lines: int, size: int, across: float, along: float) -> Job:
    """So many data-parallel rings, neighbours joined member by member."""
    axes = Parallelism(cp=lines, dp=size, order=ORDER)
    return Job("rings", axes, weights={"cp": across, "dp": along})


def experts(members: int, replicas: int, stages: int, **weights: float) -> Job:
    """Expert groups in a few replicas of a pipeline."""
    axes = Parallelism(ep=members, dp=members * replicas, pp=stages, order=ORDER)
    return Job("experts", axes, weights=weights)


def test_two_rings_by_hand() -> None:
    """Rings of three on nodes of two: four parts, and two of three edges across."""
    topology = machine([2, 2, 2], nodes_of(2, 2, 2), [0, 1])
    job = rings(2, 3, 1, 10)
    assert cut_bound(topology, job, params=WITHOUT).value == 33
    assert cut_bound(topology, job).value == 4 * 10 + 2 == optimum(topology, job)


def test_context_rings_by_hand() -> None:
    """The same two rings along cp, which are two stages of a pipeline."""
    topology = machine([2, 2, 2], nodes_of(2, 2, 2), [0, 1])
    axes = Parallelism(cp=3, pp=2, order=ORDER)
    job = Job("rings", axes, weights={"cp": 10, "pp": 1})
    assert cut_bound(topology, job).value == 4 * 10 + 2 == optimum(topology, job)
    assert cut_bound(topology, job, params=WITHOUT).value < 42


def test_experts_by_hand() -> None:
    """Two cliques of three on nodes of two: each loses at least two of its edges.

    Parts of two from either clique fill two nodes and the single ones a third.
    """
    topology = machine([2, 2, 2], nodes_of(2, 2, 2), [0, 1])
    axes = Parallelism(ep=3, dp=6, order=ORDER)
    job = Job("experts", axes, weights={"ep": 1})
    assert cut_bound(topology, job).value == 4 == optimum(topology, job)
    assert cut_bound(topology, job, params=WITHOUT).value < 4


def test_two_tiers_at_once_by_hand() -> None:
    """Two groups of four on nodes of two, three and three, the first in its own block.

    3 + 1 and 3 + 1 part the fewest pairs of nodes, six, but all of them also part
    blocks. Two of one group in the first block part the fewest of those, four, and with
    3 + 1 of the other seven of nodes. Six of nodes and four of blocks go not together.
    """
    topology = machine([2, 3, 3], [[0, 1, 2], [0, 1, 1], [0, 0, 0]], [0, 2, 3])
    job = experts(4, 2, 1, ep=2)
    assert cut_bound(topology, job, params=WITHOUT).value < 2 * (2 * 6 + 4)
    assert cut_bound(topology, job).value == 2 * (2 * 7 + 4) == optimum(topology, job)


def test_pipelines_between_blocks_by_hand() -> None:
    """Two stages of two on two nodes, each a block: both pipelines cross both."""
    topology = machine([2, 2], [[0, 1], [0, 1], [0, 0]], [0, 2, 3])
    job = experts(2, 1, 2, ep=2, pp=1)
    assert cut_bound(topology, job).value == (2 + 1) * 2 == optimum(topology, job)


def test_largest_part_by_hand() -> None:
    """Two stages of four on nodes of five and three: 4 + 1 and 3.

    The first node holds four runs of pipelines, one of two ranks; the second three.
    """
    topology = machine([5, 3], [[0, 1], [0, 0]], [0, 1])
    job = experts(4, 1, 2, ep=64, pp=5)
    least = 3 * 64 + 3 * 5
    assert cut_bound(topology, job).value == least == optimum(topology, job)


def test_sets_that_rules_keep_by_hand() -> None:
    """Two tp groups of two, tied by two pairs of experts, on nodes of three."""
    axes = Parallelism(tp=2, ep=2, etp=2, dp=2, order=ORDER)
    job = Job("sets", axes, weights={"ep": 8}, require={"tp": "t0"})
    topology = machine([3, 3], [[0, 1], [0, 0]], [0, 1])
    assert cut_bound(topology, job).value == 2 * 8
    assert cut_bound(topology, replace(job, require={})).value == 0


def test_coarse_parts_with_heavy_pipelines() -> None:
    """Pipelines heavier than experts: cheapest parts are no multiples of two there.

    Two stages of four on nodes of two and six. A pipeline on the node of two parts six
    pairs; two ranks of a stage part four and cut two pipelines.
    """
    topology = machine([2, 6], [[0, 1], [0, 0]], [0, 1])
    job = experts(4, 1, 2, ep=1, pp=100)
    assert cut_bound(topology, job).value <= optimum(topology, job)


def test_a_machine_of_hosts_with_holes() -> None:
    """Units of hosts hold no whole number of rings of 16: the cut is 28 % larger."""
    topology, job = random_case(26)
    job = replace(job, require={"tp": "node"})
    assert cut_bound(topology, job, params=WITHOUT).cut_per_tier[1] == 36_864
    assert cut_bound(topology, job).cut_per_tier[1] >= 47_104


def test_tensor_groups_that_no_rule_keeps_whole() -> None:
    """Context rings of eight in racks of uneven room: they come in whole tp groups."""
    draw = drawn(25)
    job = replace(draw.job, require={})
    assert cut_bound(draw.topology, job).value >= 2_320_000


@pytest.mark.parametrize("tensor", slow([1, 8]))
def test_a_ring_of_a_million_ranks(tensor: int) -> None:
    """Rings over a regular machine of 1,048,576 GPUs are proved optimal in order."""
    nodes = np.arange(131_072)
    rows = [nodes, nodes // 512, nodes // 8_192, 0 * nodes]
    topology = machine([8] * len(nodes), [row.tolist() for row in rows], [1, 3, 9, 12])
    axes = Parallelism(tp=tensor, dp=1_048_576 // tensor, etp=tensor, order=ORDER)
    job = Job("rings", axes, weights={"tp": 4_000, "dp": 4})
    in_order = Placement(np.arange(job.world_size))
    assert cut_bound(topology, job).value == hop_cost(topology, job, in_order)


@pytest.mark.parametrize("seed", [*range(10), *slow(range(10, 60))])
def test_no_placement_cuts_less(seed: int) -> None:
    """Tensor, pipeline and expert edges beside rings: the bound is at most the best."""
    rng = random.Random(seed)
    tp, cp, pp, dp = rng.choice(
        ((1, 2, 1, 3), (1, 1, 2, 3), (2, 1, 1, 3), (1, 1, 2, 4), (1, 1, 1, 6))
    )
    axes = Parallelism(tp=tp, cp=cp, pp=pp, dp=dp, etp=tp, order=ORDER)
    if rng.random() < 0.4:
        axes = replace(axes, etp=1, ep=tp * rng.choice((1, dp)))
    weights = {axis: rng.choice((1, 3, 8, 0.5)) for axis in ("tp", "cp", "pp", "ep")}
    weights |= {axis: rng.choice((5, 20, 100)) for axis in ("dp", "edp")}
    job = Job("random", axes, weights=weights)
    gpus = [2] * (job.world_size // 2)
    gpus[0] += rng.choice((0, 0, 1, 2))
    topology = machine(gpus, nodes_of(*gpus), [rng.choice((0, 1)), 3])
    assert cut_bound(topology, job).value <= optimum(topology, job) + 1e-9


@pytest.mark.parametrize("seed", [*range(40), *slow(range(40, 200))])
def test_no_placement_of_groups_costs_less(seed: int) -> None:
    """Random groups, pipelines, rooms and blocks: every placement costs the bound."""
    rng = random.Random(seed)
    members, replicas, stages = rng.choice(
        ((2, 2, 2), (3, 2, 1), (4, 2, 1), (2, 1, 3), (3, 1, 2), (2, 3, 1), (2, 1, 4))
    )
    weights = {"ep": rng.choice((2, 8, 64)), "pp": rng.choice((0, 1, 40, 64))}
    job = experts(members, replicas, stages, **weights, edp=rng.choice((0, 1, 4, 20)))
    gpus = [rng.randint(1, 4) for _ in range(4)]
    gpus[0] += max(0, job.world_size - sum(gpus))
    blocks = rng.choice(([0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 1, 2]))
    topology = machine(
        gpus, [[0, 1, 2, 3], blocks, [0] * 4], [0, rng.choice((1, 5, 9)), 10]
    )
    bound = cut_bound(topology, job)
    assert bound.value <= optimum(topology, job) * (1 + 1e-9)
