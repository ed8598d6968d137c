"""Components cut into pieces that domains have room for, none of them small.

All components are alike, and so are domains with the same room. So a program counts how
many components are cut in each way, and how many domains are divided in each way into
places for pieces. Shapes: C components, D domains.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term

if TYPE_CHECKING:
    from placer.solve.problem.params import Params

IntArray = npt.NDArray[np.int64]
Division = tuple[int, ...]


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
        ways = list(islice(divisions(self.length, least), params.piece_ways))
        rooms, domains = np.unique(self.room, return_counts=True)
        divided = [
            (int(room), places)
            for room in rooms[rooms >= least]
            for places in islice(divisions(int(room), least), params.piece_ways)
        ]
        if len(ways) + len(divided) >= params.piece_ways:
            return None
        program = Program()
        cut = [program.column(self.components) for _ in ways]
        program.row(map(Term, cut), self.components, self.components)
        count_of = dict(zip(rooms.tolist(), domains.tolist(), strict=True))
        held = [program.column(count_of[room]) for room, _ in divided]
        for room, count in count_of.items():
            own = [
                Term(h) for h, (of, _) in zip(held, divided, strict=True) if of == room
            ]
            program.row(own, most=count)
        for size in {piece for way in ways for piece in way}:
            had = [
                Term(h, sum(place >= size for place in places))
                for h, (_, places) in zip(held, divided, strict=True)
                if places[-1] >= size
            ]
            used = [
                Term(c, -sum(piece >= size for piece in way))
                for c, way in zip(cut, ways, strict=True)
                if way[-1] >= size
            ]
            program.row([*had, *used], 0)
        counts = solve(program, Limits(params.piece_nodes, engine="highs")).counts
        if counts is None:
            return None
        made = [way for c, way in zip(cut, ways, strict=True) for _ in range(counts[c])]
        places = [
            (room, of)
            for h, (room, of) in zip(held, divided, strict=True)
            for _ in range(counts[h])
        ]
        return self._dealt(made, places)

    def _dealt(
        self, made: list[Division], divided: list[tuple[int, Division]]
    ) -> IntArray:
        """Each piece in a place that is no smaller: the largest in the largest."""
        rooms = {room for room, _ in divided}
        free = {room: iter(np.flatnonzero(self.room == room)) for room in rooms}
        places = []
        for room, of in divided:
            domain = next(free[room])
            places += [(size, domain) for size in of]
        pieces = [(size, c) for c, way in enumerate(made) for size in way]
        pieces.sort(key=lambda piece: -piece[0])
        places.sort(key=lambda place: -place[0])
        held = np.zeros((self.components, len(self.room)), dtype=np.int64)
        for (size, component), (_, domain) in zip(pieces, places, strict=False):
            held[component, domain] += size
        return held


def divisions(size: int, least: int) -> Iterator[Division]:
    """Ascending numbers from ``least`` up that add up to ``size``."""
    if size >= least:
        yield (size,)
    for first in range(least, size // 2 + 1):
        for others in divisions(size - first, first):
            yield (first, *others)
