"""Whole numbers of parts of expert groups: tighter where they say so, never false."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.solve.bounds.hops.parted_groups import PartedGroups
from placer.solve.count.engine import Limits
from placer.solve.problem.params import Params
from tests.solve.bounds.hop_bound import cut_bound
from tests.solve.bounds.test_cut_against_brute_force import machine, optimum

ORDER = ("tp", "cp", "ep", "dp", "pp")
ROOT = Limits(1, engine="highs")


def experts(members: int, replicas: int, stages: int, **weights: float) -> Job:
    """Expert groups in a few replicas of a pipeline."""
    axes = Parallelism(ep=members, dp=members * replicas, pp=stages, order=ORDER)
    return Job("experts", axes, weights=weights)


def test_two_tiers_at_once_by_hand() -> None:
    """Two groups of four on nodes of two, three and three, the first in its own block.

    3 + 1 and 3 + 1 part the fewest pairs of nodes, six, but all of them also part
    blocks. Two of one group in the first block part the fewest of those, four, and with
    3 + 1 of the other seven of nodes. Six of nodes and four of blocks go not together.
    """
    topology = machine([2, 3, 3], [[0, 1, 2], [0, 1, 1], [0, 0, 0]], [0, 2, 3])
    job = experts(4, 2, 1, ep=2)
    alone = Params(parted_columns=0)
    assert cut_bound(topology, job, params=alone).value == 2 * (2 * 6 + 4)
    found = cut_bound(topology, job)
    assert found.value == 2 * (2 * 7 + 4) == optimum(topology, job)


def test_pipelines_between_blocks_by_hand() -> None:
    """Two stages of two on two nodes, each a block: both pipelines cross both."""
    topology = machine([2, 2], [[0, 1], [0, 1], [0, 0]], [0, 2, 3])
    job = experts(2, 1, 2, ep=2, pp=1)
    groups = PartedGroups.of(topology, job, [0, 1], np.array([2.0, 1.0]))
    assert groups is not None
    assert groups.least(Limits(1.0)) == (2 + 1) * 2 == optimum(topology, job)


def test_largest_part_by_hand() -> None:
    """Two stages of four on nodes of five and three: 4 + 1 and 3.

    The first node holds four runs of pipelines, one of two ranks; the second three.
    """
    topology = machine([5, 3], [[0, 1], [0, 0]], [0, 1])
    job = experts(4, 1, 2, ep=64, pp=5)
    groups = PartedGroups.of(topology, job, [0], np.array([1.0]))
    assert groups is not None
    assert groups.least(ROOT) == 3 * 64 + 3 * 5 == optimum(topology, job)


def test_sets_that_rules_keep_by_hand() -> None:
    """Two tp groups of two, tied by two pairs of experts, on nodes of three."""
    axes = Parallelism(tp=2, ep=2, etp=2, dp=2, order=ORDER)
    job = Job("sets", axes, weights={"ep": 8}, require={"tp": "t0"})
    topology = machine([3, 3], [[0, 1], [0, 0]], [0, 1])
    kept, free = (
        PartedGroups.of(topology, one, [0], np.array([1.0]))
        for one in (job, replace(job, require={}))
    )
    assert kept is not None
    assert free is not None
    assert kept.least(ROOT) == 2 * 8
    assert free.least(ROOT) == 0


def test_coarse_parts_with_heavy_pipelines() -> None:
    """Pipelines heavier than experts: cheapest parts are no multiples of two there.

    Two stages of four on nodes of two and six. A pipeline on the node of two parts six
    pairs; two ranks of a stage part four and cut two pipelines.
    """
    topology = machine([2, 6], [[0, 1], [0, 0]], [0, 1])
    job = experts(4, 1, 2, ep=1, pp=100)
    groups = PartedGroups.of(topology, job, [0], np.array([1.0]))
    assert groups is not None
    assert groups.grain == 2
    assert groups.least(ROOT) <= optimum(topology, job)


@pytest.mark.parametrize("seed", range(40))
def test_parts_of_both_tiers_cost_no_more(seed: int) -> None:
    """Random pipelines in blocks, by either engine: never above the best placement."""
    rng = random.Random(seed)
    size = rng.choice(((2, 2, 2), (2, 1, 3), (3, 1, 2), (2, 1, 4), (2, 3, 1)))
    weights = {"ep": rng.choice((2, 8, 64)), "pp": rng.choice((1, 2, 40, 64))}
    job = experts(*size, **weights, edp=rng.choice((0, 1, 4, 20)))
    gpus = [rng.randint(1, 3) for _ in range(4)]
    gpus[0] += max(0, job.world_size - sum(gpus))
    blocks = rng.choice(([0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 1, 2]))
    near = rng.choice((1, 5, 9))
    topology = machine(gpus, [[0, 1, 2, 3], blocks, [0] * 4], [0, near, 10])
    rises = np.array([near, 10 - near], dtype=float)
    groups = PartedGroups.of(topology, job, [0, 1], rises)
    assert groups is not None
    best = optimum(topology, job) * (1 + 1e-9)
    assert groups.least(Limits(1.0)) <= best
    assert groups.least(ROOT) <= best


@pytest.mark.parametrize("seed", range(40))
def test_no_placement_costs_less(seed: int) -> None:
    """Random groups, pipelines and rooms: every placement costs the bound or more."""
    rng = random.Random(seed)
    members, replicas, stages = rng.choice(
        ((2, 2, 2), (3, 2, 1), (4, 2, 1), (2, 1, 3), (3, 1, 2))
    )
    weights = {"ep": rng.choice((2, 8, 64)), "pp": rng.choice((0, 1, 40, 64))}
    job = experts(members, replicas, stages, **weights, edp=rng.choice((0, 4, 20)))
    gpus = [rng.randint(1, 4) for _ in range(4)]
    gpus[0] += max(0, job.world_size - sum(gpus))
    rows = [[0, 1, 2, 3], rng.choice(([0, 0, 1, 1], [0, 1, 1, 1])), [0, 0, 0, 0]]
    topology = machine(gpus, rows, [0, rng.choice((1, 9)), 10])
    bound = cut_bound(topology, job)
    assert bound.value <= optimum(topology, job) * (1 + 1e-9)
