"""Components cut into pieces that domains have room for, none of them small.

All components are alike, and so are domains with the same room. So a program counts how
many components are cut in each way, and how many domains are divided in each way into
places for pieces. Shapes: C components, D domains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from placer.arrays import IntArray
from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term
from placer.solve.count.summands import summands

if TYPE_CHECKING:
    from placer.solve.problem.params import Params

Division = tuple[int, ...]
Key = TypeVar("Key")


@dataclass(frozen=True, eq=False)
class Cutting:
    """Components to be cut, and what domains have room for.

    Attributes
    ----------
    room : ndarray, shape (D,)
        Sets that each domain may hold.
    components, length : int
        How many components there are, and sets of each.
    """

    room: IntArray
    components: int
    length: int

    def largest_pieces(self, most_small: int, params: Params) -> IntArray | None:
        """Sets of each component in each domain; shape (C, D).

        The smallest piece is as large as can be; None where it is no larger than
        ``most_small``, or where there are too many ways to cut or to divide.
        """
        found = None
        low, high = most_small + 1, self.length // 2
        while low <= high:
            least = (low + high + 1) // 2
            pieces = self._pieces(least, params)
            if pieces is None:
                high = least - 1
            else:
                found, low = pieces, least + 1
        return found

    def _pieces(self, least: int, params: Params) -> IntArray | None:
        """Pieces of at least so many sets."""
        length, most = self.length, params.piece_ways
        ways = list(islice(summands(length, least, length), most))
        rooms, domains = np.unique(self.room, return_counts=True)
        divided = [
            (room, places)
            for room in rooms[rooms >= least].tolist()
            for places in islice(summands(room, least, room), most)
        ]
        if len(ways) + len(divided) >= most:
            return None
        places_of = [[of for one, of in divided if one == room] for room in rooms]
        found = shared_out(
            [(self.components, ways)],
            list(zip(rooms.tolist(), domains.tolist(), places_of, strict=True)),
            Limits(params.piece_nodes, engine="highs"),
        )
        if found is None:
            return None
        pieces = [
            (size, component)
            for component, way in enumerate(found.cut[0])
            for size in ways[way]
        ]
        held = np.zeros((self.components, len(self.room)), dtype=np.int64)
        for (size, component), domain in in_places(pieces, found.places, self.room):
            held[component, domain] += size
        return held


class Shares(NamedTuple):
    """How components are cut, and domains divided.

    Attributes
    ----------
    cut : list of list of int
        Of each kind of components, the way of each.
    places : list of (int, tuple of int)
        Room of a domain, and its places.
    """

    cut: list[list[int]]
    places: list[tuple[int, Division]]


def shared_out(
    kinds: Sequence[tuple[int, Sequence[Division]]],
    domains: Sequence[tuple[int, int, Sequence[Division]]],
    limits: Limits,
    most: int | None = None,
    over: Sequence[Sequence[int]] = (),
) -> Shares | None:
    """A cut of all components into pieces for which domains have places.

    Parameters
    ----------
    kinds : sequence of (int, ways)
        How many components are alike, and the sizes of the pieces of each way to cut
        one.
    domains : sequence of (int, int, ways)
        Room of some domains, how many they are, and the places of each way to divide
        one.
    limits : Limits
        Of the program.
    most : int, optional
        Of the sum of all pieces: what else needs room has the rest.
    over : sequence of sequence of int, optional
        What each way leaves that any domains may hold; it is part of that sum.
    """
    program = Program()
    cut = [(program.column(n), way) for n, ways in kinds for way in ways]
    columns = iter([column for column, _ in cut])
    cut_of = [[next(columns) for _ in ways] for _, ways in kinds]
    for own, (components, _) in zip(cut_of, kinds, strict=True):
        program.row(map(Term, own), components, components)
    if most is not None:
        left = chain.from_iterable(over) if over else repeat(0)
        taken = zip(cut, left, strict=False)
        program.row([Term(c, sum(way) + more) for (c, way), more in taken], most=most)
    divided = [(program.column(n), p) for _, n, ways in domains for p in ways]
    columns = iter([column for column, _ in divided])
    for _, count, ways in domains:
        program.row([Term(next(columns)) for _ in ways], most=count)
    for size in {piece for _, way in cut for piece in way}:
        had = [
            Term(column, sum(place >= size for place in places))
            for column, places in divided
            if places[-1] >= size
        ]
        used = [
            Term(column, -sum(piece >= size for piece in way))
            for column, way in cut
            if max(way) >= size
        ]
        program.row([*had, *used], 0)
    counts = solve(program, limits).counts
    if counts is None:
        return None
    made = [
        [way for way, column in enumerate(own) for _ in range(counts[column])]
        for own in cut_of
    ]
    rooms = [room for room, _, ways in domains for _ in ways]
    places = [
        (room, of)
        for room, (column, of) in zip(rooms, divided, strict=True)
        for _ in range(counts[column])
    ]
    return Shares(made, places)


def in_places(
    pieces: Iterable[tuple[int, Key]],
    places: Iterable[tuple[int, Division]],
    room: IntArray,
) -> Iterator[tuple[tuple[int, Key], int]]:
    """Each piece, its size first, in a domain: the largest in the largest places."""
    free = {int(one): iter(np.flatnonzero(room == one)) for one in np.unique(room)}
    found = []
    for size, of in places:
        domain = int(next(free[size]))
        found += [(place, domain) for place in of]
    found.sort(key=lambda place: -place[0])
    largest_first = sorted(pieces, key=lambda piece: -piece[0])
    return zip(largest_first, (domain for _, domain in found), strict=False)


def divisions_into(room: int, sizes: Sequence[int]) -> Iterator[Division]:
    """Ascending numbers out of ``sizes``, with no room left for one more.

    ``sizes`` are ascending themselves.
    """
    for index, size in enumerate(sizes):
        left = room - size
        if left >= size:
            yield from ((size, *more) for more in divisions_into(left, sizes[index:]))
        if 0 <= left < sizes[0]:
            yield (size,)
