"""The program on contents at prices of parts, checked again by plain loops."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from placer.base.arrays import FloatArray, IntArray
from placer.solve.programs.prices import Choices, Packing, dearest


def partitions(total: int, least: int, most: int) -> list[list[int]]:
    """All ways to add up to a total, the smallest part first."""
    if not total:
        return [[]]
    first = range(least, min(most, total) + 1)
    return [[n, *rest] for n in first for rest in partitions(total - n, n, most)]


def worth(packing: Packing, prices: list[float]) -> float:
    """What all domains are worth with the dearest parts in each."""
    total = 0.0
    for room, count in packing.rooms.items():
        most = min(room, packing.size)
        fills = [p for held in range(room + 1) for p in partitions(held, 1, most)]
        total += count * max(sum(prices[n] for n in fill) for fill in fills)
    return total


def cheapest(packing: Packing, prices: list[float], low: int) -> float:
    """What the cheapest group costs that has parts of ``low`` or more."""
    ways = partitions(packing.size, low, packing.largest)
    return min((sum(prices[n] for n in way) for way in ways), default=np.inf)


def test_worth_and_cost_by_hand() -> None:
    """Two groups of 4 on rooms of 3, 3 and 2: parts of 2 are 3, and 4 are needed."""
    packing = Packing(4, {3: 2, 2: 1})
    prices = np.array([0.0, 0.0, 1.0, 1.0])
    assert packing.worth(prices) == 3
    halves = packing.cheapest(prices, 2)
    assert (halves.price, halves.parts.tolist()) == (2, [0, 0, 2, 0])
    assert packing.cheapest(prices, 4).price > 1e6


@pytest.mark.parametrize("seed", range(60))
def test_plain_loops_find_the_same_bound_at_its_prices(seed: int) -> None:
    """The prices alone prove the bound: no choice of less value is cheap enough."""
    rng = random.Random(seed)
    size, places = rng.randint(2, 7), rng.randint(1, 3)
    rooms = {rng.randint(1, 8): rng.randint(1, 4) for _ in range(3)}
    packing = Packing(size, rooms)
    total = sum(room * count for room, count in rooms.items())
    number = total // (size * places)
    lows = [*range(1, size // 2 + 1)] + [size] * (packing.largest == size)
    seconds = sorted((rng.random() for _ in lows), reverse=True)
    weights = [rng.random() for _ in range(places)]

    def value(levels: IntArray) -> FloatArray:
        times = np.array(seconds)[levels] * weights
        return times.sum(axis=1) + times.max(axis=1)

    if not number:
        return
    choices = Choices(places, len(lows), value, 1000)
    bound, prices = dearest(packing, lows, choices, number, 40)
    share = worth(packing, prices.tolist()) / number
    paid = [cheapest(packing, prices.tolist(), low) for low in lows]
    rows = np.array(list(product(range(len(lows)), repeat=places)))
    for levels, found in zip(rows.tolist(), value(rows).tolist(), strict=True):
        if found < bound * (1 - 1e-9):
            assert sum(paid[level] for level in levels) > share


def test_the_least_part_sets_the_bound_by_hand() -> None:
    """Two groups of four on rooms of three, three and two: one has a single member."""
    packing = Packing(4, {3: 2, 2: 1})
    choices = Choices(1, 2, lambda levels: 2.0 - levels[:, 0], 100)
    assert dearest(packing, [1, 2], choices, 2, 20).value == 2
    roomy = Packing(4, {3: 2, 2: 2})
    choices = Choices(1, 2, lambda levels: 2.0 - levels[:, 0], 100)
    assert dearest(roomy, [1, 2], choices, 2, 20).value == 1
