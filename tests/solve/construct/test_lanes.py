"""Lane orders, against plain sums over neighbours and all orders of a few lanes."""

from __future__ import annotations

import random
from itertools import permutations, product
from math import prod
from unittest.mock import patch

import numpy as np
import pytest

from placer.solve.construct.chains import lanes as lanes_module
from placer.solve.construct.chains.distances import Distances
from placer.solve.construct.chains.lanes import Lanes, arrange
from placer.solve.construct.chains.shapes import LaneAxis
from placer.solve.problem.params import Params
from placer.solve.run.budget import Budget
from tests.marks import slow

LEAVES = 6
STEPS = (17.0, 2.0)
DISTANCES = Distances(
    np.array([np.arange(LEAVES), np.arange(LEAVES) // 3]), np.array(STEPS)
)


def apart(first: int, second: int) -> float:
    """Distance of two leaves."""
    if first == second:
        return 0.0
    return STEPS[0] if first // 3 == second // 3 else sum(STEPS)


def cost(rows: list[list[int]], lanes: tuple[LaneAxis, ...]) -> float:
    """Weight x distance over all neighbouring lanes, place by place."""
    total = 0.0
    places = list(product(*(range(axis.size) for axis in reversed(lanes))))
    number = {place: lane for lane, place in enumerate(places)}
    for place in places:
        for index, axis in enumerate(reversed(lanes)):
            onward = list(place)
            onward[index] += 1
            if onward[index] == axis.size:
                if not axis.closed:
                    continue
                onward[index] = 0
            first, second = rows[number[place]], rows[number[tuple(onward)]]
            total += axis.weight * sum(map(apart, first, second))
    return total


def ways(row: list[int], starts: int) -> list[list[int]]:
    """The row started anywhere it may, both ways round."""
    turned = [row[start:] + row[:start] for start in range(starts)]
    return turned + [way[::-1] for way in turned]


def random_rows(rng: random.Random, lanes: tuple[LaneAxis, ...]) -> list[list[int]]:
    """Rows of three places in one or two leaves."""
    rows = []
    for _ in range(prod(axis.size for axis in lanes)):
        cut, leaves = rng.randint(0, 3), rng.sample(range(LEAVES), 2)
        rows.append([leaves[0]] * cut + [leaves[1]] * (3 - cut))
    return rows


GRIDS = (
    (LaneAxis(2, False, 3.0), LaneAxis(2, False, 1.0)),
    (LaneAxis(4, False, 1.0),),
    (LaneAxis(4, True, 1.0),),
)


@pytest.mark.parametrize("seed", [0, *slow(range(1, 6))])
@pytest.mark.parametrize("lanes", GRIDS)
@pytest.mark.parametrize("starts", [1, 3])
def test_best_order_of_four(
    lanes: tuple[LaneAxis, ...], starts: int, seed: int
) -> None:
    """Four lanes in a grid or a row are numbered as cheaply as any order allows."""
    rng = random.Random(seed)
    rows = random_rows(rng, lanes)
    grid = Lanes(lanes, starts, DISTANCES)
    found = arrange(np.array(rows), grid, Params(), seed, Budget(60.0)).tolist()
    turned = [{tuple(way) for way in ways(row, starts)} for row in rows]
    assert all(any(tuple(row) in ways for row in found) for ways in turned)
    if lanes[-1].closed:
        assert cost(found, lanes) <= cost(rows, lanes)
        return
    best = min(
        cost([list(way) for way in chosen], lanes)
        for order in permutations(range(4))
        for chosen in product(*(sorted(turned[lane]) for lane in order))
    )
    assert cost(found, lanes) == pytest.approx(best)


@pytest.mark.parametrize("seed", [0, 1, 3, 5])
def test_every_chain_is_numbered_once(seed: int) -> None:
    """Larger grids keep every chain, in some way round."""
    rng = random.Random(seed)
    lanes = (
        LaneAxis(2, False, 5.0),
        LaneAxis(rng.choice((3, 5)), rng.random() < 0.5, 2.0),
        LaneAxis(rng.choice((4, 40)), True, 1.0),
    )
    rows = random_rows(rng, lanes)
    grid = Lanes(lanes, 1, DISTANCES)
    found = arrange(np.array(rows), grid, Params(), seed, Budget(60.0)).tolist()
    assert sorted(min(row, row[::-1]) for row in found) == sorted(
        min(row, row[::-1]) for row in rows
    )


def test_lanes_that_nothing_brings_nearer_are_left() -> None:
    """Each in a leaf of its own of one block: any order costs as much."""
    axes = (LaneAxis(3, False, 2.0),)
    rows = np.repeat(np.arange(3), 3).reshape(3, 3)
    with patch.object(lanes_module._Exchange, "_exchange", side_effect=AssertionError):
        found = arrange(rows, Lanes(axes, 1, DISTANCES), Params(), 0, Budget(60))
    assert sorted(map(tuple, found)) == sorted(map(tuple, rows))
