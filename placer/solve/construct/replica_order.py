"""Order and turn stitched replicas so that their data-parallel rings travel least.

Stage ``s`` of all replicas forms data-parallel rings in replica order. Replica order is
a closed tour whose step from one replica to the next costs the distances between their
leaves, stage by stage; a replica whose pieces are laid out in the opposite order keeps
the price of its joints. The tour is improved by reversals of a stretch (2-opt; Croes
1958, Operations Research 6(6)), by moving single replicas, and by turning replicas
round; then stretches are exchanged at random and the search is repeated, kept when
better (iterated local search with the double bridge; Martin, Otto and Felten 1991,
Complex Systems 5). Only replicas whose neighbours have changed are looked at again
(don't look bits; Bentley 1992, ORSA Journal on Computing 4(4)).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from placer.solve.run.budget import Budget

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Above this many replicas the matrix of their distances would not fit in memory.
MOST_REPLICAS = 4096
# Sweeps over the replicas to look at; every sweep but the last finds a shorter tour.
MOST_SWEEPS = 60
# Random exchanges: so many a replica, but no more than keep the work bounded, since one
# takes time in proportion to the replicas.
EXCHANGES_PER_REPLICA = 8
EXCHANGES_TIMES_REPLICAS = 131_072
# An exchange moves stretches that lie near each other, which is more often of use.
EXCHANGE_WINDOW = 30
WORTHWHILE = 1e-9


class ReplicaTour:
    """A tour of replicas under local search.

    Parameters
    ----------
    leaf : ndarray, shape (replicas, stages)
        Leaf domain of each stage, replicas in their first order.
    domains : ndarray, shape (levels, leaves)
        Domain of each leaf at every level above it that costs more than the one below.
    steps : ndarray, shape (levels,)
        What leaving a domain of each level adds to the distance.
    """

    def __init__(self, leaf: IntArray, domains: IntArray, steps: FloatArray) -> None:
        self.sides = np.stack((leaf, _turned(leaf)))
        self.side = np.zeros(len(leaf), dtype=np.int64)
        self.domains, self.steps = domains, steps
        self.tour = np.arange(len(leaf))
        self.look = np.ones(len(leaf), dtype=bool)
        self.apart = np.stack([self._row(r) for r in range(len(leaf))])

    @property
    def length(self) -> float:
        """Distance of the whole tour, all stages together."""
        return float(self.apart[self.tour, np.roll(self.tour, -1)].sum())

    def improve(self, seed: int, budget: Budget) -> None:
        """Shorten the tour by local search from several starts near the best.

        The end of the budget ends the search with the best so far.
        """
        self._descend(budget)
        size = len(self.tour)
        if size < EXCHANGE_WINDOW:
            return
        rng = np.random.default_rng(seed)
        shortest = self.length
        for _ in range(
            min(EXCHANGES_PER_REPLICA * size, EXCHANGES_TIMES_REPLICAS // size)
        ):
            if budget.is_over():
                return
            tour, side = self.tour, self.side.copy()
            self._exchange(rng)
            self._descend(budget)
            if self.length < shortest - WORTHWHILE:
                shortest = self.length
            else:
                self.tour = tour
                for replica in np.flatnonzero(side != self.side).tolist():
                    self._turn(replica)

    def _exchange(self, rng: np.random.Generator) -> None:
        """Exchange two stretches that follow each other."""
        start = int(rng.integers(1, len(self.tour) - EXCHANGE_WINDOW + 2))
        window = np.arange(start, start + EXCHANGE_WINDOW - 1)
        cuts = np.sort(rng.choice(window, 3, replace=False))
        head, first, second, tail = np.split(self.tour, cuts)
        self.tour = np.concatenate((head, second, first, tail))
        self.look[self.tour[cuts - 1]] = self.look[self.tour[cuts]] = True
        seam = len(head) + len(second)
        self.look[self.tour[[seam - 1, seam]]] = True

    def _descend(self, budget: Budget) -> None:
        """Apply improving moves until none is left or the sweeps are used up."""
        for _ in range(MOST_SWEEPS):
            looked_at = np.flatnonzero(self.look).tolist()
            if not looked_at or budget.is_over():
                break
            self.look[:] = False
            for replica in looked_at:
                self._reverse_beside(replica)
                self._move(replica)
                self._turn_if_nearer(replica)
        self.look[:] = False

    @property
    def leaf(self) -> IntArray:
        """Leaf of each stage, replicas in tour order; shape (replicas, stages)."""
        return self.sides[self.side[self.tour], self.tour]

    def _leaves(self) -> IntArray:
        return self.sides[self.side, np.arange(len(self.side))]

    def _row(self, replica: int) -> FloatArray:
        """Distance from a replica to all others, all stages together."""
        mine = self.sides[self.side[replica], replica]
        others = self._leaves()
        row = np.zeros(len(others))
        for domain, step in zip(self.domains, self.steps, strict=True):
            row += step * (domain[others] != domain[mine]).sum(axis=1)
        return row

    def _reverse_beside(self, replica: int) -> None:
        """2-opt: reverse the best stretch that begins or ends at a replica."""
        place = int(np.flatnonzero(self.tour == replica)[0])
        for here in (place, place - 1):
            tour, onward = self.tour, np.roll(self.tour, -1)
            gain = (
                self.apart[tour[here], onward[here]]
                + self.apart[tour, onward]
                - self.apart[tour[here], tour]
                - self.apart[onward[here], onward]
            )
            gain[here] = 0.0
            there = int(gain.argmax())
            if gain[there] > WORTHWHILE:
                first, last = sorted((here % len(tour), there))
                stretch = slice(first + 1, last + 1)
                self.look[tour[[here, there]]] = self.look[onward[[here, there]]] = True
                self.tour = tour.copy()
                self.tour[stretch] = tour[stretch][::-1]
                return

    def _move(self, replica: int) -> None:
        """Take a replica out and put it back where the tour grows least."""
        if len(self.tour) < 3:
            return
        place = int(np.flatnonzero(self.tour == replica)[0])
        rest = np.delete(self.tour, place)
        following = np.roll(rest, -1)
        longer = (
            self.apart[rest, replica]
            + self.apart[replica, following]
            - self.apart[rest, following]
        )
        best = int(longer.argmin())
        if longer[best] < longer[place - 1] - WORTHWHILE:
            beside = [rest[place - 1], following[place - 1], rest[best]]
            self.look[[replica, *beside, following[best]]] = True
            self.tour = np.insert(rest, best + 1, replica)

    def _turn_if_nearer(self, replica: int) -> None:
        """Turn a replica round when its neighbours are then nearer."""
        if (self.sides[0, replica] == self.sides[1, replica]).all():
            return
        place = int(np.flatnonzero(self.tour == replica)[0])
        beside = self.tour[[place - 1, (place + 1) % len(self.tour)]]
        before = self.apart[replica, beside].sum()
        self._turn(replica)
        if self.apart[replica, beside].sum() < before - WORTHWHILE:
            self.look[[replica, *beside]] = True
        else:
            self._turn(replica)

    def _turn(self, replica: int) -> None:
        self.side[replica] ^= 1
        row = self._row(replica)
        self.apart[replica], self.apart[:, replica] = row, row


def _turned(leaf: IntArray) -> IntArray:
    """Each replica's pieces in the opposite order along its stages."""
    return leaf[:, ::-1].copy()
