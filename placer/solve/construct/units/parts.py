"""Units that no domain holds whole, in parts of several sizes.

All traffic of a part of ``p`` out of ``s`` ranks of an all-to-all leaves its domain but
for ``p / s`` of it, so the least part is the slowest: parts are as even as they can be.
The hop cost counts the pairs that are parted instead: one part is then as large as can
be. Shapes: D domains, P parts.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from placer.base.arrays import IntArray

SWAPS = 400  # tried among the domains of large parts
LAID = 100_000  # units laid, or domains looked at, in all tries
FEWER = 3  # units given up for a larger least part, in an outer domain


class Part(NamedTuple):
    """Ranks of one unit on one domain."""

    domain: int
    size: int


Unit = list[Part]


@dataclass
class _Open:
    """A unit that is being laid.

    Attributes
    ----------
    rest : int
        Ranks that have no place yet.
    """

    parts: Unit
    rest: int


def whole_units(room: IntArray, size: int, count: int) -> tuple[list[Unit], IntArray]:
    """So many units on domains that hold them whole, and the room that is then left.

    Domains that are left with little for others come first.
    """
    held = room // size
    by_rest = np.argsort(room % size, kind="stable")
    domains = np.sort(np.repeat(by_rest, held[by_rest])[:count])
    left = room - size * np.bincount(domains, minlength=len(room))
    return [[Part(domain, size)] for domain in domains.tolist()], left


def even_parts(
    room: IntArray, outer: IntArray, size: int, count: int, grain: int
) -> list[Unit] | None:
    """Units with the largest least part that can be had, each in one outer domain.

    Parameters
    ----------
    room : ndarray, shape (D,), ranks
        Of the domains in order; multiples of ``grain``.
    outer : ndarray, shape (D,)
        Outer domain of each; alike for all where units may lie anywhere.
    size, count : int
        Ranks of a unit, and units.
    grain : int
        Ranks that stay together.
    """
    inside = [np.flatnonzero(outer == one) for one in np.unique(outer)]
    most = min(size // 2, int(room.max()))
    for least in range(most // grain * grain, 0, -grain):
        units: list[Unit] = []
        for domains in inside:
            rooms = tuple(room[domains].tolist())
            most_here = min(count - len(units), sum(rooms) // size)
            units += [
                [Part(int(domains[place]), part) for place, part in unit]
                for unit in _as_many(rooms, size, most_here, least, grain)
            ]
        if len(units) == count:
            return units
    return None


@lru_cache(maxsize=4096)
def _as_many(
    room: tuple[int, ...], size: int, most: int, least: int, grain: int
) -> Sequence[Unit]:
    """As many units as some domains hold by any rule; a few less than most, or none."""
    for count in range(most, max(0, most - FEWER), -1):
        for sharing in Sharing:
            found = _laid(room, size, count, _Rule(least, grain, sharing))
            if found is not None:
                return found
    return ()


class Sharing(Enum):
    """What a domain takes of a unit that would leave it too little for another.

    ``EVEN`` does not look at others: domains alike take equal parts of a unit.
    """

    ALL = auto()
    HALF = auto()
    MOST = auto()
    EVEN = auto()


class _Rule(NamedTuple):
    """How a domain shares its room out.

    Attributes
    ----------
    least : int
        Ranks of a part at least.
    grain : int
        Ranks that stay together.
    """

    least: int
    grain: int
    sharing: Sharing

    def part(self, rest: int, free: int) -> int:
        """Ranks of a unit that a domain takes; neither rest is then below the least."""
        least = self.least
        if self.sharing is Sharing.EVEN:
            parts = -(-rest // free)
            return -(-rest // (parts * self.grain)) * self.grain
        if rest == free or free - rest >= least:
            return rest
        if rest - free >= least:
            return free
        most = min(rest, free) - least
        if most < least:
            return rest if rest < free else max(0, rest - least)
        if self.sharing is Sharing.HALF:
            half = free // 2 // self.grain * self.grain
            return min(max(half, least), most)
        if rest < free and self.sharing is Sharing.ALL:
            return rest
        return most


def _laid(room: Sequence[int], size: int, count: int, rule: _Rule) -> list[Unit] | None:
    """Units along the domains by a rule, None if they do not fit."""
    begun: list[_Open] = []
    unfinished: list[_Open] = []
    for domain, space in enumerate(room):
        free = space
        unfinished = [unit for unit in unfinished if unit.rest]
        waiting = [*unfinished]
        while free >= rule.least:
            if not waiting:
                if len(begun) == count:
                    break
                new = _Open([], size)
                for units in (begun, unfinished, waiting):
                    units.append(new)
            unit = waiting.pop(0)
            part = rule.part(unit.rest, free)
            if not rule.least <= part <= free:
                break
            unit.parts.append(Part(domain, part))
            unit.rest -= part
            free -= part
    if len(begun) < count or any(unit.rest for unit in begun):
        return None
    return [unit.parts for unit in begun]


def one_large_part(
    room: IntArray, outer: IntArray, size: int, count: int, far: float = 1.0
) -> Sequence[Unit]:
    """Units that lie mostly in one domain each, the fewest pairs parted.

    At first the largest rooms take one unit each. Then others take their place as long
    as that parts fewer pairs: a room that is emptied for many rests may save a unit
    from lying in two outer domains.

    Parameters
    ----------
    room : ndarray, shape (D,), ranks
        In all, enough for all units.
    outer : ndarray, shape (D,)
        Outer domain of each.
    size, count : int
        Ranks of a unit, and units.
    far : float
        What a pair counts whose ranks are not in one outer domain; others count 1.
    """
    return _one_large(tuple(room.tolist()), tuple(outer.tolist()), size, count, far)


@lru_cache(maxsize=64)
def _one_large(
    rooms: tuple[int, ...], outers: tuple[int, ...], size: int, count: int, far: float
) -> Sequence[Unit]:
    room, outer = np.array(rooms), np.array(outers)
    by_room = np.argsort(-room, kind="stable")
    main, others = by_room[:count].tolist(), by_room[count:].tolist()
    best = _around(room, outer, size, count, main)
    least = _pairs(best, outer, far)
    if least <= count * _fewest_pairs(size, int(room.max())) * min(1.0, far):
        return best
    # A try looks at every domain.
    tries = min(SWAPS, LAID // max(count, len(room)))
    # Rooms alike in one outer domain are one sort; two sorts are swapped once.
    sorts = list(zip(rooms, outers, strict=True))
    tried: set[tuple[tuple[int, int], ...]] = set()
    done: set[tuple[int, int]] = set()
    for place in reversed(range(len(main))):
        if sorts[main[place]] in done:
            continue
        is_better = False
        for number, other in enumerate(others):
            swap = sorts[main[place]], sorts[other]
            if room[other] == 0 or swap in tried:
                continue
            if tries == 0:
                return best
            tried.add(swap)
            tries -= 1
            found = _around(
                room, outer, size, count, [*main[:place], other, *main[place + 1 :]]
            )
            pairs = _pairs(found, outer, far)
            if pairs < least:
                main[place], others[number] = other, main[place]
                best, least, is_better = found, pairs, True
                tried.clear()
                done.clear()
        if not is_better:
            done.add(sorts[main[place]])
    return best


def _around(
    room: IntArray, outer: IntArray, size: int, count: int, main: Sequence[int]
) -> list[Unit]:
    """Units with their large parts on given domains.

    What is left over takes the rests, the largest first: each goes to the room that it
    leaves least of, in the same outer domain if one there has enough. A rest that fits
    in none takes several.
    """
    free = room.copy()
    units: list[Unit] = []
    for domain in main:
        part = min(int(room[domain]), size)
        units.append([Part(domain, part)] if part else [])
        free[domain] -= part
    units += [[] for _ in range(count - len(units))]
    rests = [size - sum(part.size for part in unit) for unit in units]
    rooms = _Rooms(free, outer)
    for index in sorted(range(count), key=lambda i: -rests[i]):
        rest = rests[index]
        near = int(outer[main[index]]) if index < len(main) else None
        while rest:
            domain, space = rooms.take(rest, near)
            taken = min(rest, space)
            units[index].append(Part(domain, taken))
            rooms.put(domain, space - taken)
            rest -= taken
    return units


class _Rooms:
    """Domains with room, found by how much they have.

    Attributes
    ----------
    anywhere : dict of int to list of int
        Domains with so much room, in order.
    inside : dict of int to dict
        The same for each outer domain.
    """

    def __init__(self, free: IntArray, outer: IntArray) -> None:
        self.outer = outer.tolist()
        self.anywhere: dict[int, list[int]] = {}
        self.inside: dict[int, dict[int, list[int]]] = {}
        for domain in np.flatnonzero(free).tolist():
            self.put(domain, int(free[domain]))

    def put(self, domain: int, room: int) -> None:
        """A domain has so much room."""
        if room:
            inside = self.inside.setdefault(self.outer[domain], {})
            for domains in (self.anywhere, inside):
                insort(domains.setdefault(room, []), domain)

    def take(self, rest: int, near: int | None) -> tuple[int, int]:
        """The near room that a rest fits in best, else any other, else the largest.

        The domain and its room; it counts no longer.
        """
        inside = self.inside.get(near, {}) if near is not None else {}
        places = [rooms for rooms in (inside, self.anywhere) if rooms]
        fits = (min((r for r in rooms if r >= rest), default=0) for rooms in places)
        room = next(filter(None, fits), 0) or max(places[0])
        domain = next(rooms[room][0] for rooms in places if room in rooms)
        for rooms in (self.anywhere, self.inside[self.outer[domain]]):
            rooms[room].remove(domain)
            if not rooms[room]:
                del rooms[room]
        return domain, room


def _pairs(units: Sequence[Unit], outer: IntArray, far: float) -> float:
    """Pairs of ranks of a unit on different domains, those far apart weighed."""
    home = outer.tolist()
    return sum(
        one.size * two.size * (1.0 if home[one.domain] == home[two.domain] else far)
        for unit in units
        for one, two in combinations(unit, 2)
    )


def _fewest_pairs(size: int, room: int) -> float:
    """Pairs of ranks of a unit on different domains where each has so much room."""
    full, rest = divmod(size, room)
    return (size**2 - full * room**2 - rest**2) / 2
