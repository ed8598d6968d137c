"""Ways to fill domains with parts that share an uplink, and how long each part waits.

A part of ``m`` of ``U`` pieces puts ``m (U - m)`` pairs on the uplink that all parts of
its domain share. A part counts for units of a *class*, those faster than some time, if
it is as fast where it lies. See docs/method.md, "Parts beside each other".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from placer.solve.bounds.experts.part_ways import ANY, MOST_WAYS
from placer.solve.count.model import Program, Term
from placer.solve.count.summands import fitting

if TYPE_CHECKING:
    from placer.solve.bounds.experts.part_ways import Way

ROUNDING = 1e-9
MOST_FILLS = 8_000  # of all domains


class Fill(NamedTuple):
    """How often domains are filled with parts.

    Attributes
    ----------
    column : int
    parts : mapping of int to int
        How many of each size.
    waits : mapping of int to float, s
        Least time of a part of each size.
    """

    column: int
    parts: Mapping[int, int]
    waits: Mapping[int, float]


class Racks(NamedTuple):
    """Domains whose parts share an uplink.

    Attributes
    ----------
    rooms : mapping of int to int
        How many have room for so many pieces.
    pairs : mapping of int to float
        Pairs a second that the widest uplink of those with so much room carries.
    latency : mapping of int to float, s
        Of a member of a part of so many pieces, at least.
    """

    rooms: Mapping[int, int]
    pairs: Mapping[int, float]
    latency: Mapping[int, float]

    @classmethod
    def of(
        cls,
        rooms: Sequence[int],
        carried: Sequence[float],
        latency: Mapping[int, float],
    ) -> Racks:
        """From the room of each domain, and the pairs a second of its uplink."""
        pairs: dict[int, float] = {}
        for room, most in zip(rooms, carried, strict=True):
            pairs[room] = max(most, pairs.get(room, 0.0))
        return cls(Counter(room for room in rooms if room), pairs, latency)

    def filled(
        self,
        program: Program,
        size: int,
        near: Iterable[Way],
        classes: Sequence[float],
        times: Mapping[int, float],
    ) -> list[tuple[int, Way]] | None:
        """Columns of units of a size that are made so, by class.

        None if there is too much: from a part of the ways nothing follows. So it is of
        fills where units are not told apart.

        Parameters
        ----------
        times : mapping of int to float, s
            Least time of a unit by its smallest part.
        """
        ways = list(islice(near, MOST_WAYS + 1))
        if classes == [ANY] or len(ways) > MOST_WAYS:
            return None
        made = [
            way._replace(limit=limit)
            for way in ways
            for limit in classes
            if times[way.low] < limit
        ]
        least = min((way.sizes[0] for way in made), default=size)
        fills = self.fills(program, size, least) if len(made) <= MOST_WAYS else None
        if fills is None:
            return None
        found = [(program.column(), way) for way in made]
        _parts_suffice(program, fills, found)
        return found

    def fills(self, program: Program, size: int, least: int) -> list[Fill] | None:
        """Columns of all fills with parts of ``least`` pieces or more of a unit.

        None if there are too many.
        """
        found: list[Fill] = []
        for room, domains in self.rooms.items():
            first = len(found)
            for parts in fitting(room, least, size):
                if len(found) == MOST_FILLS:
                    return None
                sent = sum(part * (size - part) for part in parts) / self.pairs[room]
                waits = {
                    part: sent + self.latency[part] if part < size else 0.0
                    for part in parts
                }
                found.append(Fill(program.column(domains), Counter(parts), waits))
            columns = [Term(fill.column) for fill in found[first:]]
            program.row(columns, domains, domains)
        return found


def _parts_suffice(
    program: Program,
    fills: Sequence[Fill],
    ways: Sequence[tuple[int, Way]],
) -> None:
    """There are parts for all units, fast enough for the class of each."""
    for limit in sorted({way.limit for _, way in ways}):
        fast = [(c, Counter(way.sizes)) for c, way in ways if way.limit <= limit]
        for size in sorted({size for _, sizes in fast for size in sizes}):
            held = [
                Term(fill.column, fill.parts[size])
                for fill in fills
                if size in fill.parts and fill.waits[size] * (1 - ROUNDING) < limit
            ]
            used = [Term(c, -sizes[size]) for c, sizes in fast if size in sizes]
            program.row([*held, *used], 0)
