"""Placements improved together: annealed at several temperatures, the best kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.improve.annealer import Annealer, Placed, Rooms, setup_work
from placer.solve.improve.graph import links_between, unit_graph
from placer.solve.problem.colocation import join
from placer.solve.run.solution import EXACT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from placer.job.edges import AxisEdges
    from placer.solve.improve.layout import Layout
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.move_counts import MoveCounts

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Units of all copies together, copies, and entries of the table of pulls.
UNITS_AT_ONCE = 4096
MOST_COPIES, FEWEST_COPIES = 64, 4
MOST_PULLS = 25_000_000
# Cycles at most, and how often the set-up must be worth its work in each.
MOST_CYCLES = 5
SETUPS_A_CYCLE = 8
# Starts that cost more than this, relative to the best, are left out.
WORST_START = 1.03
# Start temperatures of the copies and the end, relative to what the heaviest edges of
# a unit cost at the greatest distance.
COLDEST_START, HOTTEST_START = 0.03, 0.5
END = 0.02
# Shares of the work on units by themselves, and tied along one axis, two, ...
LEVEL_SHARES = (0.6, 0.3, 0.1)


class Population:
    """Copies of placements of one layout.

    Parameters
    ----------
    layout : Layout
    axes : sequence of AxisEdges
    starts : ndarray, shape (starts, U)
        Domain of each unit in the placements to begin with, the best known first.
    problem : Problem
    counts : MoveCounts
        Told of every move.
    """

    def __init__(
        self,
        layout: Layout,
        axes: Sequence[AxisEdges],
        starts: IntArray,
        problem: Problem,
        counts: MoveCounts,
    ) -> None:
        self.layout, self.counts = layout, counts
        self.rng = np.random.default_rng(problem.seed)
        self.links = links_between(axes, layout.label)
        self.rooms = Rooms(layout.room, layout.distance, layout.fence)
        pairs = layout.units * len(layout.room)
        copies = min(MOST_COPIES, max(FEWEST_COPIES, UNITS_AT_ONCE // layout.units))
        copies = min(copies, MOST_PULLS // pairs)
        costs = self._costs(starts)
        by_cost = np.argsort(costs, kind="stable")
        worth = by_cost[costs[by_cost] <= WORST_START * costs.min()]
        chosen = worth[np.arange(copies) % len(worth)]
        self.home, self.cost = starts[chosen], costs[chosen]
        self.best, self.best_cost = starts[0], float(costs[0])
        params = problem.params
        self.work = min(params.anneal_work, params.anneal_work_of_pair * pairs)
        # Copies that start cold stay near their placement, hot ones go far.
        self.start = np.geomspace(COLDEST_START, HOTTEST_START, max(copies, 1))

    def improve(self, budget: Budget) -> Iterator[IntArray]:
        """Domain of each unit, for every placement better than those before."""
        if not len(self.home) or budget.is_over():
            return
        thresholds = self._thresholds()
        if self._note_best():
            yield self.best
        cycles = self._cycles()
        for _ in range(cycles):
            for level, threshold in enumerate(thresholds):
                share = LEVEL_SHARES[min(level, len(LEVEL_SHARES) - 1)]
                self._anneal(threshold, share * self.work / cycles, budget)
                if self._note_best():
                    yield self.best
                if budget.is_over():
                    return
            self._select()

    def _cycles(self) -> int:
        """Fewer cycles where setting up takes long."""
        neighbours = 2 * len(self.links.edges) * len(self.home)
        setup = setup_work(neighbours, len(self.rooms.capacity))
        return int(np.clip(self.work / (SETUPS_A_CYCLE * setup), 1, MOST_CYCLES))

    def _thresholds(self) -> list[float]:
        """Weights from which on an axis is tied: none, the heaviest, the next, ..."""
        weights = np.unique(self.links.of_axis)[::-1]
        return [np.inf, *weights[:-1].tolist()]

    def _anneal(self, threshold: float, work: float, budget: Budget) -> None:
        """Anneal all copies with the heavier axes tied where they share a domain."""
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
        size = np.full(len(home), self.layout.size)
        graph = unit_graph(edges, weight, label, size)
        if setup_work(graph.weight.size, len(self.rooms.capacity)) >= work:
            return
        copy, common = np.empty((2, len(graph.size)), dtype=np.int64)
        copy[label], common[label] = np.repeat(np.arange(copies), units), home
        annealer = Annealer(
            graph, Placed(copy, common), self.rooms, self.rng, self.counts
        )
        distance = self.rooms.distance
        scale = float(np.median(graph.weight.max(axis=1)) * np.ptp(distance))
        if scale > 0:
            end = np.full(copies, END * scale)
            annealer.run(self.start * scale, end, work, budget)
        self._accept(annealer.home[label].reshape(copies, units), threshold == np.inf)

    def _accept(self, home: IntArray, even_worse: bool) -> None:
        """Take over the copies that are no worse, or all."""
        before, old = self.home, self.cost
        self.home = home
        self.cost = self._costs(home)
        if not even_worse:
            worse = self.cost > old
            self.home[worse], self.cost[worse] = before[worse], old[worse]

    def _note_best(self) -> bool:
        first = int(self.cost.argmin())
        if self.cost[first] >= self.best_cost * (1 - EXACT):
            return False
        self.best = self.home[first].copy()
        self.best_cost = float(self.cost[first])
        return True

    def _select(self) -> None:
        """Keep the better half of the copies twice, the best of all first."""
        by_cost = np.argsort(self.cost, kind="stable")
        half = max(1, len(by_cost) // 2)
        chosen = by_cost[np.arange(len(by_cost)) % half]
        self.home, self.cost = self.home[chosen], self.cost[chosen]
        self.home[0], self.cost[0] = self.best, self.best_cost

    def _costs(self, homes: IntArray) -> FloatArray:
        """Cost of the edges between units in each placement; shape (placements,)."""
        first, second = self.links.edges.T
        return np.array(
            [
                self.links.weight @ self.rooms.distance[home[first], home[second]]
                for home in homes
            ]
        )
