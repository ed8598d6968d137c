"""Paths of parts: they fill rooms, the largest first, and make things up."""

from __future__ import annotations

import pytest

from placer.solve.count.engine import Limits, solve
from placer.solve.count.filling import fillings
from placer.solve.count.model import Program

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
    found = fillings(program, {3: 2}, [0, 1, 2, 3], [0, 1, 1, 1])
    for size in (1, 2, 3):
        number = parts.get(size, 0)
        program.row(found[size], number, number)
    assert solve(program, ROOT).bound == pytest.approx(price)


def test_parts_that_fit_no_room() -> None:
    """Three parts of two in two rooms of three."""
    program = Program()
    found = fillings(program, {3: 2}, [0, 0, 0], [0, 0, 0])
    program.row(found[2], 3, 3)
    assert solve(program, ROOT).counts is None
