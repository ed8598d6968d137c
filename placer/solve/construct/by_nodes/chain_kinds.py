"""What chains of nodes that hold runs of pieces may look like.

A chain is so many consecutive units on nodes of their own, none of which ends where a
unit does but the last. Shapes: S pieces of a unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from operator import le
from typing import NamedTuple

from placer.arrays import FloatArray

Counts = tuple[int, ...]

MOST_BEGUN = 5_000  # beginnings of chains that are looked at


class Chain(NamedTuple):
    """Consecutive units on nodes of their own.

    Attributes
    ----------
    held, rooms : tuple of int, pieces
        What each node holds, in order, and has room for.
    least : tuple of int, pieces
        The least part of each unit.
    """

    held: Counts
    rooms: Counts
    least: Counts


class _Begun(NamedTuple):
    """What begins a chain.

    Attributes
    ----------
    held, rooms, least : tuple of int, pieces
        As of a chain, with the unit that has begun.
    used : tuple of int
        Nodes of each sort.
    """

    held: Counts
    rooms: Counts
    least: Counts
    used: Counts

    def is_as_good(self, other: _Begun, seconds: FloatArray) -> bool:
        """Whether this one takes no more nodes and has no slower unit."""
        return all(map(le, self.used, other.used)) and all(
            seconds[a] <= seconds[b]
            for a, b in zip(self.least, other.least, strict=True)
        )


def least_parts(held: Counts, size: int) -> Counts:
    """The least part of each unit of so many pieces, also of one that has begun."""
    last = sum(held)
    ends = sorted({*accumulate(held), *range(size, last, size)})
    least = [size] * -(-last // size)
    for begin, end in pairwise([0, *ends]):
        unit = begin // size
        least[unit] = min(least[unit], end - begin)
    return tuple(least)


def cut_chains(
    longest: int, size: int, least: int, sorts: Sequence[int], seconds: FloatArray
) -> Iterator[Chain]:
    """Chains of which no other takes no more nodes and has no slower unit.

    Parameters
    ----------
    longest, size, least : int
        Units, pieces of each, and of a part of one.
    sorts : sequence of int, pieces
        Rooms of nodes.
    seconds : ndarray, shape (S + 1,), s
        Of a unit, by its least part.
    """
    end, many = longest * size, 0
    begun: list[list[_Begun]] = [[] for _ in range(end + 1)]
    begun[0].append(_Begun((), (), (), (0,) * len(sorts)))
    for at, found in enumerate(begun):
        many += len(found)
        if many > MOST_BEGUN:
            return
        for one in found:
            if at and at % size == 0:
                yield Chain(*one[:3])
                continue
            for sort, room in enumerate(sorts):
                for held in range(1, min(room, end - at) + 1):
                    row = (*one.held, held)
                    parts = least_parts(row, size)
                    if min(parts) >= least:
                        used = tuple(n + (k == sort) for k, n in enumerate(one.used))
                        longer = _Begun(row, (*one.rooms, room), parts, used)
                        _keep(begun[at + held], longer, seconds)


def _keep(found: list[_Begun], one: _Begun, seconds: FloatArray) -> None:
    """Add one that none is as good as, for those that are no better."""
    if any(other.is_as_good(one, seconds) for other in found):
        return
    found[:] = [other for other in found if not one.is_as_good(other, seconds)]
    found.append(one)
