"""How domains are filled: paths along their room.

An arc flow (Valerio de Carvalho 1999). All domains of an outer one share the arcs of
a graph whose nodes are 0, 1, 2 .. places:
a path from 0 to the room of a domain fills it, part by part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from placer.solve.count.model import COMMON, Program, Term


class Arc(NamedTuple):
    """A domain is filled from ``begin`` to ``end``, with a part or nothing."""

    begin: int
    end: int
    is_part: bool

    @property
    def size(self) -> int:
        """Of the part."""
        return self.end - self.begin


def paths(
    program: Program,
    ends: Mapping[int, int],
    least: int,
    most: int,
    block: int = COMMON,
) -> dict[Arc, int]:
    """Columns of the arcs of paths, of which so many end at each room.

    Parameters
    ----------
    ends : mapping of int to int
        Number of domains by their room.
    least, most : int
        Sizes of parts.
    block : int
        Of the columns.
    """
    arcs: dict[Arc, int] = {}
    into: dict[int, list[Term]] = {}
    for begin in range(max(ends)):
        last = min(begin + most, max(ends))
        lasting = [Arc(begin, end, True) for end in range(begin + least, last + 1)]
        for arc in (Arc(begin, begin + 1, False), *lasting):
            arcs[arc] = program.column(sum(ends.values()), block=block)
            into.setdefault(arc.end, []).append(Term(arcs[arc]))
            into.setdefault(arc.begin, []).append(Term(arcs[arc], -1))
    for place in range(1, max(ends) + 1):
        program.row(into[place], ends.get(place, 0), ends.get(place, 0))
    return arcs


def filled(
    arcs: Mapping[Arc, int], counts: list[int], room: int, domains: int
) -> list[list[int]]:
    """Parts of each domain of a room: paths that are taken out of the counts."""
    fills = []
    for _ in range(domains):
        place, parts = room, []
        while place:
            arc = next(a for a, c in arcs.items() if a.end == place and counts[c])
            counts[arcs[arc]] -= 1
            place = arc.begin
            if arc.is_part:
                parts.append(arc.size)
        fills.append(parts)
    return fills
