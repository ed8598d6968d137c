"""What the search on the busiest ports tries: a unit moves, two change places, or some.

Where a rank is fast only beside several others, such as a hub in its own ring, each of
them by itself has no reason to come. So clusters move too: a unit with neighbours from
its domain, for as many of another domain, neighbours of each other or those that are
tied to it least. Shapes: U units, D domains, K changes of up to M units each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from placer.solve.improve.port_loads import PortLoads

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

NOBODY = -1
# Shares of the changes that begin with a busy unit, that go anywhere, and that take
# free room where there is some.
BUSY, FAR, INTO_ROOM = 0.5, 0.1, 0.5
# Units that go either way in a cluster, at most; more are better built than moved.
CLUSTER = 6
SWAP, MOVE, EXCHANGE = range(3)


class Changes(NamedTuple):
    """Proposed changes, one a row.

    Attributes
    ----------
    units, old, new : ndarray, shape (K, M)
        Who moves, from where, to where; `NOBODY` where fewer do. The first of a row
        always does.
    move : ndarray, shape (K,)
        Number of the move that proposed each.
    """

    units: IntArray
    old: IntArray
    new: IntArray
    move: IntArray

    @property
    def copy(self) -> IntArray:
        """There is one copy."""
        return np.zeros(len(self.units), dtype=np.int64)

    def only(self, chosen: BoolArray) -> Changes:
        """The chosen rows."""
        return Changes(*(column[chosen] for column in self))

    @property
    def movers(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """(change, unit, old, new) of all that move."""
        change, column = np.nonzero(self.units != NOBODY)
        at = change, column
        return change, self.units[at], self.old[at], self.new[at]


def swap_busy() -> None:
    """Name of the move in which two units change places."""


def move_busy() -> None:
    """Name of the move of one unit into free room."""


def exchange_clusters() -> None:
    """Name of the move in which several go either way."""


class PortMoves:
    """Proposes changes to a placement.

    Parameters
    ----------
    loads : PortLoads
    room : ndarray, shape (D,)
        Units each domain can hold.
    enclosure : ndarray, shape (D,)
        Units stay between domains with the same number here.
    rng : Generator

    Attributes
    ----------
    cluster : int
        Units that go either way at most: half of what the largest domain holds, since
        the others may go instead. 1 where only single units move.
    free : ndarray, shape (D,)
        Room that is left.
    """

    def __init__(
        self,
        loads: PortLoads,
        room: IntArray,
        enclosure: IntArray,
        rng: np.random.Generator,
    ) -> None:
        self._loads, self._room, self._rng = loads, room, rng
        self._enclosure = enclosure
        self.cluster = min(CLUSTER, int(room.max()) // 2)

    def look(self, home: IntArray, heat: FloatArray) -> None:
        """Note who is where, and how busy each unit is; shape (U,)."""
        self._home = home
        ties = self._ties() * (1 + self._rng.random(len(home)))
        self._inside = np.lexsort((ties, home))
        self._count = np.bincount(home, minlength=len(self._room))
        self._first = np.cumsum(self._count) - self._count
        self.free = self._room - self._count
        self._busy_until = np.cumsum(heat) / max(float(heat.sum()), 1e-300)

    def singles(self, count: int) -> Changes:
        """Units go to a neighbour's domain, into free room or for one that is there."""
        unit, old, new = self._begun(count)
        held = self._count[new]
        partner = self._somebody(new)
        has_room = self.free[new] > 0
        alone = has_room & ((self._rng.random(count) < INTO_ROOM) | (held == 0))
        stale = (self._home[partner] != new) | (held == 0)
        units = np.stack((unit, np.where(alone, NOBODY, partner)), axis=1)
        places = np.stack((old, new), axis=1)
        move = np.where(alone, MOVE, SWAP)
        allowed = self._is_allowed(old, new) & (alone | ~stale)
        return Changes(units, places, places[:, ::-1], move).only(allowed)

    def clusters(self, count: int) -> Changes:
        """Units and neighbours of theirs go together, for as many others."""
        unit, old, new = self._begun(count)
        rng, most = self._rng, self.cluster
        size = rng.integers(2, most + 1, count)
        going = self._grown(unit, size)
        number = np.sum(going != NOBODY, axis=1)
        coming = self._grown(self._somebody(new), number)
        loosest = self._loosest(new, number)
        loose = rng.random(count) < 0.5
        coming = np.where(loose[:, None], loosest, coming)
        # Free room is taken first, now and then.
        taken = np.minimum(self.free[new], number)
        taken = np.where(rng.random(count) < INTO_ROOM, taken, 0)
        places = np.arange(most)
        coming = np.where(places < (number - taken)[:, None], coming, NOBODY)
        back = np.sum(coming != NOBODY, axis=1)
        going = np.where(places < (back + taken)[:, None], going, NOBODY)
        away, here = (np.repeat(place[:, None], most, axis=1) for place in (old, new))
        # Who comes back may have left since the last look.
        fits = (coming == NOBODY) | (self._home[coming] == here)
        allowed = self._is_allowed(old, new) & fits.all(axis=1)
        allowed &= going[:, 0] != NOBODY
        return Changes(
            np.concatenate((going, coming), axis=1),
            np.concatenate((away, here), axis=1),
            np.concatenate((here, away), axis=1),
            np.full(count, EXCHANGE),
        ).only(allowed)

    def _begun(self, count: int) -> tuple[IntArray, IntArray, IntArray]:
        """Units, half of them busy, their domains and those that they may go to."""
        rng, home = self._rng, self._home
        unit = rng.integers(0, len(home), count)
        busy = np.searchsorted(self._busy_until, rng.random(int(count * BUSY)))
        unit[: len(busy)] = np.minimum(busy, len(home) - 1)
        new = home[self._neighbour(unit, rng.random(count))]
        far = rng.random(count) < FAR
        return unit, home[unit], np.where(far, self._anywhere(count), new)

    def _anywhere(self, count: int) -> IntArray:
        return self._rng.integers(0, len(self._room), count)

    def _is_allowed(self, old: IntArray, new: IntArray) -> BoolArray:
        is_open = self._enclosure[old] == self._enclosure[new]
        return np.asarray(is_open & (old != new))

    def _neighbour(self, unit: IntArray, drawn: FloatArray) -> IntArray:
        """Somebody whom each unit sends to, or receives from, as it is drawn."""
        loads = self._loads
        nth = (drawn * loads.degree[unit]).astype(np.int64)
        at = np.minimum(loads.first[unit] + nth, len(loads.flows) - 1)
        ends = loads.messages.ends[:, loads.flows[at]]
        return np.asarray(np.where(ends[0] == unit, ends[1], ends[0]))

    def _somebody(self, domain: IntArray) -> IntArray:
        """Somebody in each domain, as it was at the last look."""
        nth = (self._rng.random(len(domain)) * self._count[domain]).astype(np.int64)
        at = np.minimum(self._first[domain] + nth, len(self._home) - 1)
        return np.asarray(self._inside[at])

    def _loosest(self, domain: IntArray, number: IntArray) -> IntArray:
        """So many of each domain that were tied to it least; shape (K, cluster)."""
        nth = np.arange(self.cluster)
        at = np.minimum(self._first[domain][:, None] + nth, len(self._home) - 1)
        kept = nth < np.minimum(number, self._count[domain])[:, None]
        return np.where(kept, self._inside[at], NOBODY)

    def _grown(self, seed: IntArray, size: IntArray) -> IntArray:
        """Seeds and neighbours from their domains, so many where there are as many.

        Shape (K, cluster).
        """
        drawn = self._rng.random((2 * (self.cluster - 1), 2, len(seed)))
        loads = self._loads
        if loads.loops is not None:
            found = loads.loops.grown(loads.tables, self._home, seed, size, drawn)
            return np.asarray(found)
        found = np.full((len(seed), self.cluster), NOBODY)
        found[:, 0] = seed
        number = np.ones(len(seed), dtype=np.int64)
        rows = np.arange(len(seed))
        for which, who in drawn:
            nth = (which * number).astype(np.int64)
            one = self._neighbour(found[rows, nth], who)
            joins = (self._home[one] == self._home[seed]) & (number < size)
            joins &= (found != one[:, None]).all(axis=1)
            found[rows[joins], number[joins]] = one[joins]
            number += joins
        return np.where(np.arange(self.cluster) < size[:, None], found, NOBODY)

    def _ties(self) -> FloatArray:
        """Seconds that each unit would be busy more outside its domain, roughly."""
        ends, size = self._loads.messages.ends, self._loads.messages.size_bytes
        near = self._home[ends[0]] == self._home[ends[1]]
        found = np.zeros(len(self._home))
        for end in ends:
            found += np.bincount(end[near], size[near], len(found))
        return found
