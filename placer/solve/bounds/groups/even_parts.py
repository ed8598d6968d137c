"""How even the parts of groups can be when domains do not hold all groups whole.

Where no part of any group is below ``p``, a domain holds groups of ``n`` ranks and
parts of ``p`` to ``n - p``. Where all domains together use fewer than there are ranks
so, or where no such parts make up whole groups, some group of every placement has a
part below ``p``. See docs/method.md, "How even parts can be". Shapes: D domains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term

if TYPE_CHECKING:
    from placer.solve.bounds.groups.across_sets import AcrossSets

# Ranks of a group and of a domain up to which ways are counted, and CP-SAT's work.
MOST_COUNTED, WORK = 16, 0.5


def most_even(
    room: IntArray, size: int, ranks: int, across: Sequence[AcrossSets] = ()
) -> int:
    """The largest least part that the groups of any placement can have.

    Half a group at the most; also where all groups fit whole.

    Parameters
    ----------
    room : ndarray, shape (D,)
        Ranks that each domain may hold.
    size : int
        Ranks of a group.
    ranks : int
        Of all groups together.
    across : sequence of AcrossSets, optional
        Outer tiers whose sets the groups lie across.
    """
    if int((room // size).sum()) * size >= ranks and not across:
        return max(1, size // 2)
    rooms, number, count = np.unique(room, return_inverse=True, return_counts=True)
    for part in range(size // 2, 1, -1):
        used = np.array([used_in_parts(one, size, part) for one in rooms.tolist()])
        if int(np.dot(used, count)) < ranks or any(
            _used_in_sets(sets, used[number], part) < ranks for sets in across
        ):
            continue
        if max(size, int(rooms.max())) > MOST_COUNTED or not _is_refuted(
            rooms, count, size, part, ranks // size
        ):
            return part
    return 1


def _used_in_sets(across: AcrossSets, used: IntArray, part: int) -> int:
    """Most ranks of all outer domains in sets of which none has too few of a block."""
    held, count = np.unique(across.sets_held(used), return_counts=True)
    most = [used_in_parts(one, across.size, part) for one in held.tolist()]
    return across.alike * int(np.dot(most, count))


def used_in_parts(room: int, size: int, part: int) -> int:
    """Most ranks of a domain in whole groups and parts of them, none below ``part``."""
    found = []
    for whole in range(room // size + 1):
        parts = (room - whole * size) // part
        found.append(min(room, whole * size + parts * (size - part)))
    return max(found)


def _is_refuted(
    rooms: IntArray, count: IntArray, size: int, part: int, groups: int
) -> bool:
    """Whether so many groups cannot be made up of parts that domains hold."""
    sizes = [size, *range(size - part, part - 1, -1)]
    program = Program()
    supply: dict[int, list[Term]] = {one: [] for one in sizes}
    made = []
    for way in _ways(size, sizes):
        if sum(way) == size:
            column = program.column(groups)
            made.append(Term(column))
            for one in set(way):
                supply[one].append(Term(column, -way.count(one)))
    program.row(made, groups, groups)
    for room, number in zip(rooms.tolist(), count.tolist(), strict=True):
        filled = []
        for way in _ways(room, sizes):
            if room - sum(way) < part:  # what is left holds no other part
                column = program.column(number)
                filled.append(Term(column))
                for one in set(way):
                    supply[one].append(Term(column, way.count(one)))
        program.row(filled, most=number)
    for terms in supply.values():
        program.row(terms, 0)
    answer = solve(program, Limits(WORK))
    return answer.counts is None and answer.is_proved


def _ways(room: int, sizes: list[int]) -> Iterator[tuple[int, ...]]:
    """Parts, the largest first, that together are no more than so many ranks."""
    yield ()
    for place, one in enumerate(sizes):
        if one <= room:
            for others in _ways(room - one, sizes[place:]):
                yield (one, *others)
