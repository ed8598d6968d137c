"""Number stitched chains as lanes, so that neighbouring lanes lie near each other.

Lanes form a grid (cp x dp, pp x cp, a ring of replicas). Chains that lie near each
other are bundled along the heaviest axis of the grid, bundles of them along the next.
The last axis, when it is a ring, becomes a short tour, whose step from one bundle to
the next costs the distances between their leaves, place by place. The tour is improved
by reversals of a stretch (2-opt; Croes 1958, Operations Research 6(6)), by moving
single bundles, and by turning them round; then stretches are exchanged at random and
the search is repeated, kept when better (iterated local search with the double bridge;
Martin, Otto and Felten 1991, Complex Systems 5). Only bundles whose neighbours have
changed are looked at again (don't look bits; Bentley 1992, ORSA Journal on Computing
4(4)). Grids of up to a few hundred lanes are then improved by exchanging chains and by
turning them round (a closed chain may start anywhere).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from placer.solve.construct.shapes import LaneAxis
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Gains of less are rounding.
WORTHWHILE = 1e-9


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances between leaf domains.

    Attributes
    ----------
    domains : ndarray, shape (levels, leaves)
        Domain of each leaf at every level from the leaves on that costs more to leave
        than the one below.
    steps : ndarray, shape (levels,)
        What leaving a domain of each level adds to the distance.
    """

    domains: IntArray
    steps: FloatArray

    def between(self, first: IntArray, second: IntArray) -> FloatArray:
        """Distance of rows of leaves, summed over the last axis; others broadcast."""
        total = np.zeros(())
        for domain, step in zip(self.domains, self.steps, strict=True):
            total = total + step * (domain[first] != domain[second]).sum(axis=-1)
        return total


@dataclass(frozen=True, eq=False)
class Lanes:
    """The grid of lanes on a machine.

    Attributes
    ----------
    axes : sequence of LaneAxis
        Heaviest first; the first varies fastest.
    starts : int
        Places at which a chain may start: 1 for an open chain.
    distances : Distances
    """

    axes: Sequence[LaneAxis]
    starts: int
    distances: Distances


def arrange(
    rows: IntArray, grid: Lanes, params: Params, seed: int, budget: Budget
) -> IntArray:
    """Rows of leaves in lane order; shape (lanes, places).

    Parameters
    ----------
    rows : ndarray, shape (lanes, places)
        Leaf of each place of each chain, in any order.
    grid : Lanes
    params : Params
    seed : int
    budget : Budget
        Its end ends the search with the best so far.
    """
    size = len(rows)
    if not 1 < size <= params.toured_lanes or budget.is_over():
        return rows
    places = rows.shape[1]
    lanes, distances = grid.axes, grid.distances
    for axis in lanes[:-1]:
        rows = _bundled(rows, axis.size, distances)
    if lanes[-1].closed:
        tour = Tour(rows, distances, params)
        tour.improve(seed, budget)
        rows = tour.rows
    else:
        rows = _bundled(rows, len(rows), distances)
    rows = rows.reshape(size, places)
    if size <= params.exchanged_lanes and (len(lanes) > 1 or not lanes[0].closed):
        exchange = _Exchange(rows, grid, params)
        exchange.improve(seed, budget)
        rows = exchange.rows
    return rows


