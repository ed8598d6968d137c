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
from tests.solve.bounds.test_certain import TIERS as THIN_TIERS
from tests.solve.bounds.test_certain import job as certain_job
from tests.solve.construct.test_whole_first import job, machine
from tests.solve.machines import MODEL, machine_of_islands
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


def test_groups_are_cut_where_nodes_end() -> None:
    """In order, groups of 8 are cut into 7 and 1, and steps take up to twice as long.

    Of twelve groups eight nodes hold one each; of the six others three hold two.
    """
    gpus = [8, 8, 7, 8, 7, 8, 7] * 2
    hosts = machine_of(gpus, [[0] * 7 + [1] * 7, [0] * 14], TIERS)
    order = ("tp", "cp", "ep", "pp", "dp")
    axes = Parallelism(tp=8, pp=4, dp=3, order=order)
    compute = Compute(micro_batch_time=0.05)
    dense = Job("dense", axes, MODEL, 4096, micro_batches=8, compute=compute)
    found = solved(hosts, dense, 0.01)
    assert found.lower_bound > 0.989 * found.value


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
    assert found.lower_bound > 0.974 * found.value


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


def test_a_brief_walk_comes_before_all_races() -> None:
    """Whoever waits has something better soon, however long races take."""
    problem = Problem.of(HOSTS, GROUPS, "time").with_params(races=0)
    found = known(problem, placed((0, 4)))
    before = found.value
    annealed_step(problem, found, found.budget)
    assert found.value < 0.99 * before


def test_groups_that_nodes_cut_come_together_behind_thin_uplinks() -> None:
    """Tensor groups of 4 on two hosts of 2, each from two racks, find one rack each."""
    tiers = [*THIN_TIERS[:-1], replace(THIN_TIERS[-1], oversubscription=8.0)]
    hosts = machine_of([2] * 16, [np.repeat(range(4), 4).tolist(), [0] * 16], tiers)
    given = replace(certain_job("node-contiguous", tp=4, dp=8), sequence=8192)
    apart = np.repeat(np.arange(16).reshape(4, 4).T.ravel(), 2)
    problem = Problem.of(hosts, given, "time")
    nodes = (np.repeat(np.arange(16), 2), apart)
    together, start = (Placement.on_nodes(hosts, one).gpu_of_rank for one in nodes)
    found = annealed(problem, start, problem.goal.value(together))
    rack = hosts.domain_of_gpu[1][found].reshape(8, 4)
    assert (rack == rack[:, :1]).all()


def test_groups_are_cut_between_islands_of_hosts_in_turn() -> None:
    """Islands of 4 and 3, then of 3 and 4: of groups of two only two are cut."""
    island = Tier("island", 450e9, 1e-6, True, 1.0, 0.8, 1.0)
    node = Tier("node", 60e9, 2e-6, False, 1.0, 0.8, 4.0)
    cluster = Tier("cluster", 50e9, 8e-6, False, 1.0, 1.0, 9.0)
    hosts = machine_of_islands([(4, 3), (4, 4), (3, 4), (3, 3)])
    hosts = replace(hosts, tiers=(island, node, cluster))
    weights = {"tp": 100.0, "dp": 1.0}
    pairs = Job("pairs", Parallelism(tp=2, dp=14), weights=weights)
    found = solved(hosts, pairs, 0.0, "hop-cost")
    at = hosts.node_of_gpu[found.placement.gpu_of_rank].reshape(-1, 2)
    assert (at[:, 0] != at[:, 1]).sum() == 2
