"""Order and turn stitched replicas so that their data-parallel rings travel least.

Stage ``s`` of all replicas forms data-parallel rings in replica order. Replica order is
a closed tour whose step from one replica to the next costs the distances between their
leaves, stage by stage; a replica whose pieces are laid out in the opposite order keeps
the price of its joints. The tour is improved by reversals of a stretch (2-opt; Croes
1958, Operations Research 6(6)), by moving single replicas, and by turning replicas
round; then stretches are exchanged at random and the search is repeated, kept when
better (iterated local search with the double bridge; Martin, Otto and Felten 1991,
Complex Systems 5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Above this many replicas the matrix of their distances would not fit in memory.
MOST_REPLICAS = 4096
# Sweeps over all replicas; every sweep but the last has found something better.
MOST_SWEEPS = 60
# Random exchanges: as many as keep the work in proportion to the replicas.
EXCHANGES_TIMES_REPLICAS = 8192
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
        self.apart = np.stack([self._row(r) for r in range(len(leaf))])

    @property
    def length(self) -> float:
        """Distance of the whole tour, all stages together."""
        return float(self.apart[self.tour, np.roll(self.tour, -1)].sum())

    def improve(self, seed: int, over: Callable[[], bool] = lambda: False) -> None:
        """Shorten the tour by local search from several starts near the best.

        ``over`` is asked between sweeps; True ends the search with the best so far.
        """
        self._descend(over)
        size = len(self.tour)
        if size < EXCHANGE_WINDOW:
            return
        rng = np.random.default_rng(seed)
        shortest = self.length
        for _ in range(EXCHANGES_TIMES_REPLICAS // size):
            if over():
                return
            kept = self.tour, self.side.copy(), self.apart.copy()
            start = int(rng.integers(1, size - EXCHANGE_WINDOW + 2))
            window = np.arange(start, start + EXCHANGE_WINDOW - 1)
            first, second, third = np.sort(rng.choice(window, 3, replace=False))
            self.tour = np.concatenate(
                (
                    self.tour[:first],
                    self.tour[second:third],
                    self.tour[first:second],
                    self.tour[third:],
                )
            )
            self._descend(over)
            if self.length < shortest - WORTHWHILE:
                shortest = self.length
            else:
                self.tour, self.side, self.apart = kept

    def _descend(self, over: Callable[[], bool]) -> None:
        """Apply improving moves until none is left or the sweeps are used up."""
        for _ in range(MOST_SWEEPS):
            if over():
                return
            found = self._reverse_stretches()
            found |= self._move_replicas()
            found |= self._turn_replicas()
            if not found:
                return

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

    def _reverse_stretches(self) -> bool:
        """2-opt: reverse the stretch after each place when that shortens the tour."""
        found = False
        size = len(self.tour)
        for i in range(size - 2):
            tour = self.tour
            here, after = tour[i], tour[i + 1]
            ends = tour[i + 2 :]
            beyond = np.append(tour[i + 3 :], tour[0])
            gain = (
                self.apart[here, after]
                + self.apart[ends, beyond]
                - self.apart[here, ends]
                - self.apart[after, beyond]
            )
            best = int(gain.argmax())
            if gain[best] > WORTHWHILE:
                stretch = slice(i + 1, i + 3 + best)
                self.tour[stretch] = self.tour[stretch][::-1].copy()
                found = True
        return found

    def _move_replicas(self) -> bool:
        """Take each replica out and put it back where the tour grows least."""
        found = False
        if len(self.tour) < 3:
            return found
        for replica in range(len(self.tour)):
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
                self.tour = np.insert(rest, best + 1, replica)
                found = True
        return found

    def _turn_replicas(self) -> bool:
        """Turn each replica round when its neighbours are then nearer."""
        found = False
        before, after = np.roll(self.tour, 1), np.roll(self.tour, -1)
        for place, replica in enumerate(self.tour):
            if (self.sides[0, replica] == self.sides[1, replica]).all():
                continue
            beside = [before[place], after[place]]
            old = self.apart[replica, beside].sum()
            self.side[replica] ^= 1
            row = self._row(int(replica))
            if row[beside].sum() < old - WORTHWHILE:
                self.apart[replica], self.apart[:, replica] = row, row
                found = True
            else:
                self.side[replica] ^= 1
        return found


def _turned(leaf: IntArray) -> IntArray:
    """Each replica's pieces in the opposite order along its stages."""
    return leaf[:, ::-1].copy()
