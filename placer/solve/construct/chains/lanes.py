"""Number stitched chains as lanes, so that neighbouring lanes lie near each other.

Lanes form a grid (cp x dp, pp x cp, a ring of replicas). Chains that lie near each
other are bundled along the heaviest axis of the grid, bundles of them along the next.
The last axis, when it is a ring, becomes a short closed tour (`tour`). Grids of up to a
few hundred lanes are then improved by exchanging chains and by turning them round (a
closed chain may start anywhere).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.solve.construct.chains.tour import WORTHWHILE, Tour

if TYPE_CHECKING:
    from placer.solve.construct.chains.distances import Distances
    from placer.solve.construct.chains.shapes import LaneAxis
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget


@dataclass(frozen=True, eq=False)
class Lanes:
    """The grid of lanes on a machine.

    Attributes
    ----------
    axes : sequence of LaneAxis
        Heaviest first; the first varies fastest.
    starts : int
        Places at which a chain may start: 1 for an open chain.
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
        self.least = float(self.weights.sum()) * self._nearest()
        # Places of a chain as it is, and every other way round; shape (ways, places).
        size = rows.shape[1]
        shift = size // self.starts * np.arange(self.starts)
        turned = (np.arange(size) - shift[:, None]) % size
        ways = np.stack([turned, turned[:, ::-1]], axis=1)
        self.ways = ways.reshape(-1, size)

    def _nearest(self) -> float:
        """How near two chains are at the least, wherever they are put.

        Where chains have domains of their own, all their places are in different ones.
        """
        found = 0.0
        for domain, step in zip(
            self.distances.domains, self.distances.steps, strict=True
        ):
            own = domain[self.rows]
            if len(np.unique(own)) == sum(len(np.unique(row)) for row in own):
                found += float(step) * own.shape[1]
        return found

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
            if budget.is_over() or least <= self.least + WORTHWHILE:
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
            ways = row[self.ways]
            apart = self.distances.between(ways[:, None], self.rows[beside])
            cost = apart @ self.weights[lane, beside]
            best = int(cost.argmin())
            if cost[best] < cost[0] - WORTHWHILE:
                self.rows[lane] = ways[best]
                self.apart[lane] = self.distances.between(ways[best], self.rows)
                self.apart[:, lane] = self.apart[lane]
                found = True
        return found
