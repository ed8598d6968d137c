"""What domains hold, and how groups are made up of it, in whole numbers."""

from __future__ import annotations

from time import sleep

import pytest

from placer.solve.count import Answer, Limits, Program, solve
from placer.solve.programs import contents as asked
from placer.solve.programs.contents import Contents, Costs, fillings

ROOT = Limits(1, engine="highs")


@pytest.mark.parametrize(
    ("parts", "price"),
    [
        ({2: 2, 1: 2}, 2 * 2 + 4),  # 2 + 1 twice
        ({1: 6}, 2 * 1 + 6),  # 1 + 1 + 1 twice
        ({3: 1, 1: 3}, 3 + 1 + 4),
        ({3: 1}, 3 + 1),  # a room may stay empty
    ],
)
def test_the_largest_part_of_each_room_pays(parts: dict[int, int], price: int) -> None:
    """Two rooms of three: as much as the largest part of each, and 1 for every part."""
    program = Program()
    found = fillings(program, {3: 2}, Costs([0, 1, 1, 1], [0, 1, 2, 3], [0, 0, 0, 0]))
    for size in (1, 2, 3):
        number = parts.get(size, 0)
        program.row(found[size], number, number)
    assert solve(program, ROOT).bound == pytest.approx(price)


def test_parts_that_fit_no_room() -> None:
    """Three parts of two in two rooms of three."""
    program = Program()
    found = fillings(program, {3: 2}, Costs([0, 0, 0], [0, 0, 0], [0, 0, 0, 0]))
    program.row(found[2], 3, 3)
    assert solve(program, ROOT).counts is None


def test_both_programs_end_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole numbers are counted in the time that the relaxed program leaves."""
    left: list[float] = []

    def slow(program: Program, limits: Limits) -> Answer:
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


def test_groups_in_domains_by_hand() -> None:
    """Two groups of three in rooms of four and two: 3 + 1 and 2, three parts in all.

    The room of four costs 5 if it is full; then a group is cut once more, or not at all
    where a third room takes what is left.
    """
    costs = Costs([0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0, 5])
    for rooms, least in (({4: 1, 2: 1}, 3 + 5), ({4: 1, 2: 2}, 3), ({3: 2}, 2)):
        contents = Contents(3, 2, [rooms], costs, [])
        assert contents.least(ROOT) == pytest.approx(least, rel=1e-5)


def test_shares_of_outer_domains_by_hand() -> None:
    """A group of four in two blocks with a room of two and one of one each: 2 + 2.

    3 + 1 takes as many parts, three, and costs less in blocks.
    """
    costs = Costs([0, 1, 1, 1, 1], [0] * 5, [0] * 3)
    share = [0.0, 3.0, 4.0, 3.0, 0.0]
    contents = Contents(4, 1, [{2: 1, 1: 1}] * 2, costs, [share] * 2)
    assert contents.least(ROOT) == pytest.approx(3 + 3 + 3, rel=1e-5)


@pytest.mark.parametrize(
    ("parts", "price"), [({2: 2}, 2), ({2: 1, 1: 1}, 2 + 10), ({1: 3}, 3 + 5)]
)
def test_parts_that_come_in_no_bundle_pay(parts: dict[int, int], price: int) -> None:
    """A room of four: two parts alike are a bundle, and each other part pays 5 more."""
    program = Program()
    costs = Costs([0, 1, 1], [0, 0, 0], [0, 0, 0, 0, 0], bundle=2, alone=5)
    found = fillings(program, {4: 1}, costs)
    for size in (1, 2):
        number = parts.get(size, 0)
        program.row(found[size], number, number)
    assert solve(program, ROOT).bound == pytest.approx(price)
