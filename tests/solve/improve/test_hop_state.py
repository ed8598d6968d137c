"""Annealing of units over domains."""

from __future__ import annotations

import numpy as np
import pytest

from placer.solve.improve.anneal import anneal
from placer.solve.improve.hop_search import unit_graph
from placer.solve.improve.hop_state import HopState, Placed, Rooms, UnitGraph
from placer.solve.problem.params import Params
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import MoveCounts

COPIES, UNITS, DOMAINS = 3, 12, 4


def _state(seed: int) -> HopState:
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
    return HopState(graph, Placed(copy, home), rooms, rng, Params())


def _again(state: HopState) -> HopState:
    placed, rng = Placed(state.copy, state.home), np.random.default_rng(0)
    return HopState(state.graph, placed, state.rooms, rng, Params())


def _walk(state: HopState, hot: float = 20.0, cold: float = 0.5) -> MoveCounts:
    """Anneal for a tenth of a second; how often each move was tried."""
    counts, copies = MoveCounts(), np.ones(state.copies)
    anneal(state.cool(hot * copies, cold * copies, 1e5), Budget(60.0), counts)
    return counts


@pytest.mark.parametrize("seed", range(5))
def test_simultaneous_changes_have_exactly_the_effect_they_are_judged_by(
    seed: int,
) -> None:
    """After thousands of changes the running costs equal those counted afresh."""
    state = _state(seed)
    start = state.home.copy()
    _walk(state)
    assert (state.home != start).any()
    fresh = _again(state)
    np.testing.assert_allclose(state.pull, fresh.pull, atol=1e-6)
    np.testing.assert_array_equal(state.free, fresh.free)


@pytest.mark.parametrize("seed", range(5))
def test_no_domain_is_ever_too_full(seed: int) -> None:
    """Units of several sizes never take more room than a domain has."""
    state = _state(seed)
    _walk(state)
    for copy in range(COPIES):
        mine = state.copy == copy
        held = np.bincount(state.home[mine], state.graph.size[mine], DOMAINS)
        assert (held <= state.rooms.capacity).all()


def test_units_stay_in_their_enclosure() -> None:
    """No unit leaves the domains that carry the number of its own."""
    state = _state(0)
    enclosure = np.array([0, 0, 1, 1])
    state.rooms = state.rooms._replace(enclosure=enclosure)
    before = enclosure[state.home]
    _walk(state)
    np.testing.assert_array_equal(enclosure[state.home], before)


def test_every_move_is_tried_and_helps() -> None:
    """Where there is free room, units move as well as change places."""
    counts = _walk(_state(0)).as_dict()
    assert set(counts) == {"swap units", "move unit"}
    assert all(0 < one["helped"] < one["tried"] for one in counts.values())


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
    state = HopState(graph, placed, rooms, rng, Params())
    _walk(state, 0.1, 0.01)
    assert state.home[0] == state.home[1]
    assert state.home[2] == state.home[3]
    assert state.home[0] != state.home[2]
