"""Stretches of a launch by nodes change places."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from placer.job.model import Compute
from placer.placement.placement import Placement
from placer.solve.improve.stretch_search import stretches_annealed, stretches_of
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from tests.marks import slow
from tests.solve.construct.test_whole_first import job, machine

# 14 of 16 groups are whole, two lie in halves on two hosts of 7 each.
HOSTS = machine([8] * 14 + [7] * 4, [0] * 18)
WHOLE, HALVES = list(range(14)), [(14, 15), (16, 17)]
GROUPS = replace(
    job(tp=1, ep=8, pp=4, dp=32, vp=2),
    compute=Compute(micro_batch_time=0.005),
    launcher="node-contiguous",
)


def placed(halved: tuple[int, ...]) -> np.ndarray:
    """GPU of every rank when such groups are those in halves."""
    whole, halves = iter(WHOLE), iter(HALVES)
    nodes = [
        np.repeat(next(halves), 4) if group in halved else np.repeat(next(whole), 8)
        for group in range(16)
    ]
    return Placement.on_nodes(HOSTS, np.concatenate(nodes)).gpu_of_rank


@cache
def best_of_all() -> float:
    """Step time of the best of all pairs in halves, s."""
    problem = Problem.of(HOSTS, GROUPS, "time")
    return min(problem.goal.value(placed(pair)) for pair in combinations(range(16), 2))


@pytest.mark.parametrize("start", slow([(0, 4), (1, 13)]))
def test_no_replica_waits_for_two_halved_groups(start: tuple[int, int]) -> None:
    """From two in one replica the best of all places for them is found."""
    problem = Problem.of(HOSTS, GROUPS, "time")
    found = Incumbent(problem, Budget(60))
    found.offer("start", placed(start))
    stretches_annealed(problem, found, Budget(60))
    best = best_of_all()
    assert problem.goal.value(placed(start)) > 1.01 * best
    assert found.value == pytest.approx(best, rel=1e-4)
    assert found.gpu_of_rank is not None
    assert problem.allows(found.gpu_of_rank)


def test_stretches_begin_and_end_with_nodes() -> None:
    """Three groups of 4 that nodes of 3 cut are one stretch."""
    node_of_rank = np.repeat([0, 1, 2, 3, 4], [4, 3, 3, 3, 3])
    found = stretches_of(node_of_rank, 4)
    assert [len(one) for one in found] == [4, 12]


def test_groups_that_are_all_whole_are_left_alone() -> None:
    """Where stretches look alike there is nothing to exchange."""
    hosts = machine([8] * 16, [0] * 16)
    problem = Problem.of(hosts, GROUPS, "time")
    found = Incumbent(problem, Budget(60))
    found.offer("start", np.arange(GROUPS.world_size))
    stretches_annealed(problem, found, Budget(60))
    assert found.method == "start"
