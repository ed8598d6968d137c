"""Sets that are not yet part of larger ones, and ways to gather them.

Shapes: S sets.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.tree.capacity import ancestor_of_domain
from placer.topology.machine import Machine


class Way(Enum):
    """How sets are gathered that no domain holds whole; and what it is called."""

    # One by one, each in the rooms that fit best.
    FITTING = ""
    # The largest rooms hold the main parts of all, what is left their rests.
    AT_ONCE = ", at once"
    # So, but over the whole machine: a rest lies far away rather than in two parts.
    ANYWHERE = ", rests anywhere"
    # Chains go through domains in turn, in the order in which fewest are cut.
    IN_ROWS = ", in rows"


class Pools:
    """Sets that are not yet part of larger ones, by domain.

    Levels are tiers from that of the sets' domains out.

    ``home`` ((S,)): domain of each, mostly.
    """

    def __init__(self, machine: Machine, tier: int, home: IntArray) -> None:
        domains = np.arange(int(machine.domain_of_node[tier].max()) + 1)
        outer = range(tier + 1, len(machine.tiers))
        self._sets: list[list[int]] = [
            own.tolist() for own in _by_owner(home, len(domains))
        ]
        self._within = [
            domains,
            *(ancestor_of_domain(machine, tier, each) for each in outer),
        ]
        self._free = [
            np.bincount(within[home], minlength=int(within.max()) + 1)
            for within in self._within
        ]
        self._inside: list[list[IntArray]] = [[]]
        for each in outer:
            around = machine.domain_around[each - 1]
            self._inside.append(_by_owner(around, int(around.max()) + 1))

    def gathered(self, size: int, wanted: int, way: Way) -> IntArray:
        """Sets of a size, so many or more, the main part first; shape (S, size)."""
        found: list[list[int]] = []
        levels = range(len(self._free))
        for level in (0, levels[-1]) if way is Way.ANYWHERE else levels:
            free = self._free[level]
            for domain in np.argsort(-free, kind="stable").tolist():
                many = int(free[domain]) // size
                if level:
                    many = min(many, max(wanted - len(found), 0))
                if level and many and way in (Way.AT_ONCE, Way.ANYWHERE):
                    found += self._completed(level, domain, size, many)
                else:
                    found += [self._taken(level, domain, size) for _ in range(many)]
        return np.array(found)

    def _completed(
        self, level: int, domain: int, size: int, many: int
    ) -> list[list[int]]:
        """Sets of which the largest rooms of a domain hold the main parts.

        Other rooms then hold the rests, the largest first: one that is near and has
        enough, or any that has, or several.
        """
        room = self._free[0]
        own = np.flatnonzero(self._within[level] == domain)
        mains = own[np.argsort(-room[own], kind="stable")][many - 1 :: -1].tolist()
        found = [self._taken(0, main, int(room[main])) for main in mains]
        for near in range(1, level + 1):
            for part, main in zip(found, mains, strict=True):
                inside = self._within[near] == self._within[near][main]
                enough = np.flatnonzero(inside & (room >= size - len(part)))
                if len(part) < size and len(enough):
                    best = int(enough[room[enough].argmin()])
                    part += self._taken(0, best, size - len(part))
        for part, main in zip(found, mains, strict=True):
            homes = [int(within[main]) for within in self._within[: level + 1]]
            rest = size - len(part)
            near = next(n for n, h in enumerate(homes) if self._free[n][h] >= rest)
            part += self._taken(near, homes[near], rest)
        return found

    def _taken(self, level: int, domain: int, size: int) -> list[int]:
        """So many sets of a domain: of the room that fits best, else of the largest."""
        if not level:
            for free, within in zip(self._free, self._within, strict=True):
                free[within[domain]] -= size
            own = self._sets[domain]
            self._sets[domain] = own[size:]
            return own[:size]
        inside = self._inside[level][domain]
        taken: list[int] = []
        while rest := size - len(taken):
            free = self._free[level - 1][inside]
            enough = np.where(free >= rest, -free, -free.max() - 1)
            place = int((free if free.max() < rest else enough).argmax())
            part = min(rest, int(free[place]))
            taken += self._taken(level - 1, int(inside[place]), part)
        return taken


def _by_owner(owner: IntArray, count: int) -> list[IntArray]:
    """What each owner has, in order."""
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=count))
    return np.split(order, ends[:-1])
