"""Parts of units whose domains' uplinks are shared."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

import numpy as np
import pytest

from placer.solve.construct.experts.graded_parts import graded
from placer.solve.construct.experts.parts_program import Question
from placer.solve.construct.experts.replica_levels import Replicas
from placer.solve.count.engine import Limits

SIZE = 4
# A piece sends one message a second to each of the others that are elsewhere.
NEAR = {1: 3.0, 2: 2.0, 4: 0.0}
TIMES = np.array(sorted(NEAR.values(), reverse=True))


def slowest(parts: np.ndarray, rooms: list[int]) -> float:
    """Of units with so many pieces in each domain, which share uplinks; (U, D), s."""
    sent = (SIZE - parts) * (parts > 0)
    load = (parts * sent).sum(axis=0) / rooms
    return float(np.where(sent > 0, np.maximum(sent, load), 0.0).max())


def least(rooms: list[int], units: int) -> float:
    """The least such time of all ways to share the domains out, s; inf if none."""
    rows = [r for r in product(range(SIZE + 1), repeat=len(rooms)) if sum(r) == SIZE]
    every = (np.array(one) for one in product(rows, repeat=units))
    fits = (one for one in every if (one.sum(axis=0) <= rooms).all())
    return min((slowest(one, rooms) for one in fits), default=np.inf)


@pytest.mark.parametrize("seed", range(12))
def test_units_are_as_fast_as_the_best_of_all_ways(seed: int) -> None:
    """On domains of all sizes, a level is found just where some way has it."""
    rng = random.Random(f"graded parts {seed}")
    rooms, units = [rng.randint(1, 7) for _ in range(3)], rng.choice((1, 2, 2))
    best = least(rooms, units)
    keys = Counter((0, room) for room in rooms)
    question = Question(keys, SIZE, units, 1, NEAR, {}, {}, {}, 1.0)
    for level, seconds in enumerate(TIMES.tolist()):
        choices = Replicas(TIMES, np.array([[level]]), np.array([seconds]))
        shares = graded(question, choices, Limits(1.0)).shares
        assert (shares is not None) == (best <= seconds)
        if shares is not None:
            held = [
                part for some in shares.fills.values() for one in some for part in one
            ]
            used = Counter(part for made in shares.units for part in made.sizes)
            assert used <= Counter(held)
            assert all(
                sum(one) <= room
                for (_, room), some in shares.fills.items()
                for one in some
            )


@pytest.mark.parametrize("carried", [1.0, np.inf])
def test_a_half_waits_beside_a_single_piece(carried: float) -> None:
    """2 and 1 in a domain of three send 4 + 3 over its uplink: 2.3 s, not 2 s."""
    rooms = {(0, 3): 2, (0, 2): 1}
    question = Question(rooms, SIZE, 2, 1, NEAR, {}, {}, {}, carried)
    one_fast = Replicas(TIMES, np.array([[1, 0]]), np.array([2.0]))
    shares = graded(question, one_fast, Limits(1.0)).shares
    assert (shares is None) == (carried == 1.0)
