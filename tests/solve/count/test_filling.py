"""Paths of parts: they fill rooms, the largest first, and make things up."""

from __future__ import annotations

import pytest

from placer.solve.count.engine import Limits, solve
from placer.solve.count.filling import fillings, partitions
from placer.solve.count.model import Program, Term

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
    found, largest, _ = fillings(program, {3: 2}, [0, 1, 2, 3], [0, 1, 1, 1])
    for size in (1, 2, 3):
        number = parts.get(size, 0)
        program.row(found[size], number, number)
    count = Term(program.column())
    every = [term for terms in largest.values() for term in terms]
    program.row([count, *(Term(column, -1) for column, _ in every)], 0, 0)
    answer = solve(program, ROOT)
    assert answer.bound == pytest.approx(price)
    assert answer.counts is not None
    assert answer.counts[count.column] == min(2, sum(parts.values()))


@pytest.mark.parametrize(("others", "most"), [({2: 1}, 2), ({1: 2}, 1), ({1: 1}, 1)])
def test_the_next_part_beside_one_alone(others: dict[int, int], most: int) -> None:
    """A room of five with three, and beside it two, one and one, or one."""
    program = Program()
    parts, _, beside = fillings(program, {5: 1}, [0] * 4, [0] * 4, 3)
    for size in (1, 2, 3):
        number = {**others, 3: 1}.get(size, 0)
        program.row(parts[size], number, number)
    answer = solve(program, ROOT)
    assert answer.counts is not None
    sizes = {
        k for k, terms in beside.items() if any(answer.counts[c] for c, _ in terms)
    }
    assert sizes == {most}


def test_parts_that_fit_no_room() -> None:
    """Three parts of two in two rooms of three."""
    program = Program()
    found = fillings(program, {3: 2}, [0, 0, 0], [0, 0, 0]).parts
    program.row(found[2], 3, 3)
    assert solve(program, ROOT).counts is None


def test_begun_paths_need_fewer_steps() -> None:
    """Two of four, one of which begins at three."""
    program = Program()
    begun = Term(program.column(1))
    program.row([begun], 1, 1)
    steps = partitions(program, {4: 2}, 2, {3: begun})
    program.row(steps[1], 1, 1)
    answer = solve(program, ROOT)
    assert answer.counts is not None
    assert sum(answer.counts[term.column] for term in steps[2]) == 2
