"""What domains hold, and how groups are made up of it: by hand, and by plain loops."""

import random
from itertools import product
from time import sleep

import numpy as np
import pytest

from placer.solve.count import Limits, Program, solve
from placer.solve.programs import contents as asked
from placer.solve.programs.contents import Contents, Costs, fillings
from placer.solve.programs.prices import Choices, Packing, dearest

ROOT = Limits(1, engine="highs")
LARGEST, PAYS = {3: 2}, Costs([0, 1, 1, 1], [0, 1, 2, 3], [0, 0, 0, 0])
BUNDLES = Costs([0, 1, 1], [0, 0, 0], [0, 0, 0, 0, 0], bundle=2, alone=5)


@pytest.mark.parametrize(
    ("rooms", "costs", "parts", "price"),
    [
        (LARGEST, PAYS, {2: 2, 1: 2}, 2 * 2 + 4),  # 2 + 1 twice
        (LARGEST, PAYS, {1: 6}, 2 * 1 + 6),  # 1 + 1 + 1 twice
        (LARGEST, PAYS, {3: 1, 1: 3}, 3 + 1 + 4),
        (LARGEST, PAYS, {3: 1}, 3 + 1),  # a room may stay empty
        ({4: 1}, BUNDLES, {2: 2}, 2),
        ({4: 1}, BUNDLES, {2: 1, 1: 1}, 2 + 10),
        ({4: 1}, BUNDLES, {1: 3}, 3 + 5),
    ],
)
def test_the_largest_part_of_each_room_pays_and_each_part_alone(
    rooms, costs, parts, price
):
    """As much as the largest of each, 1 for every part, 5 where none is like it."""
    program = Program()
    found = fillings(program, rooms, costs)
    for size in found:
        number = parts.get(size, 0)
        program.row(found[size], number, number)
    assert solve(program, ROOT).bound == pytest.approx(price)


def test_both_programs_end_within_the_limit(monkeypatch):
    """Whole numbers are counted in the time that the relaxed program leaves."""
    left = []

    def slow(program, limits):
        left.append(limits.seconds)
        sleep(0.05)
        return solve(program, limits)

    monkeypatch.setattr(asked, "solve", slow)
    costs = Costs([0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0, 5])
    contents = Contents(3, 2, [{4: 1, 2: 1}], costs, [])
    for seconds in (0.04, 10.0):
        contents.least(Limits(1, seconds, engine="highs"))
    assert len(left) == 3
    assert left[:2] == [0.04, 10.0]
    assert left[2] <= 10.0 - 0.05


def test_groups_in_domains_by_hand():
    """Two groups of three in rooms of four and two: 3 + 1 and 2, three parts in all.

    The room of four costs 5 if it is full; then a group is cut once more, or not at all
    where a third room takes what is left.
    """
    costs = Costs([0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0, 5])
    for rooms, least in (({4: 1, 2: 1}, 3 + 5), ({4: 1, 2: 2}, 3), ({3: 2}, 2)):
        contents = Contents(3, 2, [rooms], costs, [])
        assert contents.least(ROOT) == pytest.approx(least, rel=1e-5)


def test_shares_of_outer_domains_by_hand():
    """A group of four in two blocks with a room of two and one of one each: 2 + 2.

    3 + 1 takes as many parts, three, and costs less in blocks.
    """
    costs = Costs([0, 1, 1, 1, 1], [0] * 5, [0] * 3)
    share = [0.0, 3.0, 4.0, 3.0, 0.0]
    contents = Contents(4, 1, [{2: 1, 1: 1}] * 2, costs, [share] * 2)
    assert contents.least(ROOT) == pytest.approx(3 + 3 + 3, rel=1e-5)


def partitions(total, least, most):
    """All ways to add up to a total, the smallest part first."""
    if not total:
        return [[]]
    first = range(least, min(most, total) + 1)
    return [[n, *rest] for n in first for rest in partitions(total - n, n, most)]


def worth(packing, prices):
    """What all domains are worth with the dearest parts in each."""
    total = 0.0
    for room, count in packing.rooms.items():
        most = min(room, packing.size)
        fills = [p for held in range(room + 1) for p in partitions(held, 1, most)]
        total += count * max(sum(prices[n] for n in fill) for fill in fills)
    return total


def cheapest(packing, prices, low):
    """What the cheapest group costs that has parts of ``low`` or more."""
    ways = partitions(packing.size, low, packing.largest)
    return min((sum(prices[n] for n in way) for way in ways), default=np.inf)


@pytest.mark.parametrize("seed", range(60))
def test_plain_loops_find_the_same_bound_at_its_prices(seed):
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

    def value(levels):
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
