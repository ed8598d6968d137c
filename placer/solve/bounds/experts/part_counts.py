"""Whole numbers of parts: whether all units can be made up, and replicas be so fast.

A program counts how domains are filled (paths along their room; Valerio de Carvalho
1999, arc flow) and how units are made up: inside one outer domain, or of *shares* of
several. It asks for the units that the slowest replicas allowed must have, so where it
has no solution there are none. A share of ``m`` of ``U`` pieces puts ``m (U - m)``
pairs on its uplink; units in shares are counted by class, the time that they stay
below. See docs/method.md, "Parts in whole numbers".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf
from typing import NamedTuple

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.solve.bounds.experts.level_boxes import (
    least_asked,
    replicas_taken,
    slower_times,
)
from placer.solve.count.model import Program, Term
from placer.solve.count.paths import Arc, paths
from placer.solve.count.summands import summands

ROUNDING = 1e-9
MOST_WAYS = 4_000  # to make up units, all in all
ANY = 0.0  # s, the limit of units that none tells apart


class Way(NamedTuple):
    """A unit inside an outer domain, or a share of one, or the shares of a unit.

    Attributes
    ----------
    home : int
        Outer domain; -1 for the shares of a unit.
    sizes : tuple of int
        Of parts, or of shares, ascending.
    low : int
        The least part has no fewer pieces.
    limit : float, s
        A unit in several outer domains, or the one that has such a share, is faster;
        0 where that is not told apart.
    """

    home: int
    sizes: tuple[int, ...]
    low: int
    limit: float = ANY


class Stated(NamedTuple):
    """A program of parts, and what its columns count.

    Attributes
    ----------
    size : int
        Of a unit.
    ways : list of (int, Way)
        By column.
    arcs : mapping of int to mapping of Arc to int
        Columns of the paths of each outer domain.
    taken : list of int
        Columns of replicas.
    levels : ndarray, shape (C, P)
        Of their stages.
    """

    program: Program
    size: int
    ways: list[tuple[int, Way]]
    arcs: Mapping[int, Mapping[Arc, int]]
    taken: list[int]
    levels: IntArray


@dataclass(frozen=True, eq=False)
class Counts:
    """Units and domains.

    Attributes
    ----------
    rooms : mapping of (int, int) to int
        Domains by outer domain and room, in pieces.
    size, number : int
        Pieces of a unit, and units.
    replicas, together : int
        Replicas, or sets of them that wait for the same units, and sets that wait for
        one unit.
    alike : int
        Units of a stage that one such set waits for.
    near : mapping of int to float, s
        Least time of a unit by its smallest part.
    apart : function
        Least time of a member of a part of so many pieces, in a share of so many, s.
    uplinks : mapping of int to float
        Pairs a second that each outer domain's uplink carries.
    latency : mapping of int to float, s
        Of a member of a share of so many pieces, at least.
    """

    rooms: Mapping[tuple[int, int], int]
    size: int
    number: int
    replicas: int
    together: int
    alike: int
    near: Mapping[int, float]
    apart: Callable[[int, int], float]
    uplinks: Mapping[int, float]
    latency: Mapping[int, float]

    def times(self) -> FloatArray:
        """Times of all levels, the slowest first, s."""
        found = {*self.near.values()}
        if self.uplinks:
            found |= {self.apart(part, part) for part in self.near if part < self.size}
        return np.array(sorted(found, reverse=True))

    def least_parts(self) -> list[int]:
        """Pieces of the least part of a unit of each of those times, at least."""
        slower = slower_times(self.times()).tolist()
        # No unit is faster than it would be near, whatever its level says.
        return [
            min((n for n, s in self.near.items() if s < time), default=min(self.near))
            for time in slower
        ]

    def stated(self, levels: IntArray, slowest: Sequence[float]) -> Stated | None:
        """What replicas of these levels or faster ones ask for.

        None where there is too much to be counted. Without a solution there are no such
        replicas.

        Parameters
        ----------
        levels : ndarray, shape (C, P)
            Of each stage of a replica, the slowest that are allowed.
        slowest : sequence of float, s
            No replica has a stage whose all-to-all takes longer than the first, two of
            them longer than the second, and so on.
        """
        times = self.times()
        slower = slower_times(times)
        chosen, least = least_asked(levels, len(times))
        # Faster than the first are all units, than each other one those of some stages.
        first = int(levels.min())
        is_last = np.append((least[:, 1:] != least[:, :-1]).any(axis=0), True)
        is_last[first] = True
        told = [
            min(float(slower[level]), slowest[-most])
            for level, most in enumerate(least.max(axis=0).tolist())
            if is_last[level] and level >= first and most
        ]
        for classes in (list(dict.fromkeys(told)), [ANY]):
            program = Program()
            found = self._units(program, told[0], classes, slowest[0])
            if found is not None:
                break
        else:
            return None
        ways, arcs = found
        units = [(c, way) for c, way in ways if way.home < 0 or self.is_unit(way)]
        program.row([Term(c) for c, _ in units], self.number, self.number)
        good = [
            [
                Term(column, self.together)
                for column, way in units
                if way.limit <= seconds and self._seconds(way) < seconds
            ]
            for seconds in slower.tolist()
        ]
        taken = replicas_taken(program, self.replicas, self.alike * least, good)
        return Stated(program, self.size, ways, arcs, taken, levels[chosen])

    def _seconds(self, way: Way) -> float:
        """Least time of a unit, or of one that has such a share, s.

        In several outer domains the least part waits for what it sends to its own and
        to the others, and each share for what it sends to the others.
        """
        least = self.near[way.low]
        if way.home >= 0:
            return least
        holding = [n for n in way.sizes if n == way.low or n >= 2 * way.low]
        return max(
            least,
            min(self.apart(way.low, share) for share in holding),
            *(self.apart(share, share) for share in way.sizes),
        )

    def _units(
        self,
        program: Program,
        seconds: float,
        classes: Sequence[float],
        slowest: float,
    ) -> tuple[list[tuple[int, Way]], dict[int, dict[Arc, int]]] | None:
        """Columns of units faster than ``seconds``; None if there are too many.

        And of shares of them, and of the paths of each outer domain.
        """
        lows = [low for low, time in self.near.items() if time < seconds]
        apart = [low for low in lows if low < self.size] if self.uplinks else []
        homes = sorted({home for home, _ in self.rooms})
        room = {h: max(room for home, room in self.rooms if home == h) for h in homes}
        carried = self._carried(min(apart, default=self.size), slowest)
        ways: list[tuple[int, Way]] = []
        for way in chain(
            self._near(room, min(lows, default=self.size)),
            *(self._shares(room, apart, carried, limit) for limit in classes),
            *(self._across(apart, limit or seconds, limit) for limit in classes),
        ):
            if len(ways) == MOST_WAYS:
                return None
            most = self.number * self.size
            ways.append((program.column(most, block=way.home), way))
        parts = [(c, way) for c, way in ways if way.home >= 0]
        arcs: dict[int, dict[Arc, int]] = {}
        least = min((way.sizes[0] for _, way in parts), default=1)
        for home in homes:
            ends = {room: n for (at, room), n in self.rooms.items() if at == home}
            own = paths(program, ends, least, self.size, home)
            for size in sorted({arc.size for arc in own if arc.is_part}):
                held = [
                    Term(column)
                    for arc, column in own.items()
                    if arc.is_part and arc.size == size
                ]
                used = [
                    Term(c, -way.sizes.count(size))
                    for c, way in parts
                    if way.home == home and size in way.sizes
                ]
                program.row([*held, *used], 0)
            arcs[home] = own
        units = [(c, way) for c, way in ways if way.home < 0 or self.is_unit(way)]
        shares = [(c, way) for c, way in parts if not self.is_unit(way)]
        for limit in classes:
            self._shares_suffice(
                program,
                [share for share in shares if share[1].limit == limit],
                [unit for unit in units if unit[1].limit == limit],
                apart,
            )
        # What follows for whole numbers of units, and of shares.
        for home in homes:
            whole = [Term(c) for c, way in units if way.home == home]
            program.row(whole, most=self._room(home) // self.size)
        for home, pairs in carried.items():
            mine = [(c, sum(way.sizes)) for c, way in shares if way.home == home]
            program.row([Term(c, n * (self.size - n)) for c, n in mine], most=pairs)
            sizes = sorted({n for _, n in mine})
            lent = self._most_lent(sizes, home, pairs)
            program.row([Term(c, n) for c, n in mine], most=lent)
            self._wait_for_uplinks(program, shares, home, pairs)
        return ways, arcs

    def _wait_for_uplinks(
        self,
        program: Program,
        shares: Sequence[tuple[int, Way]],
        home: int,
        carried: int,
    ) -> None:
        """A share is no faster than its uplink, which carries what others send too."""
        alike: dict[tuple[float, int], list[int]] = {}
        for column, way in shares:
            if way.home == home:
                alike.setdefault((way.limit, sum(way.sizes)), []).append(column)
        leaving = [
            Term(c, n * (self.size - n))
            for (_, n), columns in alike.items()
            for c in columns
        ]
        for (limit, pieces), columns in alike.items():
            most = self._pairs(home, pieces, limit)
            if most < carried:
                is_used = program.column(1, block=home)
                count = most // (pieces * (self.size - pieces))
                used = [*(Term(c) for c in columns), Term(is_used, -count)]
                program.row(used, most=0)
                program.row([*leaving, Term(is_used, carried - most)], most=carried)

    def _pairs(self, home: int, pieces: int, limit: float) -> float:
        """Pairs that an uplink may carry beside a share that is faster than a limit."""
        if limit in (ANY, inf):
            return inf
        sending = max(0.0, limit - self.latency[pieces]) * (1 + ROUNDING)
        return int(sending * self.uplinks[home])

    def _carried(self, low: int, slowest: float) -> dict[int, int]:
        """Pairs that each uplink carries while an all-to-all of such parts lasts."""
        waited = (self.latency[n] for n in range(low, self.size - low + 1))
        sending = max(0.0, slowest - min(waited, default=0.0)) * (1 + ROUNDING)
        most = self.number * self.size**2  # where the step waits for none, all pairs
        return {h: int(min(sending * n, most)) for h, n in self.uplinks.items()}

    def _room(self, home: int) -> int:
        """Pieces that an outer domain has room for."""
        return sum(room * n for (at, room), n in self.rooms.items() if at == home)

    def _most_lent(self, sizes: Sequence[int], home: int, pairs: int) -> int:
        """Most pieces in shares of an outer domain whose uplink carries such pairs."""
        room = self._room(home)
        fewest = np.full(room + 1, np.inf)  # pairs of so many pieces
        fewest[0] = 0.0
        for lent in range(1, room + 1):
            for size in sizes:
                if size <= lent:
                    leaving = fewest[lent - size] + size * (self.size - size)
                    fewest[lent] = min(fewest[lent], leaving)
        return int(np.flatnonzero(fewest <= pairs)[-1])

    def is_unit(self, way: Way) -> bool:
        """Whether a way makes up a unit inside an outer domain, not a share."""
        return sum(way.sizes) == self.size

    def _near(self, room: Mapping[int, int], low: int) -> Iterator[Way]:
        """Units inside one outer domain."""
        for home, most in room.items():
            if self._room(home) < self.size:
                continue
            if most >= self.size:
                yield Way(home, (self.size,), self.size)
            for sizes in summands(self.size, low, min(most, self.size - low)):
                yield Way(home, sizes, sizes[0])

    def _shares(
        self,
        room: Mapping[int, int],
        lows: Sequence[int],
        carried: Mapping[int, int],
        limit: float = ANY,
    ) -> Iterator[Way]:
        """Shares of units that the uplink of an outer domain carries, inside each."""
        for low in lows[:1]:
            for home, most in room.items():
                for pieces in range(low, self.size - low + 1):
                    pairs = min(carried[home], self._pairs(home, pieces, limit))
                    if pieces * (self.size - pieces) > pairs:
                        continue
                    for sizes in summands(pieces, low, min(most, pieces)):
                        yield Way(home, sizes, sizes[0], limit)

    def _across(
        self, lows: Sequence[int], seconds: float, limit: float
    ) -> Iterator[Way]:
        """Units in shares of several outer domains, by their least part."""
        for low in lows:
            for sizes in summands(self.size, low, self.size - low):
                way = Way(-1, sizes, low, limit)
                is_held = any(n == low or n >= 2 * low for n in sizes)
                if is_held and self._seconds(way) < seconds:
                    yield way

    def _shares_suffice(
        self,
        program: Program,
        shares: Sequence[tuple[int, Way]],
        units: Sequence[tuple[int, Way]],
        lows: Sequence[int],
    ) -> None:
        """There are shares for all units that lie in several outer domains."""
        for low in lows:
            for pieces in range(low, self.size - low + 1):
                had = [
                    Term(c)
                    for c, way in shares
                    if way.low >= low and sum(way.sizes) == pieces
                ]
                used = [
                    Term(c, -way.sizes.count(pieces))
                    for c, way in units
                    if way.home < 0 and way.low >= low and pieces in way.sizes
                ]
                if used:
                    program.row([*had, *used], 0)


def rooms_of(home: IntArray, room: IntArray) -> dict[tuple[int, int], int]:
    """Domains with room by outer domain and room, from their outer domains."""
    found = Counter(zip(home.tolist(), room.tolist(), strict=True))
    return {key: count for key, count in found.items() if key[1] > 0}
