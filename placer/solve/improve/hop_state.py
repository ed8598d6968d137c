"""Units over domains and what their flows cost: some copies of a placement, a table.

The table says what the edges of each unit would cost were it in each domain, so a
change is priced by a few look-ups. A step proposes many changes at once: a unit moves
into free room, or changes places with another. All are judged against the state before
the step; of the accepted ones a change is made only when none before it touches its
units, their neighbours or the same room, so every change has exactly the effect that it
was judged by. The copies are independent; they share arrays because a step costs little
more for many changes than for a few.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import BoolArray, FloatArray, IntArray
from placer.solve.improve.moves import BATCH_MOVES, BatchMove

if TYPE_CHECKING:
    from placer.solve.problem.params import Params

# Work of a step: its calls, and what a proposal adds; in microseconds, roughly.
STEP_WORK, PROPOSAL_WORK = 150.0, 0.4
# Rows of the table that are filled together, and the work of an entry.
ROWS_AT_ONCE = 512
PULL_WORK = 0.004


class Rooms(NamedTuple):
    """The domains of one copy.

    Attributes
    ----------
    capacity : ndarray, shape (D,), ranks
    distance : ndarray, shape (D, D)
    enclosure : ndarray, shape (D,)
        Units stay among domains with the same number here.
    """

    capacity: IntArray
    distance: FloatArray
    enclosure: IntArray


class UnitGraph(NamedTuple):
    """Units and their neighbours, rows padded with the unit itself at weight 0.

    Attributes
    ----------
    size : ndarray, shape (U,), ranks
    neighbour : ndarray, shape (U, most neighbours), unit
    weight : ndarray, shape (U, most neighbours)
    degree : ndarray, shape (U,)
        Entries of a row that are no padding.
    """

    size: IntArray
    neighbour: IntArray
    weight: FloatArray
    degree: IntArray


class Placed(NamedTuple):
    """Where the units are.

    Attributes
    ----------
    copy : ndarray, shape (U,)
        Copy that each unit belongs to, from 0 up.
    home : ndarray, shape (U,)
        Domain of each unit.
    """

    copy: IntArray
    home: IntArray


class _Changes(NamedTuple):
    """Proposed changes, one a row: ``unit`` goes from ``old`` to ``new``.

    ``partner`` goes the other way; it is the unit itself when nobody does. ``shift`` is
    how many ranks ``new`` gains.
    """

    unit: IntArray
    partner: IntArray
    old: IntArray
    new: IntArray
    shift: IntArray
    move: IntArray
    copy: IntArray

    def only(self, chosen: BoolArray) -> _Changes:
        """The chosen rows."""
        rows = chosen.nonzero()[0]  # once: masks are slow
        return _Changes(*(column.take(rows) for column in self))


def setup_work(neighbours: int, domains: int) -> float:
    """Work of setting up for so many neighbours of all units, in microseconds."""
    return PULL_WORK * neighbours * domains


class HopState:
    """Copies of a placement under annealing.

    Parameters
    ----------
    graph : UnitGraph
        Of all copies; no edge joins two of them.

    Attributes
    ----------
    home : ndarray, shape (U,)
        Domain of each unit.
    base : ndarray, shape (U,)
        First domain of each unit's copy: those of all copies are numbered through.
    roomy : ndarray
        Domains that had room, and units, at the last look.
    """

    def __init__(
        self,
        graph: UnitGraph,
        placed: Placed,
        rooms: Rooms,
        rng: np.random.Generator,
        params: Params,
    ) -> None:
        copy, home = placed
        self.graph, self.copy, self.home, self.rooms = graph, copy, home.copy(), rooms
        self.rng, self.params = rng, params
        self.copies = int(copy.max()) + 1
        self.domains = len(rooms.capacity)
        self.base = copy * self.domains
        held = np.bincount(self.base + home, graph.size, self.copies * self.domains)
        self.free = np.tile(rooms.capacity, self.copies) - held.astype(np.int64)
        self.pull = self._all_pulls()
        share, fewest = params.anneal_proposed
        self.proposed = max(fewest, int(len(home) * share))
        self.hot = self.cold = np.ones(self.copies)
        self.steps = self._quench = self._step = 0

    def cool(self, hot: FloatArray, cold: FloatArray, work: float) -> HopState:
        """The same, to cool each copy from ``hot`` to ``cold`` and then to 0.

        Parameters
        ----------
        hot, cold : ndarray, shape (copies,)
            Temperatures, in the unit of the cost.
        work : float, us
            Sets the number of steps, with that of the set-up.
        """
        left = work - setup_work(self.graph.weight.size, self.domains)
        steps = max(0, int(left / (STEP_WORK + PROPOSAL_WORK * self.proposed)))
        self.hot, self.cold, self.steps, self._step = hot, cold, steps, 0
        self._quench = steps - int(steps * self.params.anneal_quenched)
        return self

    @property
    def moves(self) -> tuple[BatchMove, ...]:
        """What proposes changes."""
        return BATCH_MOVES

    @property
    def progress(self) -> float:
        """Share of the way from hot to cold, inf beyond."""
        return self._step / self._quench if self._step < self._quench else inf

    @property
    def is_done(self) -> bool:
        """Whether all steps are made."""
        return self._step >= self.steps

    def draw(self, count: int) -> FloatArray:
        """Random numbers above 0, up to 1."""
        return 1.0 - self.rng.random(count)

    def propose(self) -> _Changes:
        """Changes between different domains that leave no domain too full."""
        if self._step % self.params.anneal_look == 0:
            self._look()
        movers = int(self.proposed * self.params.anneal_moved) if len(self.roomy) else 0
        counts = (self.proposed - movers, movers)
        pairs = [
            move(self, count)
            for move, count in zip(self.moves, counts, strict=True)
            if count
        ]
        unit, partner, domain = map(np.concatenate, zip(*pairs, strict=True))
        new = domain - self.base.take(unit)
        # Many would stay where they are: the rest is looked at for the others only.
        going = (self.home.take(unit) != new).nonzero()[0]
        unit, partner, new = (c.take(going) for c in (unit, partner, new))
        size = self.graph.size
        shift = size.take(unit) - size.take(partner) * (partner != unit)
        copy, old = self.copy.take(unit), self.home.take(unit)
        move = np.searchsorted(np.cumsum(counts), going, side="right")
        changes = _Changes(unit, partner, old, new, shift, move, copy)
        return changes.only(self._allowed(changes))

    def neighbour_of(self, unit: IntArray) -> IntArray:
        """A random neighbour of each unit, itself when it has none."""
        neighbour, degree = self.graph.neighbour, self.graph.degree
        nth = (self.rng.random(len(unit)) * degree.take(unit)).astype(np.int64)
        found: IntArray = neighbour.take(unit * neighbour.shape[1] + nth)
        return found

    def member_of(self, domain: IntArray, otherwise: IntArray) -> IntArray:
        """A random unit that was in each domain at the last look."""
        count = self._count.take(domain)
        nth = (self.rng.random(len(domain)) * count).astype(np.int64)
        inside = self._inside.take(self._first.take(domain) + nth, mode="clip")
        return np.where(count > 0, inside, otherwise)

    def _allowed(self, changes: _Changes) -> BoolArray:
        """Which changes keep inside enclosures and fit."""
        unit, partner, old, new, shift = changes[:5]
        base, enclosure = self.base.take(unit), self.rooms.enclosure
        found: BoolArray = (
            (enclosure.take(old) == enclosure.take(new))
            & ((partner == unit) | (self.home.take(partner) == new))
            & (self.free.take(base + new) >= shift)
            & (self.free.take(base + old) >= -shift)
        )
        return found

    def delta(self, changes: _Changes) -> FloatArray:
        """What each change, by itself, adds to the cost."""
        cost = self._nearer(changes.unit, changes.old, changes.new)
        swaps = (changes.unit != changes.partner).nonzero()[0]
        unit, partner, old, new = (column.take(swaps) for column in changes[:4])
        cost[swaps] += self._nearer(partner, new, old)
        # Two neighbours that change places stay as far apart as they were.
        edge = self.graph.neighbour.take(unit, axis=0) == partner[:, None]
        which, nth = edge.nonzero()
        here, there, distance = old[which], new[which], self.rooms.distance
        kept = distance[here, there] - distance[here, here]
        cost[swaps[which]] += 2 * self.graph.weight[unit[which], nth] * kept
        return cost

    def _nearer(self, unit: IntArray, old: IntArray, new: IntArray) -> FloatArray:
        """What the edges of units cost more in other domains."""
        row = unit * self.domains
        return self.pull.take(row + new) - self.pull.take(row + old)

    def apply(self, changes: _Changes, accepted: BoolArray) -> None:
        """Make accepted changes that no earlier one interferes with.

        Few are accepted in a step, so a loop takes less time than arrays.
        """
        self._step += 1
        rows = changes.only(accepted)
        neighbour, home, free = self.graph.neighbour, self.home, self.free
        units, rooms = set[int](), set[int]()
        moved: list[tuple[int, int, int]] = []
        for one, other, old, new, shift in zip(
            *(column.tolist() for column in rows[:5]), strict=True
        ):
            first = int(self.base[one])
            both, ends = (one, other), (first + old, first + new)
            is_free = units.isdisjoint(both)
            for near in neighbour[one].tolist(), neighbour[other].tolist():
                is_free = is_free and units.isdisjoint(near)
            if shift:
                is_free = is_free and rooms.isdisjoint(ends)
                rooms.update(ends)
            units.update(both)
            if is_free:
                home[one] = new
                free[ends[0]] += shift
                free[ends[1]] -= shift
                moved.append((one, old, new))
                if other != one:
                    home[other] = old
                    moved.append((other, new, old))
        if moved:
            self._note_pulls(*np.array(moved).T)

    def _note_pulls(self, moved: IntArray, old: IntArray, new: IntArray) -> None:
        """Note what the neighbours of units that have moved would cost now."""
        graph, distance = self.graph, self.rooms.distance
        # Padding repeats the unit itself, with nothing to add.
        rows = graph.neighbour[moved].ravel() * self.domains
        at = rows[:, None] + np.arange(self.domains)
        nearer = distance[new] - distance[old]
        more = graph.weight[moved][:, :, None] * nearer[:, None, :]
        np.add.at(self.pull.reshape(-1), at.ravel(), more.ravel())

    def _look(self) -> None:
        """Note who is in which domain and where there is room."""
        domain = self.base + self.home
        self._inside = np.argsort(domain, kind="stable")
        self._count = np.bincount(domain, minlength=len(self.free))
        self._first = np.cumsum(self._count) - self._count
        self.roomy = np.flatnonzero((self.free > 0) & (self._count > 0))

    def _all_pulls(self) -> FloatArray:
        """Cost of each unit's edges were it in each domain; shape (U, D)."""
        graph, distance = self.graph, self.rooms.distance
        pull = np.zeros((len(self.home), len(distance)))
        for first in range(0, len(pull), ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            for column in range(graph.neighbour.shape[1]):
                at = self.home[graph.neighbour[rows, column]]
                pull[rows] += graph.weight[rows, column, None] * distance[at]
        return pull
