"""What the search on the busiest ports tries: a unit moves, two change places, or some.

Where a rank is fast only beside several others, such as a hub in its own ring, each of
them by itself has no reason to come. So clusters move too: a unit with neighbours from
its domain, for as many of another domain: those that are tied to it least, or others.
Shapes: U units, D domains, K changes of up to M units each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import BoolArray, FloatArray, IntArray
from placer.solve.improve.port_tables import EXCHANGE, MOVE, SHARES, SWAP, Seats

if TYPE_CHECKING:
    from placer.solve.improve.port_loads import PortLoads

NOBODY = -1
# Units that go either way in a cluster, at most; more are better built than moved.
CLUSTER = 6


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


class _Drawn(NamedTuple):
    """Units to begin with, domains, and random numbers for what else is chosen.

    Attributes
    ----------
    unit, anywhere : ndarray, shape (K,)
    drawn : ndarray, shape (6, K)
        For a busy unit, a neighbour, whether to go anywhere, somebody there, whether
        to take free room, and whether to go for the loosest.
    """

    unit: IntArray
    anywhere: IntArray
    drawn: FloatArray


class PortMoves:
    """Proposes changes to a placement.

    Parameters
    ----------
    room : ndarray, shape (D,)
        Units each domain can hold.
    enclosure : ndarray, shape (D,)
        Units stay between domains with the same number here.

    Attributes
    ----------
    cluster : int
        Units that go either way at most: half of what the largest domain holds, since
        the others may go instead. 1 where only single units move.
    seats : Seats
        Who is where.
    """

    def __init__(
        self,
        loads: PortLoads,
        room: IntArray,
        enclosure: IntArray,
        rng: np.random.Generator,
    ) -> None:
        self._loads, self._room, self._rng = loads, room, rng
        self._enclosure = enclosure.copy()
        self.cluster = min(CLUSTER, int(room.max()) // 2)

    def look(self, home: IntArray, heat: FloatArray) -> None:
        """Note who is where, and how busy each unit is; shape (U,)."""
        ties = self._ties(home) * (1 + self._rng.random(len(home)))
        count = np.bincount(home, minlength=len(self._room))
        self.seats = Seats(
            home,
            np.lexsort((ties, home)),
            count,
            np.cumsum(count) - count,
            self._room - count,
            self._enclosure,
            np.cumsum(heat) / max(float(heat.sum()), 1e-300),
        )

    def singles(self, count: int) -> Changes:
        """Units go to a neighbour's domain, into free room or for one that is there."""
        seats, begun = self.seats, self._drawn(count)
        loops, tables = self._loads.loops, self._loads.tables
        if loops is not None:
            return Changes(*loops.singles(tables, seats, SHARES, *begun))
        unit, old, new = self._begun(*begun)
        *_, somebody, room, _ = begun.drawn
        held = seats.held[new]
        partner = self._in_turn(new, somebody)
        alone = (seats.free[new] > 0) & ((room < SHARES.into_room) | (held == 0))
        units = np.stack((unit, np.where(alone, NOBODY, partner)), axis=1)
        places = np.stack((old, new), axis=1)
        move = np.where(alone, MOVE, SWAP)
        allowed = self._is_allowed(old, new) & (alone | (held > 0))
        return Changes(units, places, places[:, ::-1], move).only(allowed)

    def clusters(self, count: int) -> Changes:
        """Units and neighbours of theirs go together, for as many others."""
        seats, begun, most = self.seats, self._drawn(count), self.cluster
        size = self._rng.integers(2, most + 1, count)
        grow = self._rng.random((2 * (most - 1), 2, count))
        loops, tables = self._loads.loops, self._loads.tables
        if loops is not None:
            return Changes(*loops.clusters(tables, seats, SHARES, *begun, size, grow))
        unit, old, new = self._begun(*begun)
        *_, somebody, room, loose = begun.drawn
        going = self._grown(unit, size, grow)
        number = np.sum(going != NOBODY, axis=1)
        # Free room is taken first, now and then.
        taken = np.minimum(seats.free[new], number)
        taken = np.where(room < SHARES.into_room, taken, 0)
        begin = np.where(loose < SHARES.loose, 0.0, somebody)[:, None]
        places = np.arange(most)
        coming = self._in_turn(new[:, None], begin, places)
        wanted = np.minimum(number - taken, seats.held[new])
        coming = np.where(places < wanted[:, None], coming, NOBODY)
        back = np.sum(coming != NOBODY, axis=1)
        going = np.where(places < (back + taken)[:, None], going, NOBODY)
        away, here = (np.repeat(place[:, None], most, axis=1) for place in (old, new))
        allowed = self._is_allowed(old, new) & (going[:, 0] != NOBODY)
        return Changes(
            np.concatenate((going, coming), axis=1),
            np.concatenate((away, here), axis=1),
            np.concatenate((here, away), axis=1),
            np.full(count, EXCHANGE),
        ).only(allowed)

    def _drawn(self, count: int) -> _Drawn:
        rng = self._rng
        return _Drawn(
            rng.integers(0, len(self.seats.home), count),
            rng.integers(0, len(self._room), count),
            rng.random((6, count)),
        )

    def _begun(
        self, unit: IntArray, anywhere: IntArray, drawn: FloatArray
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Units, half of them busy, their domains and those that they may go to."""
        home, busy_until = self.seats.home, self.seats.busy_until
        chosen, neighbour, far, *_ = drawn
        busy = np.searchsorted(busy_until, chosen[: int(len(unit) * SHARES.busy)])
        unit[: len(busy)] = np.minimum(busy, len(home) - 1)
        new = home[self._neighbour(unit, neighbour)]
        return unit, home[unit], np.where(far < SHARES.far, anywhere, new)

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

    def _in_turn(
        self, domain: IntArray, drawn: FloatArray, nth: IntArray | int = 0
    ) -> IntArray:
        """The n-th in each domain after somebody, in a round, loosest first."""
        seats = self.seats
        held = seats.held[domain]
        place = ((drawn * held).astype(np.int64) + nth) % np.maximum(held, 1)
        at = np.minimum(seats.first[domain] + place, len(seats.home) - 1)
        return np.asarray(seats.inside[at])

    def _grown(self, seed: IntArray, size: IntArray, drawn: FloatArray) -> IntArray:
        """Seeds and neighbours from their domains, so many where there are as many.

        Shape (K, cluster).
        """
        home = self.seats.home
        found = np.full((len(seed), self.cluster), NOBODY)
        found[:, 0] = seed
        number = np.ones(len(seed), dtype=np.int64)
        rows = np.arange(len(seed))
        for which, who in drawn:
            nth = (which * number).astype(np.int64)
            one = self._neighbour(found[rows, nth], who)
            joins = (home[one] == home[seed]) & (number < size)
            joins &= (found != one[:, None]).all(axis=1)
            found[rows[joins], number[joins]] = one[joins]
            number += joins
        return np.where(np.arange(self.cluster) < size[:, None], found, NOBODY)

    def _ties(self, home: IntArray) -> FloatArray:
        """Seconds that each unit would be busy more outside its domain, roughly."""
        ends, size = self._loads.messages.ends, self._loads.messages.size_bytes
        near = home[ends[0]] == home[ends[1]]
        found = np.zeros(len(home))
        for end in ends:
            found += np.bincount(end[near], size[near], len(found))
        return found
