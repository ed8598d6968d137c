"""Chains of nodes that hold runs of ranks, annealed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from placer.job.model import Compute
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.construct.by_nodes import walked_chains
from placer.solve.construct.by_nodes.chain_kinds import cut_chains, least_parts
from placer.solve.construct.by_nodes.cut_at_nodes import cut_fills
from placer.solve.construct.by_nodes.walked_chains import ChainWalk, Row, chain_fills
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from tests.solve.construct.test_whole_first import job, machine

# The larger the least part of a unit of 8, the faster.
SECONDS = np.array([0.0, 0.8, 0.7, 0.6, 0.5, 0.0, 0.0, 0.0, 0.1])
# Half of 24 groups are whole; 15 hosts of 7 are left for the others.
HOSTS = machine([8] * 12 + [7] * 15, [0] * 6 + [1] * 6 + [0] * 8 + [1] * 7)
GROUPS = replace(
    job(tp=1, ep=8, pp=4, dp=48, vp=2),
    compute=Compute(micro_batch_time=0.005),
    launcher="node-contiguous",
)


def test_least_parts_by_hand() -> None:
    """6 and 2, 5 and 3, then four of a unit that has begun; whole units by parts."""
    assert least_parts((6, 7, 7), 8) == (2, 3, 4)
    assert least_parts((9, 7), 4) == (4, 4, 1, 4)
    assert least_parts((16,), 8) == (8, 8)


def test_chains_are_those_that_none_is_as_good_as() -> None:
    """Two units on three hosts of 7: 4 + 4 and 3 + 5, in either order."""
    found = list(cut_chains(3, 8, 2, [7], SECONDS))
    by_units = {
        units: {one.least: len(one.rooms) for one in found if len(one.least) == units}
        for units in (1, 2, 3)
    }
    assert by_units[1] == {(4,): 2}
    assert by_units[2] == {(4, 3): 3, (3, 4): 3}
    assert by_units[3] == {
        (3, 4, 3): 4,
        (4, 3, 2): 4,
        (2, 3, 4): 4,
        (4, 2, 4): 5,
    }
    for one in found:
        assert least_parts(one.held, 8) == one.least
        assert all(a <= b for a, b in zip(one.held, one.rooms, strict=True))


@pytest.fixture(scope="module")
def start() -> tuple[Problem, np.ndarray]:
    """The problem, and chains as they come, those that are cut first."""
    problem = Problem.of(HOSTS, GROUPS, "time")
    row = Row.of(problem)
    _, gpus = next(cut_fills(problem))
    assert row is not None
    chains = row.chains(HOSTS.node_of_gpu[gpus])
    assert chains is not None
    nodes = row.node_of_rank(sorted(chains), ("dp", "pp"))
    return problem, Placement.on_nodes(HOSTS, nodes).gpu_of_rank


@pytest.fixture(autouse=True)
def few_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Walks that take a tenth of a second."""
    monkeypatch.setattr(walked_chains, "MOST_CHANGES", 5_000)


def test_chains_of_a_placement_are_laid_as_they_were(
    start: tuple[Problem, np.ndarray],
) -> None:
    """All nodes hold what they held, whichever of equal room they are."""
    problem, gpus = start
    row = Row.of(problem)
    assert row is not None
    chains = row.chains(HOSTS.node_of_gpu[gpus])
    assert chains is not None
    nodes = row.node_of_rank(chains, ("pp", "dp"))
    assert row.chains(nodes) == chains
    assert problem.allows(Placement.on_nodes(HOSTS, nodes).gpu_of_rank)


def test_a_walk_uses_each_node_once_and_makes_steps_shorter(
    start: tuple[Problem, np.ndarray],
) -> None:
    """Whatever chains become, all units are there, and no node is used twice."""
    problem, gpus = start
    row = Row.of(problem)
    assert row is not None
    chains = row.chains(HOSTS.node_of_gpu[gpus])
    assert chains is not None
    walk = ChainWalk(row, row.kinds(2), chains, [0])
    walk.go(Budget(60))
    assert row.steps(walk.best).max() < 0.99 * row.steps(chains).max()
    assert sum(len(chain.least) for chain in walk.best) == 24
    used = Counter(room for chain in walk.best for room in chain.rooms)
    assert used[8] <= 12
    assert used[7] <= 15
    used = Counter(room for chain in walk.chains for room in chain.rooms)
    assert all(walk.free[room] == n - used[room] for room, n in ((8, 12), (7, 15)))


def test_what_is_found_is_offered(start: tuple[Problem, np.ndarray]) -> None:
    """The step itself is shorter too, and the checker finds nothing."""
    problem, gpus = start
    found = Incumbent(problem, Budget(60))
    found.offer("start", gpus)
    found.offer_all(chain_fills(problem, found, Budget(60)))
    assert found.value < 0.99 * problem.goal.value(gpus)
    assert found.gpu_of_rank is not None
    assert not violations(Placement(found.gpu_of_rank), HOSTS, GROUPS)
