"""Chains laid through domains, each begun where the last one ends, and backwards.

Two that share a domain then have the same stages there. Domains lie in *stretches*,
such as the racks of a block: stretches follow each other in any order, and so do the
domains of each. What an open chain lacks is its *rest*, 0 where none is open. A table
has what a stretch is worth by the rest before and after it: each chain that ends comes
first; one that goes on to another domain costs as much as all its stages; a stage that
two chains have in one domain is worth 1. The table of two stretches is their product as
matrices, with maxima for sums and sums for products.

By hand: chains of 4 in domains of 3, 2 and 3. The first has 3 stages and 1, the second
1 beside that, and 3. Both go on once, and have one stage alike.

Room that is not filled has a price, the least at which all chains fit: where domains
hold more, the chains that are cut the least are laid. A set without a place costs as
much as a share of a stage, or up to as many cuts as there are stages.

Shapes: L stages of a chain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf, prod
from typing import NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray, grouped
from placer.solve.tree.domains import ancestor_of_domain
from placer.solve.tree.fill import in_tree_order
from placer.topology.machine import Machine

# Stages of a chain, and stretches whose order is looked for. So many times as many sets
# of rooms, each once a stage, are there at most where every order is looked at.
MOST = 32

Rooms = tuple[int, ...]  # the largest first


class Stretch(NamedTuple):
    """What domains are worth that follow each other, by the rests; each (L, L)."""

    ends: IntArray  # chains
    worth: FloatArray  # besides
    wasted: IntArray  # room

    def losses(self, price: float) -> FloatArray:
        """How much less than at the most it is worth where room has a price; (L, L)."""
        worth = self.worth - price * self.wasted
        return np.asarray(worth - worth.max())


class Turn(NamedTuple):
    """Domains that follow others, and the rests before and after them."""

    earlier: Turn | None
    domains: IntArray
    before: int
    after: int


def chained(
    machine: Machine, tier: int, home: IntArray, size: int, wanted: int
) -> IntArray:
    """Sets in chains of a size, so many, each second one backwards; (wanted, size).

    None at all where chains are too long, or do not fit. ``home`` ((S,)): domain of
    each set, of a tier.
    """
    none = np.empty((0, size), dtype=np.int64)
    if size > MOST:
        return none
    room = np.bincount(home, minlength=len(machine.domain_names[tier]))
    rows = ChainRows(room, size, _apart(machine, tier))
    steps = rows.laid([*_groups(machine, tier, rows)], wanted)
    if not steps:
        return none
    sets = grouped(np.arange(len(home)), home)
    of_domain = dict(zip(np.unique(home).tolist(), sets, strict=True))
    taken = [of_domain[domain][:many] for domain, many in steps if many]
    found = np.concatenate(taken)[: size * wanted].reshape(wanted, size)
    found[1::2] = found[1::2, ::-1]
    return found


def _apart(machine: Machine, tier: int) -> float:
    """What it costs to go on in another stretch, against another domain.

    The share of the tier after next in the distance between domains of a tier.
    """
    last = len(machine.tiers) - 1
    inside, near, far = (
        machine.tiers[min(tier + more, last)].distance for more in range(3)
    )
    return (far - near) / (far - inside) if far > inside else 0.0


def _groups(machine: Machine, tier: int, rows: ChainRows) -> Iterator[list[IntArray]]:
    """Stretches of domains, those of one domain of the tier after next together.

    All orders of the rooms of a stretch can be looked at, and it lies in one domain of
    the next tier.
    """
    root = len(machine.tiers) - 1
    outer, farther = (
        ancestor_of_domain(machine, tier, min(tier + more, root)) for more in (1, 2)
    )
    along = in_tree_order(machine, tier)
    along = along[rows.room[along] > 0]
    for near in grouped(along, farther[along]):
        found = list[IntArray]()
        for own in grouped(near, outer[near]):
            first, known = 0, Counter[int]()
            for place, room in enumerate(rows.room[own].tolist()):
                known[room] += 1
                if rows.size * prod(n + 1 for n in known.values()) > MOST**2:
                    found.append(own[first:place])
                    first, known = place, Counter([room])
            found.append(own[first:])
        for first in range(0, len(found), MOST):
            yield found[first : first + MOST]


class ChainRows:
    """Rows of chains of one size in domains with so much room; shape (D,).

    ``apart``: what it costs to go on in another stretch, against another domain.
    """

    def __init__(self, room: IntArray, size: int, apart: float) -> None:
        self.room, self.size, self.apart = room, size, apart
        # A chain that ends is worth more than all else.
        self._end = float(size * (room.sum() + 1))
        # Of no domain: the rest is what it was.
        self._unused = np.where(np.eye(size) > 0, 0.0, -inf)
        self._of_room: dict[int, tuple[FloatArray, IntArray]] = {}
        self._of_rooms: dict[Rooms, FloatArray] = {(): self._unused}
        self._known: dict[Rooms, Stretch] = {}

    def laid(
        self, groups: Sequence[Sequence[IntArray]], wanted: int
    ) -> list[tuple[int, int]]:
        """Domains in turn, and how many sets each takes: so many chains, or a few more.

        None where that is not found. ``groups``: stretches, those of a group side by
        side.
        """
        low, high = 0, self.size**3
        best, ends = self._in_turn(groups, high / self.size)
        if ends < wanted:
            return []
        while high - low > 1:
            middle = (low + high) // 2
            turns, ends = self._in_turn(groups, middle / self.size)
            if ends < wanted:
                low = middle
            else:
                high, best = middle, turns
        return [step for turn in best for step in self._steps(*turn[1:])]

    def _in_turn(
        self, groups: Sequence[Sequence[IntArray]], price: float
    ) -> tuple[list[Turn], int]:
        """Stretches in an order that loses little, group after group; chains that end.

        For every rest the best order so far is kept. ``price``: of room for a set.
        """
        size = self.size
        losses = self._unused[0]
        last: list[Turn | None] = [None] * size
        for group in groups:
            own: dict[Rooms, list[IntArray]] = {}
            for domains in group:
                own.setdefault(self._rooms(domains), []).append(domains)
            kinds = [*own]
            more = np.array([self._stretch(k).losses(price) for k in kinds])
            left = np.tile([len(own[rooms]) for rooms in kinds], (size, 1))
            for _ in group:
                sums = losses[:, None, None] + more.transpose(1, 0, 2)
                sums[left == 0] = -inf
                sums = sums.reshape(-1, size)
                losses = sums.max(axis=0)
                before, kind = np.divmod(sums.argmax(axis=0), len(kinds))
                left = left[before]
                left[np.arange(size), kind] -= 1
                number = left[np.arange(size), kind]
                last = [
                    Turn(last[b], own[kinds[k]][n], b, after)
                    for after, (b, k, n) in enumerate(
                        zip(before.tolist(), kind.tolist(), number, strict=True)
                    )
                ]
        found, turn = list[Turn](), last[0]
        while turn:
            found.append(turn)
            turn = turn.earlier
        ends = sum(
            int(self._stretch(self._rooms(domains)).ends[before, after])
            for _, domains, before, after in found
        )
        return found[::-1], ends

    def _rooms(self, domains: Sequence[int] | IntArray) -> Rooms:
        return tuple(sorted(self.room[domains].tolist(), reverse=True))

    def _stretch(self, rooms: Rooms) -> Stretch:
        if rooms in self._known:
            return self._known[rooms]
        table, begun = self._table(rooms), -np.arange(self.size) % self.size
        ends = np.rint(np.maximum(table, 0.0) / self._end).astype(np.int64)
        worth = table - self._end * ends - self.apart * self.size * (begun > 0)
        wasted = sum(rooms) - self.size * ends - begun + begun[:, None]
        self._known[rooms] = found = Stretch(ends, worth, wasted)
        return found

    def _table(self, rooms: Rooms) -> FloatArray:
        """The table of domains in their best order; shape (L, L)."""
        if rooms not in self._of_rooms:
            tables = [
                (self._domain(room)[0][:, :, None] + self._table(others)).max(axis=1)
                for room, others in _first(rooms)
            ]
            self._of_rooms[rooms] = np.max(tables, axis=0)
        return self._of_rooms[rooms]

    def _steps(
        self, domains: IntArray, before: int, after: int
    ) -> Iterator[tuple[int, int]]:
        """Domains in their best order, and what each takes."""
        left = domains.tolist()
        while left:
            rooms = self._rooms(left)
            value = self._table(rooms)[before, after]
            for room, others in _first(rooms):
                worth, taken = self._domain(room)
                sums = worth[before] + self._table(others)[:, after]
                if sums.max() == value:
                    break
            rest = int(sums.argmax())
            domain = next(one for one in left if self.room[one] == room)
            yield domain, int(taken[before, rest])
            left.remove(domain)
            before = rest

    def _domain(self, room: int) -> tuple[FloatArray, IntArray]:
        """The table of a domain, and how many sets it takes; each shape (L, L)."""
        if room in self._of_room:
            return self._of_room[room]
        size, worth = self.size, self._unused.copy()
        taken = np.zeros((size, size), dtype=np.int64)
        for before in range(size):
            if before > room > 0:
                worth[before, before - room], taken[before, before - room] = -size, room
            left = room - before
            for whole in range(max(left // size - 1, 0), left // size + 1):
                for begun in range(min(left - whole * size, size - 1) + 1):
                    parts = [part for part in (before, *[size] * whole, begun) if part]
                    alike, goes_on = sum(map(min, pairwise(parts))), begun > 0
                    ends, after = whole + (before > 0), -begun % size
                    value = self._end * ends + alike - size * goes_on
                    if value > worth[before, after]:
                        worth[before, after], taken[before, after] = value, sum(parts)
        self._of_room[room] = worth, taken
        return worth, taken


def _first(rooms: Rooms) -> Iterator[tuple[int, Rooms]]:
    """Each room that may come first, and the others."""
    for room in dict.fromkeys(rooms):
        place = rooms.index(room)
        yield room, rooms[:place] + rooms[place + 1 :]
