"""Annealing of units over domains."""

from __future__ import annotations

import numpy as np
import pytest

from placer.solve.improve.annealer import Annealer, Placed, Rooms
from placer.solve.improve.graph import UnitGraph, unit_graph
from placer.solve.run.budget import Budget
from placer.solve.run.move_counts import MoveCounts

COPIES, UNITS, DOMAINS = 3, 12, 4
HOT, COLD = np.full(COPIES, 20.0), np.full(COPIES, 0.5)


def _annealer(seed: int) -> Annealer:
    """Three copies of twelve units of 1 or 2 ranks in four domains of two pairs."""
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(UNITS, k=1)
    chosen = rng.random(len(first)) < 0.3
    edges = np.stack((first, second), axis=1)[chosen]
    offset = np.arange(COPIES)[:, None, None] * UNITS
    every = (edges + offset).reshape(-1, 2)
    weight = np.tile(rng.integers(1, 9, len(edges)).astype(float), COPIES)
    size = np.tile(rng.integers(1, 3, UNITS), COPIES)
    graph = unit_graph(every, weight, np.arange(COPIES * UNITS), size)
    home = np.tile(np.arange(UNITS) % DOMAINS, COPIES)
    held = np.bincount(home[:UNITS], size[:UNITS], DOMAINS).astype(np.int64)
    capacity = held + np.array([0, 1, 2, 0])
    pair = np.arange(DOMAINS) // 2
    distance = 1.0 + 3 * (~np.eye(DOMAINS, dtype=bool))
    distance += 2 * (pair[:, None] != pair[None, :])
    rooms = Rooms(capacity, distance, np.zeros(DOMAINS, dtype=np.int64))
    copy = np.repeat(np.arange(COPIES), UNITS)
    return Annealer(graph, Placed(copy, home), rooms, rng, MoveCounts())


def _again(annealer: Annealer) -> Annealer:
    return Annealer(
        annealer.graph,
        Placed(annealer.copy, annealer.home),
        annealer.rooms,
        np.random.default_rng(0),
        MoveCounts(),
    )


@pytest.mark.parametrize("seed", range(5))
def test_simultaneous_changes_have_exactly_the_effect_they_are_judged_by(
    seed: int,
) -> None:
    """After thousands of changes the running costs equal those counted afresh."""
    annealer = _annealer(seed)
    start = annealer.home.copy()
    annealer.run(HOT, COLD, 1e5, Budget(60.0))
    assert (annealer.home != start).any()
    fresh = _again(annealer)
    np.testing.assert_allclose(annealer.pull, fresh.pull, atol=1e-6)
    np.testing.assert_array_equal(annealer.free, fresh.free)


@pytest.mark.parametrize("seed", range(5))
def test_no_domain_is_ever_too_full(seed: int) -> None:
    """Units of several sizes never take more room than a domain has."""
    annealer = _annealer(seed)
    annealer.run(HOT, COLD, 1e5, Budget(60.0))
    for copy in range(COPIES):
        mine = annealer.copy == copy
        held = np.bincount(annealer.home[mine], annealer.graph.size[mine], DOMAINS)
        assert (held <= annealer.rooms.capacity).all()


def test_units_stay_behind_their_fence() -> None:
    """No unit leaves the domains that carry the number of its own."""
    annealer = _annealer(0)
    fence = np.array([0, 0, 1, 1])
    annealer.rooms = annealer.rooms._replace(fence=fence)
    before = fence[annealer.home]
    annealer.run(HOT, COLD, 1e5, Budget(60.0))
    np.testing.assert_array_equal(fence[annealer.home], before)


def test_two_full_domains_exchange_units() -> None:
    """Without free room, pairs that belong together are joined by a swap."""
    graph = UnitGraph(
        size=np.ones(4, dtype=np.int64),
        neighbour=np.array([[1], [0], [3], [2]]),
        weight=np.ones((4, 1)),
        degree=np.ones(4, dtype=np.int64),
    )
    distance = np.array([[1.0, 5.0], [5.0, 1.0]])
    rooms = Rooms(np.array([2, 2]), distance, np.zeros(2, dtype=np.int64))
    home = np.array([0, 1, 0, 1])
    copy = np.zeros(4, dtype=np.int64)
    placed, rng = Placed(copy, home), np.random.default_rng(0)
    annealer = Annealer(graph, placed, rooms, rng, MoveCounts())
    annealer.run(np.array([0.1]), np.array([0.01]), 2e4, Budget(60.0))
    assert annealer.home[0] == annealer.home[1]
    assert annealer.home[2] == annealer.home[3]
    assert annealer.home[0] != annealer.home[2]
