"""Simulated annealing of units over domains, several copies of a placement at once.

Kirkpatrick, Gelatt and Vecchi 1983, "Optimization by simulated annealing", Science
220(4598). Every step proposes many changes at once: a unit moves into free room, or
changes places with another. All are judged by Metropolis' rule against the state before
the step; of the accepted ones a change is made only when none before it touches its
units, their neighbours or the same room, so every change has exactly the effect that it
was judged by. The copies are independent; they share arrays because a step costs little
more for many changes than for a few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from placer.solve.improve.graph import UnitGraph
    from placer.solve.run.budget import Budget
    from placer.solve.run.move_counts import MoveCounts

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Share of the units for which a step proposes a change.
PROPOSED_SHARE = 0.25
FEWEST_PROPOSED = 256
# Share of the proposals that fill free room, and of the others that go anywhere.
MOVED_SHARE = 0.5
FAR_SHARE = 0.1
# Steps between two looks at who is where, for proposals only.
STEPS_A_LOOK = 16
# Steps at temperature 0 at the end, relative to those before.
QUENCHED_SHARE = 0.15
# Work of a step: its calls, and what a proposal adds; in microseconds, roughly.
STEP_WORK, PROPOSAL_WORK = 150.0, 0.4
# Rows of the table of pulls that are filled together, and the work of an entry.
ROWS_AT_ONCE = 512
PULL_WORK = 0.004
# A change that gains less than this is rounding.
WORTHWHILE = 1e-9
NOBODY = 2**62


class Rooms(NamedTuple):
    """The domains of one copy.

    Attributes
    ----------
    capacity : ndarray, shape (D,), ranks
    distance : ndarray, shape (D, D)
    fence : ndarray, shape (D,)
        Units stay among domains with the same number here.
    """

    capacity: IntArray
    distance: FloatArray
    fence: IntArray


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

    def only(self, chosen: BoolArray) -> _Changes:
        """The chosen rows."""
        return _Changes(*(column[chosen] for column in self))


def setup_work(neighbours: int, domains: int) -> float:
    """Work of setting up for so many neighbours of all units, in microseconds."""
    return PULL_WORK * neighbours * domains


class Annealer:
    """Copies of a placement under annealing.

    Parameters
    ----------
    graph : UnitGraph
        Of all copies; no edge joins two of them.
    placed : Placed
    rooms : Rooms
    rng : Generator
    counts : MoveCounts
        Told of every move.
    """

    def __init__(
        self,
        graph: UnitGraph,
        placed: Placed,
        rooms: Rooms,
        rng: np.random.Generator,
        counts: MoveCounts,
    ) -> None:
        copy, home = placed
        self.graph, self.copy, self.home, self.rooms = graph, copy, home.copy(), rooms
        self.rng = rng
        self.copies = int(copy.max()) + 1
        domains = len(rooms.capacity)
        # Domains of all copies are numbered through.
        self.base = copy * domains
        held = np.bincount(self.base + home, graph.size, self.copies * domains)
        self.free = np.tile(rooms.capacity, self.copies) - held.astype(np.int64)
        self.pull = self._all_pulls()
        self.counts = counts
        self.proposed = max(FEWEST_PROPOSED, int(len(home) * PROPOSED_SHARE))
        self._claim = np.full(len(home), NOBODY)
        self._room_claim = np.full(len(self.free), NOBODY)

    def run(
        self,
        hot: FloatArray,
        cold: FloatArray,
        work: float,
        budget: Budget,
    ) -> None:
        """Anneal each copy from ``hot`` to ``cold``, then at temperature 0.

        Parameters
        ----------
        hot, cold : ndarray, shape (copies,)
            Temperatures, in the unit of the cost.
        work : float
            Sets the number of steps, with that of the set-up.
        budget : Budget
            Asked now and then.
        """
        left = work - setup_work(self.graph.weight.size, len(self.rooms.capacity))
        steps = max(0, int(left / (STEP_WORK + PROPOSAL_WORK * self.proposed)))
        quenched = int(steps * QUENCHED_SHARE)
        cooling = (cold / hot) ** (1 / max(1, steps - quenched))
        temperature = hot.copy()
        for step in range(steps):
            if step % STEPS_A_LOOK == 0:
                if budget.is_over():
                    return
                self._look()
            if step == steps - quenched:
                temperature[:] = 0.0
            self._step(temperature)
            temperature *= cooling

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

    def _look(self) -> None:
        """Note who is in which domain and where there is room."""
        domain = self.base + self.home
        self._inside = np.argsort(domain, kind="stable")
        self._count = np.bincount(domain, minlength=len(self.free))
        self._first = np.cumsum(self._count) - self._count
        self._open = np.flatnonzero((self.free > 0) & (self._count > 0))

    def _step(self, temperature: FloatArray) -> None:
        changes = self._allowed(self._proposals())
        cost = self._cost(changes)
        limit = -temperature[self.copy[changes.unit]] * np.log(
            1.0 - self.rng.random(len(cost))
        )
        accepted = changes.only((cost <= limit) & ((cost < -WORTHWHILE) | (limit > 0)))
        is_swap, helped = changes.unit != changes.partner, cost < -WORTHWHILE
        for move, own in (("swap units", is_swap), ("move a unit", ~is_swap)):
            self.counts.count(move, int((helped & own).sum()), int(own.sum()))
        if len(accepted.unit):
            self._make(accepted.only(self._independent(accepted)))

    def _proposals(self) -> _Changes:
        moves = int(self.proposed * MOVED_SHARE) if len(self._open) else 0
        swaps = self.proposed - moves
        unit, domain = self._towards_neighbours(swaps)
        partner = self._member(domain, unit)
        if moves:
            mover, target = self._into_free_room(moves)
            unit = np.concatenate((unit, mover))
            partner = np.concatenate((partner, mover))
            domain = np.concatenate((domain, target))
        size = self.graph.size
        shift = size[unit] - np.where(partner == unit, 0, size[partner])
        new = domain - self.base[unit]
        return _Changes(unit, partner, self.home[unit], new, shift)

    def _towards_neighbours(self, count: int) -> tuple[IntArray, IntArray]:
        """Units and domains: those of a neighbour, some anywhere in the copy."""
        rng, home = self.rng, self.home
        unit = rng.integers(0, len(home), count)
        domain = home[self._neighbour(unit)]
        far = rng.random(count) < FAR_SHARE
        anywhere = rng.integers(0, len(self.rooms.capacity), count)
        return unit, self.base[unit] + np.where(far, anywhere, domain)

    def _into_free_room(self, count: int) -> tuple[IntArray, IntArray]:
        """Units and domains with room where a neighbour of the unit is."""
        domain = self._open[self.rng.integers(0, len(self._open), count)]
        resident = self._member(domain, np.zeros(count, dtype=np.int64))
        return self._neighbour(resident), domain

    def _neighbour(self, unit: IntArray) -> IntArray:
        """A random neighbour of each unit, itself when it has none."""
        nth = (self.rng.random(len(unit)) * self.graph.degree[unit]).astype(np.int64)
        found: IntArray = self.graph.neighbour[unit, nth]
        return found

    def _member(self, domain: IntArray, otherwise: IntArray) -> IntArray:
        """A random unit that was in each domain at the last look."""
        nth = (self.rng.random(len(domain)) * self._count[domain]).astype(np.int64)
        place = np.minimum(self._first[domain] + nth, len(self._inside) - 1)
        return np.where(self._count[domain] > 0, self._inside[place], otherwise)

    def _allowed(self, changes: _Changes) -> _Changes:
        """Changes between different domains that leave no domain too full."""
        unit, partner, old, new, shift = changes
        base, fence = self.base[unit], self.rooms.fence
        return changes.only(
            (old != new)
            & (fence[old] == fence[new])
            & ((partner == unit) | (self.home[partner] == new))
            & (self.free[base + new] >= shift)
            & (self.free[base + old] >= -shift)
        )

    def _cost(self, changes: _Changes) -> FloatArray:
        """What each change adds to the cost, by itself."""
        unit, partner, old, new, _ = changes
        pull, distance = self.pull, self.rooms.distance
        moved = pull[unit, new] - pull[unit, old]
        back = pull[partner, old] - pull[partner, new]
        # Two neighbours that change places stay as far apart as they were.
        edge = (self.graph.neighbour[unit] == partner[:, None]) * self.graph.weight[
            unit
        ]
        kept = 2 * edge.sum(axis=1) * (distance[old, new] - distance[old, old])
        cost: FloatArray = moved + np.where(partner == unit, 0.0, back + kept)
        return cost

    def _independent(self, changes: _Changes) -> BoolArray:
        """Changes that no earlier one interferes with."""
        unit, partner, old, new, shift = changes
        number = np.arange(len(unit))
        units = np.concatenate((unit, partner))
        sizing = shift != 0
        base = self.base[unit]
        rooms = np.concatenate(((base + old)[sizing], (base + new)[sizing]))
        claim, room_claim = self._claim, self._room_claim
        np.minimum.at(claim, units, np.tile(number, 2))
        np.minimum.at(room_claim, rooms, np.tile(number[sizing], 2))
        neighbour = self.graph.neighbour
        first = np.minimum.reduce(
            [
                claim[unit],
                claim[partner],
                claim[neighbour[unit]].min(axis=1),
                claim[neighbour[partner]].min(axis=1),
                np.where(sizing, room_claim[base + old], NOBODY),
                np.where(sizing, room_claim[base + new], NOBODY),
            ]
        )
        claim[units] = NOBODY
        room_claim[rooms] = NOBODY
        found: BoolArray = first >= number
        return found

    def _make(self, changes: _Changes) -> None:
        """Make changes that do not interfere with each other."""
        unit, partner, old, new, shift = changes
        swapped = partner != unit
        self.home[unit] = new
        self.home[partner[swapped]] = old[swapped]
        sizing = shift != 0
        base = self.base[unit]
        self.free[(base + new)[sizing]] -= shift[sizing]
        self.free[(base + old)[sizing]] += shift[sizing]
        distance = self.rooms.distance
        nearer = distance[new] - distance[old]
        who = np.concatenate((unit, partner[swapped]))
        step = np.concatenate((nearer, -nearer[swapped]))
        for one, rise in zip(who.tolist(), step, strict=True):
            # Padding repeats the unit itself, with nothing to add.
            beside = self.graph.neighbour[one]
            self.pull[beside] += self.graph.weight[one][:, None] * rise
