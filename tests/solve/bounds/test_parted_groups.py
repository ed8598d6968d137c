"""Whole numbers of parts of expert groups: tighter where they say so, never false."""

from __future__ import annotations

import random

import pytest

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.solve.bounds.cut import cut_bound
from placer.solve.problem.params import Params
from tests.solve.bounds.test_cut_against_brute_force import machine, optimum

ORDER = ("tp", "cp", "ep", "dp", "pp")


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
    alone = cut_bound(topology, job, params=Params(parted_columns=0))
    assert alone.value == 2 * (2 * 6 + 4)
    assert cut_bound(topology, job).value == 2 * (2 * 7 + 4) == optimum(topology, job)


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
