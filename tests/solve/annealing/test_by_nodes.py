"""Launches by nodes, on machines whose best launches are known."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.placement.placement import Placement
from placer.solve.annealing.annealed_step import annealed_step
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.score.kernel import is_built
from placer.solve.search import solve
from placer.topology.model import Tier
from tests.marks import slow
from tests.solve.construct.test_whole_groups import job, machine
from tests.solve.machines import MODEL
from tests.solve.random_cases import machine_of
from tests.solve.solving import known

if TYPE_CHECKING:
    from placer.base.arrays import IntArray
    from placer.solve.run.solution import Solution
    from placer.topology.machine import Machine
    from placer.topology.model import Topology

pytestmark = pytest.mark.skipif(not is_built(), reason="the compiled part is not built")

TIERS = [
    Tier("node", 450e9, 1e-6, True, 1.0, 0.8, 1.0),
    Tier("leaf", 50e9, 5e-6, False, 1.0, 1.0, 9.0),
    Tier("cluster", 50e9, 8e-6, False, 1.0, 1.0, 11.0),
]


def solved(
    hosts: Topology | Machine, work: Job, gap: float, objective: str = "time"
) -> Solution:
    """What is found until it is so near its bound, relative to the value."""
    problem = Problem.of(hosts, work, objective).with_params(enough_gap=gap)
    found = solve(problem, Budget(60.0))
    assert problem.allows(found.placement.gpu_of_rank)
    return found


def annealed(problem: Problem, start: np.ndarray, enough: float) -> IntArray:
    """What is annealed from one placement until it costs no more."""
    wanted = problem.with_params(enough_value=enough)
    found = known(wanted, start)
    assert found.value > enough
    annealed_step(wanted, found, found.budget)
    assert problem.allows(found.best)
    return found.best


@pytest.mark.slow
def test_the_hop_cost_of_nodes_of_seven_and_eight_is_near_its_bound() -> None:
    """A rule keeps context groups in leaves; cut all alike they cost 17 % more."""
    eights = [6, 4, 6, 5, 8]
    gpus = [8 if node < eight else 7 for eight in eights for node in range(9)]
    hosts = machine_of(gpus, [[n // 9 for n in range(45)], [0] * 45], TIERS)
    long_context = Job(
        "long context",
        Parallelism(tp=4, cp=8, dp=10),
        MODEL,
        4096,
        compute=Compute(micro_batch_time=0.02),
        weights={"tp": 4000, "cp": 400, "dp": 4},
        require={"cp": "leaf"},
    )
    found = solved(hosts, long_context, 0.025, "hop-cost")
    assert found.lower_bound > 0.952 * found.value


def test_nodes_end_where_stages_do() -> None:
    """A stage of 13 x 2 ranks takes seven nodes of 4, the last one half: a rack."""
    tiers = [
        Tier("node", 900e9, 1e-6, True, 1.0, 1.0, 1.0),
        Tier("rack", 900e9, 1e-6, True, 1.0, 1.0, 1.0),
        Tier("cluster", 100e9, 8e-6, False, 1.0, 1.0, 18.0),
    ]
    hosts = machine_of([4] * 56, [[n // 7 for n in range(56)], [0] * 56], tiers)
    weights = {"tp": 1000.0, "pp": 1.0, "dp": 100.0}
    odd = Job("odd", Parallelism(tp=2, pp=8, dp=13), weights=weights)
    found = solved(hosts, odd, 0.0, "hop-cost")
    inside_racks = 8 * (13 * 1000 + 26 * 100)
    assert found.value == inside_racks + 7 * 26 * 18


# 14 of 16 groups are whole, two lie in halves on two hosts of 7 each.
HOSTS = machine([8] * 14 + [7] * 4, [0] * 18)
GROUPS = replace(
    job(tp=1, ep=8, pp=4, dp=32, vp=2),
    compute=Compute(micro_batch_time=0.005),
    launcher="node-contiguous",
)


def placed(halved: tuple[int, ...]) -> np.ndarray:
    """GPU of every rank when such groups are those in halves."""
    whole, halves = iter(range(14)), iter([(14, 15), (16, 17)])
    nodes = [
        np.repeat(next(halves), 4) if group in halved else np.repeat(next(whole), 8)
        for group in range(16)
    ]
    return Placement.on_nodes(HOSTS, np.concatenate(nodes)).gpu_of_rank


@cache
def best_of_halves() -> float:
    """Step time of the best of all pairs in halves, s."""
    problem = Problem.of(HOSTS, GROUPS, "time")
    return min(problem.goal.value(placed(pair)) for pair in combinations(range(16), 2))


@pytest.mark.parametrize("start", [(0, 4), *slow([(1, 13)])])
def test_no_replica_waits_for_two_groups_in_halves(start: tuple[int, int]) -> None:
    """From two in one replica the best of all places for them is found."""
    problem = Problem.of(HOSTS, GROUPS, "time")
    best, before = best_of_halves(), problem.goal.value(placed(start))
    found = annealed(problem, placed(start), best * (1 + 1e-4))
    assert problem.goal.value(found) <= best * (1 + 2e-4)
    assert before > 1.01 * best
