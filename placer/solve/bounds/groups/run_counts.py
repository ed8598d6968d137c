"""How many groups all replicas together have cut where every node holds one run.

A replica that takes ``T`` or less has a *pattern* that does: for each stage the least
part of its groups (`run_patterns.py`). At a price ``y`` for every stage and level, and
for runs longer than ``t``, of which there are no more than nodes with more GPUs
(`priced_runs.py`), no placement takes ``T`` where

    least over runs of  nodes used + y * stages below levels
        >  nodes there are + dp * most over patterns of  y * stages below levels

A linear program over the runs and patterns met so far finds the prices. Runs are priced
by matrices, so the work depends on stages and the longest run, not on the ranks. See
docs/method.md, "Which stages are slow, and in how many replicas".

Shapes: K patterns, P stages, V levels, L ranks of the longest run, C what is counted.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import reduce

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.solve.bounds.groups.run_patterns import (
    Runs,
    cheaper,
    repeated,
    through,
)
from placer.solve.count.columns import ColumnProgram, entries_of

ROUNDS = 40  # prices that are tried
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class RunCounts:
    """Groups of consecutive ranks in the slots, the stages of all replicas.

    Attributes
    ----------
    gpus : ndarray, shape (N,)
        Of each node.
    size, groups : int
        Ranks of a group, and groups of a slot, which follow each other.
    slots, periods : int
        Of a stage that follow each other, and how often all stages do.
    levels : tuple of int
        Least parts, the smallest first; the last is a whole group.
    patterns : ndarray, shape (K, P)
        Of replicas, by level.
    seconds : ndarray, shape (K,), s
        Pipeline time of each.
    """

    gpus: IntArray
    size: int
    groups: int
    slots: int
    periods: int
    levels: tuple[int, ...]
    patterns: IntArray
    seconds: FloatArray

    def least_s(self, floor: float = 0.0) -> float:
        """Least time of the slowest pipeline, or ``floor`` if no more is known, s."""
        known = np.unique(self.seconds[self.seconds > floor])
        values: list[float] = [floor, *known.tolist()]
        # The last one is that of runs cut anywhere.
        return values[bisect_left(values[:-1], True, key=self.may_take)]

    def may_take(self, seconds: float) -> bool:
        """Whether no pipeline may take longer; False is certain.

        Parameters
        ----------
        seconds : float, s
        """
        ways = self.patterns[self.seconds <= seconds]
        if not len(ways):
            return False
        replicas = self.slots * self.periods
        below = (ways[:, :, None] < self._above).reshape(len(ways), -1)
        longer = np.union1d(0, np.unique(self.gpus)[:-1])
        nodes = (self.gpus > longer[:, None]).sum(axis=1)
        sums = np.concatenate((nodes, np.zeros(below.shape[1])))
        # Scaled so that all that may be missing is less than a choice.
        world = self.size * self.groups * replicas * ways.shape[1]
        scale = np.where(np.arange(len(sums)) < len(nodes), world, replicas) * float(
            len(sums)
        )
        program = ColumnProgram([*(sums / scale), 1.0, 1.0], 1.0)
        for row in range(len(sums)):
            program.add(0.0, {row: 1.0})
        price = np.full(len(sums), 1.0 / len(self.levels))
        price[: len(nodes)] = 1.0
        for _ in range(ROUNDS):
            cost, used = self._cheapest(price, longer, ways.min(axis=0))
            paid = below @ price[len(nodes) :]
            dearest = below[paid.argmax()]
            worth = price[: len(nodes)] @ nodes + replicas * paid.max()
            if cost > worth + ROUNDING * max(1.0, worth):
                return False
            program.add(0.0, {len(sums): 1.0} | entries_of(used / scale))
            taken = np.concatenate((np.zeros(len(nodes)), -replicas * dearest))
            program.add(0.0, {len(sums) + 1: 1.0} | entries_of(taken / scale))
            optimum = program.solve()
            if optimum is None or optimum.total <= ROUNDING / len(sums):
                return True
            price = np.maximum(-optimum.prices[: len(sums)], 0.0) / scale
            price /= price.max()
        return True

    @property
    def _above(self) -> IntArray:
        """Levels that a stage may stay below."""
        return np.arange(1, len(self.levels))

    def _cheapest(
        self, price: FloatArray, longer: IntArray, lowest: IntArray
    ) -> tuple[float, FloatArray]:
        """Cost of the cheapest runs, and what they use of each row; inf for none."""
        stages, levels = self.patterns.shape[1], len(self.levels)
        of_length = np.arange(1, int(self.gpus.max()) + 1)[:, None] > longer
        rows = np.zeros((len(of_length), len(price)))
        rows[:, : len(longer)] = of_length
        one = [
            repeated(through(self.size, least, rows @ price, rows), self.groups, _then)
            for least in self.levels
        ]
        of_stage = []
        for stage in range(stages):
            first = len(longer) + stage * (levels - 1)
            ways = []
            for level in range(int(lowest[stage]), levels):
                more = np.zeros(len(price))
                more[first + level : first + levels - 1] = 1.0
                way = one[level]
                ways.append(Runs(way.price + more @ price, way.counts + more))
            of_stage.append(repeated(reduce(cheaper, ways), self.slots, _then))
        found = repeated(reduce(_then, of_stage), self.periods, _then)
        return float(found.price[0, 0]), found.counts[0, 0]


def _then(left: Runs, right: Runs) -> Runs:
    """Runs one after the other: sums for products, minima for sums."""
    total = left.price[:, :, None] + right.price
    middle = total.argmin(axis=1)
    at = np.arange(len(total))
    return Runs(
        total.min(axis=1),
        left.counts[at[:, None], middle] + right.counts[middle, at],
    )