def _bundled(rows: IntArray, size: int, distances: Distances) -> IntArray:
    """Each row followed by the nearest that are left, ``size`` of them in a bundle."""
    left = np.arange(len(rows))
    order: list[int] = []
    for place in range(len(rows)):
        nearest = 0
        if place % size:
            apart = distances.between(rows[order[-1]], rows[left])
            nearest = int(apart.argmin())
        order.append(int(left[nearest]))
        left = np.delete(left, nearest)
    return rows[order].reshape(len(rows) // size, -1)


def _weights(lanes: Sequence[LaneAxis]) -> FloatArray:
    """Weight of the edge of every two lanes; shape (lanes, lanes)."""
    count = prod(axis.size for axis in lanes)
    weights = np.zeros((count, count))
    stride = 1
    for axis in lanes:
        here = np.arange(count)
        place = here // stride % axis.size
        onward = here[place < axis.size - 1]
        weights[onward, onward + stride] = axis.weight
        if axis.closed:
            last = here[place == axis.size - 1]
            weights[last, last - stride * (axis.size - 1)] = axis.weight
        stride *= axis.size
    return weights + weights.T


class Tour:
    """A closed tour of bundles of lanes under local search.

    Parameters
    ----------
    rows : ndarray, shape (bundles, places)
        Leaf domain of each place, bundles in their first order.
    distances : Distances
    params : Params
    """

    def __init__(self, rows: IntArray, distances: Distances, params: Params) -> None:
        self.sides = np.stack((rows, rows[:, ::-1]))
        self.side = np.zeros(len(rows), dtype=np.int64)
        self.distances, self.params = distances, params
        self.tour = np.arange(len(rows))
        self.look = np.ones(len(rows), dtype=bool)
        self.apart = np.stack([self._row(bundle) for bundle in range(len(rows))])

    @property
    def length(self) -> float:
        """Distance of the whole tour, all places together."""
        return float(self.apart[self.tour, np.roll(self.tour, -1)].sum())

    def improve(self, seed: int, budget: Budget) -> None:
        """Shorten the tour by local search from several starts near the best.

        The end of the budget ends the search with the best so far.
        """
        self._descend(budget)
        size, params = len(self.tour), self.params
        if size < params.tour_window:
            return
        rng = np.random.default_rng(seed)
        shortest = self.length
        for _ in range(min(params.tour_kicks * size, params.all_tour_kicks // size)):
            if budget.is_over():
                return
            tour, side = self.tour, self.side.copy()
            self._exchange(rng)
            self._descend(budget)
            if self.length < shortest - WORTHWHILE:
                shortest = self.length
            else:
                self.tour = tour
                for bundle in np.flatnonzero(side != self.side).tolist():
                    self._turn(bundle)

    def _exchange(self, rng: np.random.Generator) -> None:
        """Exchange two stretches that follow each other."""
        wide = self.params.tour_window
        start = int(rng.integers(1, len(self.tour) - wide + 2))
        window = np.arange(start, start + wide - 1)
        cuts = np.sort(rng.choice(window, 3, replace=False))
        head, first, second, tail = np.split(self.tour, cuts)
        self.tour = np.concatenate((head, second, first, tail))
        self.look[self.tour[cuts - 1]] = self.look[self.tour[cuts]] = True
        seam = len(head) + len(second)
        self.look[self.tour[[seam - 1, seam]]] = True

    def _descend(self, budget: Budget) -> None:
        """Apply improving moves until none is left or the sweeps are used up."""
        for _ in range(self.params.tour_sweeps):
            looked_at = np.flatnonzero(self.look).tolist()
            if not looked_at or budget.is_over():
                break
            self.look[:] = False
            for bundle in looked_at:
                self._reverse_beside(bundle)
                self._move(bundle)
                self._turn_if_nearer(bundle)
        self.look[:] = False

    @property
    def rows(self) -> IntArray:
        """Leaf of each place, bundles in tour order; shape (bundles, places)."""
        return self.sides[self.side[self.tour], self.tour]

    def _row(self, bundle: int) -> FloatArray:
        """Distance from a bundle to all others, all places together."""
        others = self.sides[self.side, np.arange(len(self.side))]
        return self.distances.between(self.sides[self.side[bundle], bundle], others)

    def _reverse_beside(self, bundle: int) -> None:
        """2-opt: reverse the best stretch that begins or ends at a bundle."""
        place = int(np.flatnonzero(self.tour == bundle)[0])
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

    def _move(self, bundle: int) -> None:
        """Take a bundle out and put it back where the tour grows least."""
        if len(self.tour) < 3:
            return
        place = int(np.flatnonzero(self.tour == bundle)[0])
        rest = np.delete(self.tour, place)
        following = np.roll(rest, -1)
        longer = (
            self.apart[rest, bundle]
            + self.apart[bundle, following]
            - self.apart[rest, following]
        )
        best = int(longer.argmin())
        if longer[best] < longer[place - 1] - WORTHWHILE:
            beside = [rest[place - 1], following[place - 1], rest[best]]
            self.look[[bundle, *beside, following[best]]] = True
            self.tour = np.insert(rest, best + 1, bundle)

    def _turn_if_nearer(self, bundle: int) -> None:
        """Turn a bundle round when its neighbours are then nearer."""
        if (self.sides[0, bundle] == self.sides[1, bundle]).all():
            return
        place = int(np.flatnonzero(self.tour == bundle)[0])
        beside = self.tour[[place - 1, (place + 1) % len(self.tour)]]
        before = self.apart[bundle, beside].sum()
        self._turn(bundle)
        if self.apart[bundle, beside].sum() < before - WORTHWHILE:
            self.look[[bundle, *beside]] = True
        else:
            self._turn(bundle)

    def _turn(self, bundle: int) -> None:
        self.side[bundle] ^= 1
        row = self._row(bundle)
        self.apart[bundle], self.apart[:, bundle] = row, row


class _Exchange:
    """Lanes under exchanges and turns.

    Attributes
    ----------
    rows : ndarray, shape (lanes, places)
    """

    def __init__(self, rows: IntArray, grid: Lanes, params: Params) -> None:
        self.rows = rows.copy()
        self.kicks = params.lane_kicks // len(rows)
        self.weights = _weights(grid.axes)
        self.starts, self.distances = grid.starts, grid.distances
        self.apart = self.distances.between(rows[:, None], rows)

    @property
    def cost(self) -> float:
        """Weight x distance over all neighbouring lanes, each pair twice."""
        return float((self.weights * self.apart).sum())

    def improve(self, seed: int, budget: Budget) -> None:
        """Descend, then again from random exchanges near the best."""
        self._descend(budget)
        rng = np.random.default_rng(seed)
        least = self.cost
        for _ in range(self.kicks):
            if budget.is_over() or least <= WORTHWHILE:
                return
            kept = self.rows.copy(), self.apart.copy()
            for _ in range(2):
                self._exchange(*rng.choice(len(self.rows), 2, replace=False))
            self._descend(budget)
            if self.cost < least - WORTHWHILE:
                least = self.cost
            else:
                self.rows, self.apart = kept

    def _descend(self, budget: Budget) -> None:
        """The best exchange again and again, turns when there is none left."""
        while not budget.is_over():
            if not (self._best_exchange() or self._turn_lanes()):
                return

    def _best_exchange(self) -> bool:
        """Exchange the two chains whose exchange gains most.

        ``placed[i, j]`` is what chain j would cost in lane i; the edge between two
        chains that are exchanged keeps its length.
        """
        placed = self.weights @ self.apart
        own = np.diag(placed)
        change = placed + placed.T + 2 * self.weights * self.apart
        change -= own[:, None] + own
        first, second = np.unravel_index(int(change.argmin()), change.shape)
        if change[first, second] >= -WORTHWHILE:
            return False
        self._exchange(int(first), int(second))
        return True

    def _exchange(self, first: int, second: int) -> None:
        order = np.arange(len(self.rows))
        order[[first, second]] = second, first
        self.rows = self.rows[order]
        self.apart = self.apart[np.ix_(order, order)]

    def _turn_lanes(self) -> bool:
        """Turn chains, or start them elsewhere, when neighbours are then nearer."""
        found = False
        for lane, row in enumerate(self.rows):
            beside = np.flatnonzero(self.weights[lane])
            ways = self._ways(row)
            apart = self.distances.between(ways[:, None], self.rows[beside])
            cost = apart @ self.weights[lane, beside]
            best = int(cost.argmin())
            if cost[best] < cost[0] - WORTHWHILE:
                self.rows[lane] = ways[best]
                self.apart[lane] = self.distances.between(ways[best], self.rows)
                self.apart[:, lane] = self.apart[lane]
                found = True
        return found

    def _ways(self, row: IntArray) -> IntArray:
        """The row as it is, and every other way round; shape (ways, places)."""
        step = len(row) // self.starts
        ways = [np.roll(row, step * start) for start in range(self.starts)]
        return np.array([way for one in ways for way in (one, one[::-1])])
