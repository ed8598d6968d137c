"""Room to spare on nodes that differ is used otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from placer.job.model import Compute
from placer.placement.placement import Placement
from placer.solve.exact.enumeration import every_placement
from placer.solve.improve.room_search import Run, room_annealed, runs_of
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.solve.search import solve
from tests.api.test_islands import machine as island_hosts
from tests.solve.construct.test_whole_first import job, machine

# Ten replicas on 14 GPUs: the ring is as fast as the node with the fewest of them.
HOSTS = machine([4, 4, 2, 4], [0] * 4)
RING = replace(
    job(tp=1, dp=10),
    compute=Compute(micro_batch_time=0.001),
    launcher="node-contiguous",
)
FEW_NICS = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]


def searched(launcher: str) -> Incumbent:
    """The search from two full nodes and the smallest."""
    problem = Problem.of(HOSTS, replace(RING, launcher=launcher), "time")
    found = Incumbent(problem, Budget(60))
    found.offer("start", Placement.on_nodes(HOSTS, np.array(FEW_NICS)).gpu_of_rank)
    room_annealed(problem, found, Budget(60))
    return found


def test_no_node_has_few_members_where_there_is_room() -> None:
    """From a node of two the best of all placements is found."""
    problem = Problem.of(HOSTS, RING, "time")
    every = every_placement(problem, Budget(60))
    assert every.complete
    gpus = (Placement.on_nodes(HOSTS, n).gpu_of_rank for n in every.nodes_of_rank)
    best = min(problem.goal.value(one) for one in gpus)
    start = problem.goal.value(
        Placement.on_nodes(HOSTS, np.array(FEW_NICS)).gpu_of_rank
    )
    found = searched("node-contiguous")
    assert start > 1.01 * best
    assert found.value == pytest.approx(best, rel=1e-12)
    assert found.gpu_of_rank is not None
    assert problem.allows(found.gpu_of_rank)


def test_single_ranks_are_not_moved() -> None:
    """A free launch has searches of its own."""
    assert searched("free").method == "start"


def test_a_node_that_comes_again_has_two_runs() -> None:
    """A row has its nodes in the order of their ranks."""
    row = runs_of(np.array([1, 1, 0, 1]))
    assert row == (Run(1, 2), Run(0, 1), Run(1, 1))


def test_a_search_uses_the_room_of_hosts() -> None:
    """Where enumeration lists nothing, no uplink is left to one NIC."""
    problem = Problem.of(HOSTS, RING, "time").with_params(
        listed={"time": 1}, listed_sample=0, listed_units=0
    )
    found = solve(problem, Budget(60))
    assert found.value == pytest.approx(searched("node-contiguous").value, rel=1e-12)


def test_islands_that_are_counted_in_turn_are_left_alone() -> None:
    """Where a launcher counts across islands, no run has all ranks of one."""
    topology = island_hosts({}, {}, size=3, members=[[0, 2, 4], [1, 3, 5]])
    for seed in range(5):
        problem = Problem.of(topology, RING, "time", seed)
        found = Incumbent(problem, Budget(60))
        order = np.argsort(topology.index_of_gpu[:6])
        found.offer("start", np.concatenate([order, 6 + order])[2:])
        room_annealed(problem, found, Budget(60))
        assert found.gpu_of_rank is not None
        assert problem.allows(found.gpu_of_rank)
