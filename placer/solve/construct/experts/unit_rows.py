"""Units whose parts a program has counted in halves of nodes, some in rows.

Parts of odd sizes meet in pairs on a domain, but for as many as it has halves to spare.
The units of a pair follow each other in their stage: the last ranks of one and the
first of the other share a node. A unit is in two pairs at the most, so those that share
nodes are rows. Each row lies in the stage that asks for what it has, and the replicas
follow each other as its units do. Shapes: U units, D domains along the tree, C sets of
replicas, P stages.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import BoolArray, IntArray
from placer.solve.count.paths import filled

if TYPE_CHECKING:
    from placer.solve.bounds.experts.part_counts import Counts, Stated
    from placer.solve.construct.experts.parts_asked import Asked

MOST_PAIRS = 2  # of a unit


class UnitRows:
    """Units with their parts and replicas.

    Attributes
    ----------
    held : ndarray, shape (U, D)
        Halves of nodes of each unit in each domain.
    slot : ndarray, shape (C, P, 1)
        Unit of each stage of each set of replicas.
    """

    def __init__(self, count: int, outer: IntArray) -> None:
        self.held = np.zeros((count, len(outer)), dtype=np.int64)
        self.slot = np.empty((0, 0, 1), dtype=np.int64)
        self._outer, self._row = outer, np.arange(count)
        # Domains that a unit shares, by the unit beside it.
        self._beside: list[dict[int, int]] = [{} for _ in range(count)]
        self._ends: dict[int, tuple[int, int]] = {}

    @classmethod
    def of(
        cls, asked: Asked, counts: Counts, stated: Stated, counted: list[int]
    ) -> UnitRows | None:
        """Units as counted; None where rows find no place."""
        ways = [way for column, way in stated.ways for _ in range(counted[column])]
        times = counts.times()
        level = np.array([int((times > counts.near[way.low]).sum()) for way in ways])
        needs: defaultdict[int, list[int]] = defaultdict(list)
        for unit in np.argsort(level, kind="stable").tolist():
            for size in ways[unit].sizes:
                needs[size].append(unit)
        rows = cls(len(ways), asked.ground.outer)
        replicas = [counted[column] for column in stated.taken]
        wanted = np.repeat(stated.levels, replicas, axis=0)
        (arcs,) = stated.arcs.values()
        left, rooms = list(counted), asked.ground.room.tolist()
        fills = [filled(arcs, left, room, 1)[0] if room else [] for room in rooms]
        is_placed = rows._place(rooms, fills, needs)
        return rows if is_placed and rows._give(wanted, level) else None

    @property
    def kept(self) -> BoolArray:
        """Units with parts of odd sizes."""
        kept: BoolArray = np.any(self.held % 2 > 0, axis=1)
        return kept

    def in_order(self, unit: int, domains: IntArray) -> IntArray:
        """Domains of a unit, those that it shares first and last."""
        first, last = self._ends.get(unit, (-1, -1))
        order = (domains == last).astype(int) - (domains == first)
        return domains[np.argsort(order, kind="stable")]

    def _place(
        self, rooms: list[int], fills: list[list[int]], needs: dict[int, list[int]]
    ) -> bool:
        """Give parts of domains to units; whether all pairs are found."""
        more = Counter(size for parts in fills for size in parts)
        more.subtract({size: len(units) for size, units in needs.items()})
        others: list[tuple[int, int]] = []
        for domain, (room, parts) in enumerate(zip(rooms, fills, strict=True)):
            odd = sorted(size for size in parts if size % 2)
            spare = room - sum(parts)
            for size in sorted({*odd}):
                if len(odd) > spare and more[size] > 0:
                    odd.remove(size)
                    more[size], spare = more[size] - 1, spare + size
            while len(odd) > spare:
                if not self._pair(domain, odd.pop(), odd.pop(), needs):
                    return False
            others += [(size, domain) for size in parts if size % 2 == 0]
            others += [(size, domain) for size in odd]
        for size, domain in sorted(others, reverse=True):
            if needs[size]:
                # Units that lie in the same outer domain already come first.
                is_near = self._outer == self._outer[domain]
                near = self.held[needs[size]][:, is_near].any(axis=1)
                unit = needs[size].pop(int(near.argmax()))
                self.held[unit, domain] += size
        return True

    def _pair(
        self, domain: int, one: int, other: int, needs: dict[int, list[int]]
    ) -> bool:
        """Two units share a node of a domain; whether any two may."""
        for first in needs[one]:
            for second in needs[other]:
                most = max(len(self._beside[first]), len(self._beside[second]))
                if most == MOST_PAIRS or self._row[first] == self._row[second]:
                    continue
                for unit, size in ((first, one), (second, other)):
                    needs[size].remove(unit)
                    self.held[unit, domain] += size
                self._beside[first][second] = self._beside[second][first] = domain
                self._row[self._row == self._row[second]] = self._row[first]
                return True
        return False

    def _give(self, wanted: IntArray, level: IntArray) -> bool:
        """Give units to replicas that ask for levels, (C, P); whether rows fit."""
        if wanted.size != len(level):
            return False
        given = np.full(wanted.shape, -1)
        order: list[int] = []
        for row in sorted(self._rows(), key=len, reverse=True):
            free = [one for one in range(len(wanted)) if one not in order]
            if len(row) > len(free):
                return False
            ways = [_matched(level[row], asked, free) for asked in wanted.T]
            stage = min(range(len(ways)), key=lambda stage: ways[stage][0])
            cohorts = ways[stage][1]
            given[cohorts, stage] = row
            order += cohorts
            shared = [self._beside[one][other] for one, other in pairwise(row)]
            ends = zip([-1, *shared], [*shared, -1], strict=True)
            self._ends |= dict(zip(row, ends, strict=True))
        empty = np.argwhere(given < 0)
        empty = empty[np.argsort(wanted[tuple(empty.T)], kind="stable")]
        rest = np.setdiff1d(np.arange(len(level)), given)
        given[tuple(empty.T)] = rest[np.argsort(level[rest], kind="stable")]
        # Replicas follow each other as the units of rows do.
        order += [one for one in range(len(wanted)) if one not in order]
        self.slot = given[order][..., None]
        return True

    def _rows(self) -> Iterator[list[int]]:
        """Units of each row, from one end to the other."""
        done: set[int] = set()
        for end in [
            unit for unit, beside in enumerate(self._beside) if len(beside) == 1
        ]:
            row = [end]
            while end not in done:
                following = [u for u in self._beside[row[-1]] if u not in row[-2:-1]]
                if not following:
                    done.add(row[-1])
                    yield row
                    break
                row += following


def _matched(
    level: IntArray, asked: IntArray, free: list[int]
) -> tuple[tuple[int, int], list[int]]:
    """Replicas for the units of a row, and what these lack and have to spare of levels.

    The slowest unit chooses first: who asks for the most that it has, or for the least.
    """
    left, found = sorted(free, key=lambda one: int(asked[one])), {}
    for unit in np.argsort(level, kind="stable").tolist():
        served = [one for one in left if asked[one] <= level[unit]]
        found[unit] = served[-1] if served else left[0]
        left.remove(found[unit])
    cohorts = [found[unit] for unit in range(len(level))]
    short = np.maximum(asked[cohorts] - level, 0).sum()
    spare = np.maximum(level - asked[cohorts], 0).sum()
    return (int(short), int(spare)), cohorts
