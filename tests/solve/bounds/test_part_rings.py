"""Gradients over thin uplinks ask for small shares, or for all units of a stage."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from placer.solve.bounds.experts.part_counts import Counts
from placer.solve.bounds.experts.part_rings import Kept
from placer.solve.count.blocks import solved_in_blocks
from placer.solve.count.engine import Limits


def counts(rooms: list[int], size: int, units: int, kept: Kept) -> Counts:
    """Units on outer domains of one domain each, whose uplinks carry anything."""
    near = dict.fromkeys(range(1, size // 2 + 1), 0.2) | {size: 0.1}
    return Counts(
        dict.fromkeys(enumerate(rooms), 1),
        size,
        units,
        units,
        1,
        1,
        near,
        lambda _part, _share: 0.2,
        dict.fromkeys(range(len(rooms)), 1e6),
        dict.fromkeys(range(1, size), 0.0),
        kept=kept,
    )


def is_hopeless(made: Counts) -> bool:
    """Whether the program finds no place for all units, however slow."""
    stated = made.stated(np.zeros((1, 1), dtype=np.int64), [1.0])
    assert stated is not None
    return solved_in_blocks(stated.program, Limits(1.0)).counts is None


@pytest.mark.parametrize(
    ("rooms", "most", "hopeless"),
    [
        ([2, 2, 2], 2, False),
        ([2, 2, 2], 1, False),
        ([2, 2, 2], 0, True),
        ([6], 0, False),
    ],
)
def test_three_units_of_two_by_hand(
    rooms: list[int], most: int, hopeless: bool
) -> None:
    """Whole they send two rings over each uplink, in halves one.

    None crosses where all of them have as much in a domain, which takes room for three.
    """
    kept = Kept(0.0, dict.fromkeys(range(len(rooms)), most), 3)
    assert is_hopeless(counts(rooms, 2, 3, kept)) == hopeless


def has_place(
    rooms: list[int], size: int, stages: int, siblings: int, kept: Kept
) -> bool:
    """Whether units of some stages lie so that few rings cross, by looking at all."""
    ways = [
        way
        for way in product(*(range(min(room, size) + 1) for room in rooms))
        if sum(way) == size
    ]
    for held in product(ways, repeat=stages * siblings):
        table = np.array(held).reshape(stages, siblings, len(rooms))
        crossing = (table.max(axis=1) - table.min(axis=1)).max(axis=0)
        most = [kept.pieces.get(home, size) for home in range(len(rooms))]
        if (table.sum(axis=(0, 1)) <= rooms).all() and (crossing <= most).all():
            return True
    return False


def attack(seed: int) -> bool:
    """Whether rings leave no place; the program never says so where there is one."""
    rng = random.Random(f"rings {seed}")
    size, siblings, stages = rng.choice(((2, 2, 2), (3, 2, 1), (4, 2, 1), (2, 3, 1)))
    rooms = [rng.randint(1, size + 2) for _ in range(rng.choice((2, 3)))]
    if sum(rooms) < size * siblings * stages:
        return False
    pieces = {home: rng.randint(0, size - 1) for home in range(len(rooms))}
    kept = Kept(0.0, pieces, siblings)
    made = counts(rooms, size, siblings * stages, kept)
    if has_place(rooms, size, stages, siblings, kept):
        assert not is_hopeless(made), seed
        return False
    return is_hopeless(made)


def test_no_placement_is_left_out() -> None:
    """Every way to lay out tiny units that keeps rings few is let through."""
    assert sum(map(attack, range(150))) > 5


@pytest.mark.slow
def test_no_placement_of_many_is_left_out() -> None:
    """The same of many more."""
    assert sum(map(attack, range(150, 600))) > 15
