"""What domains hold, and how groups are made up of it: by hand, and by plain loops."""

import numpy as np
import pytest

from placer.placement.hop_parts import Holdings, Prices, least_held
from placer.solve.count import EngineLimits, Program, solve
from placer.solve.programs.contents import Contents, Costs, fillings

ROOT = EngineLimits(1, engine="highs")
LARGEST, PAYS = {3: 2}, Costs([0, 1, 1, 1], [0, 1, 2, 3], [0, 0, 0, 0])


@pytest.mark.parametrize(
    ("rooms", "costs", "parts", "price"),
    [
        (LARGEST, PAYS, {2: 2, 1: 2}, 2 * 2 + 4),  # 2 + 1 twice
        (LARGEST, PAYS, {1: 6}, 2 * 1 + 6),  # 1 + 1 + 1 twice
        (LARGEST, PAYS, {3: 1, 1: 3}, 3 + 1 + 4),
        (LARGEST, PAYS, {3: 1}, 3 + 1),  # a room may stay empty
    ],
)
def test_the_largest_part_of_each_room_pays_and_each_part_alone(
    rooms, costs, parts, price
):
    """As much as the largest of each, and 1 for every part."""
    program = Program()
    found = fillings(program, rooms, costs)["part"]
    for size in found:
        number = parts.get(size, 0)
        program.row(found[size], number, number)
    assert solve(program, ROOT).bound == pytest.approx(price)


def held(contents):
    """As the checker is given it."""
    share = np.reshape(contents.share, (-1, contents.size + 1))
    costs = (np.array(cost, float) for cost in contents.costs)
    return Holdings(contents.number, contents.rooms, *costs, share)


def proves(contents, cost):
    """Whether cases are found that prove no less and no more than the least cost."""
    cases = contents.cases(cost - 0.01, lambda: False)
    assert contents.cases(cost + 0.01, lambda: False) is None
    return cost - 0.011 <= least_held(held(contents), cases) <= cost + 1e-9


def test_groups_in_domains_by_hand():
    """Two groups of three in rooms of four and two: 3 + 1 and 2, three parts in all.

    The room of four costs 5 if it is full; then a group is cut once more, or not at all
    where a third room takes what is left.
    """
    costs = Costs([0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0, 5])
    for rooms, least in (({4: 1, 2: 1}, 3 + 5), ({4: 1, 2: 2}, 3), ({3: 2}, 2)):
        contents = Contents(3, 2, [rooms], costs, [])
        assert contents.least(known=0) == pytest.approx(least, rel=1e-5)
        assert proves(contents, least)


def test_shares_of_outer_domains_by_hand():
    """A group of four in two blocks with a room of two and one of one each: 2 + 2.

    3 + 1 takes as many parts, three, and costs less in blocks.
    """
    costs = Costs([0, 1, 1, 1, 1], [0] * 5, [0] * 3)
    share = [0.0, 3.0, 4.0, 3.0, 0.0]
    contents = Contents(4, 1, [{2: 1, 1: 1}] * 2, costs, [share] * 2)
    assert contents.least(known=0) == pytest.approx(3 + 3 + 3, rel=1e-5)
    assert proves(contents, 3 + 3 + 3)
    # Right if blocks had no room for three.
    part, share = np.array([[0.0, 1, 1, 9, 9]] * 2), np.array([0.0, 4, 5, 10, 10])
    assert least_held(held(contents), Prices(part, share, [])) <= 3 + 3 + 3
