"""Local search on weighted flows: copies of placements, several temperatures.

Every cycle anneals all copies: units by themselves first, then with what the heaviest
axes tie together inside a domain, axis by axis, so whole segments of rings and
pipelines move. The better half goes on, twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.solve.improve.hop_state import (
    HopState,
    Placed,
    Rooms,
    UnitGraph,
    setup_work,
)
from placer.solve.problem.colocation import join
from placer.solve.run.solution import EXACT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from placer.solve.improve.region import MoveRegion
    from placer.solve.problem.compiled import Problem


class HopSearch:
    """Copies of placements in one move region.

    Parameters
    ----------
    links : Links
        Between its units.
    elite : sequence of ndarray, each shape (R,)
        Good placements, the best first; one of them can be had in the region.

    Attributes
    ----------
    best : ndarray, shape (U,), or None
        Domain of each unit in the best placement that beats the first of the elite.
    """

    def __init__(
        self,
        problem: Problem,
        region: MoveRegion,
        links: Links,
        elite: Sequence[IntArray],
    ) -> None:
        starts = region.homes(elite)
        if len(np.unique(region.enclosure)) == 1:
            starts += region.along_the_tree()
        self.best: IntArray | None = None
        self.params, self.region = problem.params, region
        self.rng = np.random.default_rng(problem.seed)
        self.links = links
        self.rooms = Rooms(region.capacity, region.distance, region.enclosure)
        params, units, pairs = problem.params, region.units, self._pairs
        fewest, most = params.anneal_copies
        copies = min(most, max(fewest, params.anneal_units // units))
        copies = min(copies, params.anneal_table // pairs)
        homes = np.array(starts)
        costs = self._costs(homes)
        by_cost = np.argsort(costs, kind="stable")
        worst = params.anneal_worst_start * costs.min()
        worth = by_cost[costs[by_cost] <= worst]
        chosen = worth[np.arange(copies) % len(worth)]
        self.home, self.cost = homes[chosen], costs[chosen]
        self._best, self._best_cost = homes[0], float(costs[0])
        self.work = min(params.anneal_work, params.anneal_work_of_pair * pairs)
        # Copies that start cold stay near their placement, hot ones go far.
        self.heat = np.geomspace(*params.anneal_start_heat, max(copies, 1))
        if copies:
            self._note_best()

    def walks(self) -> Iterator[HopState]:
        """The copies, level after level of what is tied, in every cycle."""
        # Where nobody outside a unit is sent to, all places are alike.
        if not len(self.home) or not len(self.links.edges):
            return
        cycles = self._cycles()
        shares = self.params.anneal_levels
        for _ in range(cycles):
            for level, threshold in enumerate(self._thresholds()):
                share = shares[min(level, len(shares) - 1)]
                state = self._state(threshold, share * self.work / cycles)
                if state is not None:
                    yield state
            self._select()

    def take(self, state: HopState) -> None:
        """Take over the copies that are no worse, or all where no units were tied."""
        before, old = self.home, self.cost
        self.home = state.home[self._label].reshape(before.shape)
        self.cost = self._costs(self.home)
        if self._tied:
            worse = self.cost > old
            self.home[worse], self.cost[worse] = before[worse], old[worse]
        self._note_best()

    @property
    def _pairs(self) -> int:
        """Units times domains."""
        return self.region.units * len(self.region.capacity)

    def _cycles(self) -> int:
        """Fewer cycles where setting up takes long."""
        neighbours = 2 * len(self.links.edges) * len(self.home)
        setup = setup_work(neighbours, len(self.rooms.capacity))
        most, setups = self.params.anneal_cycles
        return int(np.clip(self.work / (setups * setup), 1, most))

    def _thresholds(self) -> list[float]:
        """Weights from which on an axis is tied: none, the heaviest, the next, ..."""
        weights = np.unique(self.links.of_axis)[::-1]
        return [np.inf, *weights[:-1].tolist()]

    def _state(self, threshold: float, work: float) -> HopState | None:
        """All copies, with the heavier axes tied where they share a domain.

        None where setting up would take all of the work.
        """
        copies, units = self.home.shape
        home = self.home.ravel()
        offset = np.arange(copies)[:, None, None] * units
        edges = (self.links.edges + offset).reshape(-1, 2)
        heavy = np.tile(self.links.of_axis >= threshold, copies)
        inside = heavy & (home[edges[:, 0]] == home[edges[:, 1]])
        label = np.arange(len(home))
        if inside.any():
            label = np.unique(join(label, edges[inside]), return_inverse=True)[1]
        weight = np.tile(self.links.weight, copies)
        size = np.full(len(home), self.region.size)
        graph = unit_graph(edges, weight, label, size)
        if setup_work(graph.weight.size, len(self.rooms.capacity)) >= work:
            return None
        copy, common = np.empty((2, len(graph.size)), dtype=np.int64)
        copy[label], common[label] = np.repeat(np.arange(copies), units), home
        self._label, self._tied = label, threshold < np.inf
        placed = Placed(copy, common)
        state = HopState(graph, placed, self.rooms, self.rng, self.params)
        distance = self.rooms.distance
        # What the heaviest edges of a unit cost at the greatest distance.
        scale = float(np.median(graph.weight.max(axis=1)) * np.ptp(distance))
        if scale <= 0:
            return None
        end = np.full(copies, self.params.anneal_end_heat * scale)
        return state.cool(self.heat * scale, end, work)

    def _note_best(self) -> None:
        first = int(self.cost.argmin())
        if self.cost[first] < self._best_cost * (1 - EXACT):
            self._best_cost = float(self.cost[first])
            self.best = self._best = self.home[first].copy()

    def _select(self) -> None:
        """Keep the better half of the copies twice, the best of all first."""
        by_cost = np.argsort(self.cost, kind="stable")
        half = max(1, len(by_cost) // 2)
        chosen = by_cost[np.arange(len(by_cost)) % half]
        self.home, self.cost = self.home[chosen], self.cost[chosen]
        self.home[0], self.cost[0] = self._best, self._best_cost

    def _costs(self, homes: IntArray) -> FloatArray:
        """Cost of the edges between units in each placement; shape (placements,)."""
        first, second = self.links.edges.T
        return np.array(
            [
                self.links.weight @ self.rooms.distance[home[first], home[second]]
                for home in homes
            ]
        )


class Links(NamedTuple):
    """Edges between units, those of one axis between the same two as one.

    Attributes
    ----------
    edges : ndarray, shape (E, 2), unit
    weight : ndarray, shape (E,)
    of_axis : ndarray, shape (E,)
        Weight of a single edge of the axis.
    """

    edges: IntArray
    weight: FloatArray
    of_axis: FloatArray


def unit_graph(
    edges: IntArray, weight: FloatArray, label: IntArray, size: IntArray
) -> UnitGraph:
    """The graph between the units that ``label`` puts together.

    Parameters
    ----------
    edges : ndarray, shape (E, 2), smaller unit
    weight : ndarray, shape (E,)
    label : ndarray, shape (smaller units,)
        Unit of each, from 0 up.
    size : ndarray, shape (smaller units,), ranks
    """
    units = int(label.max()) + 1
    ends = np.sort(label[edges], axis=1)
    apart = ends[:, 0] != ends[:, 1]
    keys, which = np.unique(
        ends[apart, 0] * units + ends[apart, 1], return_inverse=True
    )
    source = np.concatenate((keys // units, keys % units))
    target = np.concatenate((keys % units, keys // units))
    bundled = np.tile(np.bincount(which, weight[apart], len(keys)), 2)
    by_source = np.argsort(source, kind="stable")
    source, target, bundled = source[by_source], target[by_source], bundled[by_source]
    degree = np.bincount(source, minlength=units)
    place = np.arange(len(source)) - (np.cumsum(degree) - degree)[source]
    width = max(1, int(degree.max()))
    neighbour = np.repeat(np.arange(units)[:, None], width, axis=1)
    weights = np.zeros((units, width))
    neighbour[source, place], weights[source, place] = target, bundled
    ranks = np.bincount(label, size).astype(np.int64)
    return UnitGraph(ranks, neighbour, weights, degree)
