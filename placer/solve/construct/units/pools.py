"""Sets that are not yet part of larger ones, and ways to gather them.

Shapes: S sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import cache
from itertools import accumulate, pairwise, permutations, product

import numpy as np

from placer.base.arrays import IntArray, grouped
from placer.solve.tree.capacity import ancestor_of_domain
from placer.solve.tree.fill import in_tree_order
from placer.topology.machine import Machine


class Way(Enum):
    """How sets are gathered that no domain holds whole; and what it is called."""

    # One by one, each in the rooms that fit best.
    FITTING = ""
    # The largest rooms hold the main parts of all, what is left their rests.
    AT_ONCE = ", at once"
    # So, but over the whole machine: a rest lies far away rather than in two parts.
    ANYWHERE = ", rests anywhere"
    # Domains that together hold whole chains come first.
    ENDING = ", ending with domains"


# Rooms of which every order is tried, and their sizes.
MOST_ORDERED, MOST_SIZES = 7, 3
LOOKED = 256  # domains that are looked at together, the first of the order
# Chains that some domains hold, and whether these may hold a little more, in the order
# tried: single domains first, then as many chains as share stages, with nothing to
# spare at first.
TOGETHER: Sequence[tuple[int, bool]] = [
    (1, True),
    *((many, waste) for waste in (False, True) for many in range(2, 7)),
]


class Pools:
    """Sets that are not yet part of larger ones, by domain.

    Levels are tiers from that of the sets' domains out.

    ``home`` ((S,)): domain of each, mostly.
    """

    def __init__(self, machine: Machine, tier: int, home: IntArray) -> None:
        self._order, self._home = in_tree_order(machine, tier), home
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
            parent = ancestor_of_domain(machine, each - 1, each)
            self._inside.append(_by_owner(parent, int(parent.max()) + 1))

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

    def chained(self, size: int, wanted: int) -> IntArray:
        """Chains of a size, so many, that end with domains; shape (wanted, size).

        Those of 16 lie in four domains with room for four, or in four with room for
        three and one for four. Such domains are looked for inside each of the next
        tier, then among what is left further out; the others hold chains in turn.
        """
        found: list[list[int]] = []
        spare = len(self._home) - size * wanted
        for within, free in zip(self._within[1:], self._free[1:], strict=True):
            rest = free % size
            inside = grouped(self._order, within[self._order])
            for outer in np.argsort(rest, kind="stable").tolist():
                left = inside[outer].tolist()
                unused = min(spare, int(rest[outer]))
                while (own := self._together(left, size, unused)) and (
                    len(found) + sum(self._room(own)) // size <= wanted
                ):
                    waste = sum(self._room(own)) % size
                    spare, unused = spare - waste, unused - waste
                    found += self._there_and_back(self._alike(own, size), size)
                    left = [d for d in left if d not in own]
        found += self._there_and_back(self._order.tolist(), size)
        return np.array(found[:wanted])

    def _room(self, domains: Sequence[int]) -> list[int]:
        room: list[int] = self._free[0][domains].tolist()
        return room

    def _together(self, domains: Sequence[int], size: int, spare: int) -> list[int]:
        """Domains that hold whole sets and no more to spare, if there are any."""
        looked = [d for d in domains if self._free[0][d]][:LOOKED]
        for many, may_waste in TOGETHER:
            fit = _fitting(self._room(looked), many * size, spare * may_waste)
            if fit:
                return [looked[place] for place in fit]
        return []

    def _alike(self, domains: list[int], size: int) -> list[int]:
        """Domains in the order that gives chains in one domain the most stages alike.

        Domains of several outer ones stay in their order, in which they lie near. What
        the first one leaves out is taken out of it.
        """
        if len(set(self._within[1][domains].tolist())) > 1:
            return domains
        skipped, *places = most_alike(tuple(self._room(domains)), size)
        self._taken(0, domains[places[0]], skipped)
        return [domains[place] for place in places]

    def _there_and_back(self, domains: Sequence[int], size: int) -> list[list[int]]:
        """Sets that domains hold in turn, every second one backwards.

        Two that share a domain then have the same stages there.
        """
        taken: list[int] = []
        for domain in domains:
            taken += self._taken(0, domain, int(self._free[0][domain]))
        rows = [taken[n : n + size] for n in range(0, len(taken) - size + 1, size)]
        return [row[::-1] if n % 2 else row for n, row in enumerate(rows)]

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


@cache
def most_alike(rooms: tuple[int, ...], size: int) -> tuple[int, ...]:
    """How many sets the first room leaves out, and the places of rooms in their order.

    Chains of a size fill the rooms in turn, every second one backwards, and those that
    share a room are alike in as many stages as can be: a room for 7 with the last 3
    sets of one chain of 8 and the last 4 of another has 3 stages twice.
    """
    places = range(len(rooms))
    if len(rooms) > MOST_ORDERED or len(set(rooms)) > MOST_SIZES:
        return (0, *places)
    wanted = sum(rooms) // size * size

    def alike(tried: tuple[int, tuple[int, ...]]) -> int:
        skipped, order = tried
        ends = [min(end, wanted) for end in accumulate(order, initial=-skipped)]
        return sum(
            min(-begin % size, end % size)
            for begin, end in pairwise(ends)
            if begin // size != end // size
        )

    orders = dict[tuple[int, ...], tuple[int, ...]]()
    for order in permutations(places):
        orders.setdefault(tuple(rooms[place] for place in order), order)
    spare = min(sum(rooms) - wanted, min(rooms) - 1)
    skipped, best = max(product(range(spare + 1), orders), key=alike)
    return (skipped, *orders[best])


def _fitting(sizes: Sequence[int], least: int, spare: int) -> list[int]:
    """Places of the first sizes that add up to the least or little more, if any."""
    sums = [*accumulate(sizes, lambda known, size: known | known << size, initial=1)]
    enough = sums[-1] >> least & (1 << spare + 1) - 1
    if not enough:
        return []
    total = least + (enough & -enough).bit_length() - 1
    found = []
    for place in reversed(range(len(sizes))):
        if not sums[place] >> total & 1:
            found.append(place)
            total -= sizes[place]
    return found[::-1]


def _by_owner(owner: IntArray, count: int) -> list[IntArray]:
    """What each owner has, in order."""
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=count))
    return np.split(order, ends[:-1])
