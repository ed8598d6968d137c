"""What groups cost at prices of parts: the program on contents, relaxed.

A *pattern* is the parts that a domain holds, a *way* those that a group is made up of,
a *choice* one group for each of several *places*, each of a *level*: the higher, the
faster. All that a domain sends shares its uplink, so a pattern serves groups up to some
level, and a part has a price for each. Of groups of level 0 nothing is known. The bound
on parts of expert groups asks: a place is a stage, a level a time that it keeps to.

All groups cost no more together than all domains are worth, at any prices (Gilmore and
Gomory 1961, cutting stock; Lagrange). Choices cost no more than a share of the worth in
the mean, so one costs no more, and the least value of such a choice is a bound. Prices
for which those of less value are too dear come from a linear program that grows by
choices. Shapes: P places, L levels but for 0, S members of the largest part, Q sums.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import inf
from typing import Any, NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.base.loading import load
from placer.base.rounding import EXACT

GLOP = "ortools.linear_solver.pywraplp"
TAKEN = 32  # boxes that are halved, and choices that a program grows by, at once

# Least values of choices between a lowest and a highest one, (C, P) each to (C,).
Values = Callable[[IntArray, IntArray], FloatArray]
Kind = tuple[int, float]  # room of a domain, in members, and rate of its uplink


class Level(NamedTuple):
    """Groups that are no slower than so much."""

    least: int  # members of their smallest part
    load: float  # what uplinks of their domains carry at the most, of a rate of 1


@dataclass(frozen=True, eq=False)
class Packing:
    """Groups of equal size, and domains with room for their parts."""

    size: int  # members of a group
    domains: Mapping[Kind, int]  # how many there are
    levels: Sequence[Level]  # but for level 0, the slowest first
    most: int  # rows of `sums`

    @cached_property
    def sums(self) -> IntArray:
        """Numbers of parts of 0, 1 .. members that may lie together; shape (Q, S + 1).

        No row where there are more than ``most``.
        """
        room, least = max(self.domains)[0], self.levels[0].least
        sizes = np.arange(min(self.size, room) + 1)
        found = np.zeros((1, len(sizes)), dtype=np.int64)
        for size in sizes[least:].tolist():
            # What a part leaves of its group is no smaller than the least.
            is_part = size <= self.size - least or size == self.size
            more = found if is_part else found[:0]
            while len(more):
                more = more[more @ sizes + size <= max(room, self.size)]
                more = more + (sizes == size)
                found = np.concatenate((found, more))
            if len(found) > self.most:
                return found[:0]
        return found

    @cached_property
    def ways(self) -> list[IntArray]:
        """Sums that make up a group of each level."""
        ways = self.sums[self.sums @ np.arange(self.sums.shape[1]) == self.size]
        smallest = (ways > 0).argmax(axis=1)
        return [ways[smallest >= level.least] for level in self.levels]

    @cached_property
    def patterns(self) -> dict[Kind, tuple[IntArray, IntArray]]:
        """Sums that fit domains of each kind, and the highest level that each serves.

        A part of ``m`` members sends to all others of its group: ``m (size - m)``.
        """
        sizes, found = np.arange(self.sums.shape[1]), {}
        taken, sent = self.sums @ sizes, self.sums @ (sizes * (self.size - sizes))
        loads = np.array([one.load for one in self.levels])
        for room, rate in self.domains:
            level = (sent[:, None] <= loads * rate * (1 + EXACT)).sum(axis=1) - 1
            fits = (taken <= room) & (level >= 0)
            found[room, rate] = self.sums[fits], level[fits]
        return found

    def worth(self, prices: FloatArray) -> float:
        """Price of the dearest parts that fit all domains."""
        return sum(
            self.domains[kind] * float((sums * prices[level]).sum(axis=1).max())
            for kind, (sums, level) in self.patterns.items()
        )

    def cheapest(self, prices: FloatArray) -> FloatArray:
        """Price of a group of each level, 0 first, or of a higher one; (L + 1,)."""
        both = zip(self.ways, prices, strict=True)
        paid = [float((ways @ of_level).min(initial=inf)) for ways, of_level in both]
        least = np.minimum.accumulate(paid[::-1])[::-1]
        return np.array([0.0, *least])


class Choices:
    """All ways to choose a level for each place, in boxes that are halved as needed.

    A box has a lowest and a highest level for each place. No choice in it costs less
    than the lowest ones.

    ``most``: boxes at most.
    """

    def __init__(self, places: int, levels: int, values: Values, most: int) -> None:
        self._values, self._most, self.places = values, most, places
        self._low = np.zeros((1, places), dtype=np.int64)
        self._high = np.full((1, places), levels - 1)
        self._least = values(self._low, self._high)

    def least(self, prices: FloatArray, share: float) -> float:
        """The least value of a choice that costs no more than a share of the worth.

        Where all cost more, there are no such groups and any value will do.

        ``prices`` ((L,)): of each level, none less than that of a lower one.
        """
        while True:
            affordable = np.flatnonzero(prices[self._low].sum(axis=1) <= share)
            if not len(affordable):
                return float(self._least.max())
            order = affordable[np.argsort(self._least[affordable], kind="stable")]
            several = order[(self._low[order] < self._high[order]).any(axis=1)]
            is_exact = not len(several) or several[0] != order[0]
            if is_exact or len(self._least) >= self._most:
                return float(self._least[order[0]])
            self._halve(several[:TAKEN])

    def cheapest(self, prices: FloatArray, value: float) -> IntArray:
        """Levels of the cheapest choices of no higher value, as far as is known.

        Of those with as many groups of each level one; shape (C, P).
        """
        while True:
            boxes = np.flatnonzero(self._least <= value)
            paid = prices[self._low[boxes]].sum(axis=1)
            boxes = boxes[np.argsort(paid, kind="stable")[:TAKEN]]
            several = boxes[(self._low[boxes] < self._high[boxes]).any(axis=1)]
            if not len(several) or len(self._least) >= self._most:
                levels: IntArray = np.unique(np.sort(self._low[boxes]), axis=0)
                return levels
            self._halve(several)

    def _halve(self, boxes: IntArray) -> None:
        """Halve boxes at the place with the most levels."""
        low, high, rows = self._low[boxes], self._high[boxes], np.arange(len(boxes))
        place = (high - low).argmax(axis=1)
        middle = (low[rows, place] + high[rows, place]) // 2
        above, below = low.copy(), high.copy()
        above[rows, place], below[rows, place] = middle + 1, middle
        kept = np.ones(len(self._least), dtype=bool)
        kept[boxes] = False
        low, high = np.concatenate((low, above)), np.concatenate((below, high))
        self._low = np.concatenate((self._low[kept], low))
        self._high = np.concatenate((self._high[kept], high))
        self._least = np.concatenate((self._least[kept], self._values(low, high)))


def dearest(
    packing: Packing, choices: Choices, number: float, rounds: int
) -> tuple[float, FloatArray]:
    """The highest bound that is found on the greatest value of all choices.

    With it come the prices that prove it; shape (L, S + 1).

    ``number``: choices that are taken in all. ``rounds``: prices that are tried.
    """
    program = _Growing(packing, number)
    prices = np.arange(packing.sums.shape[1]) / packing.size
    prices = np.tile(prices, (len(packing.levels), 1))
    highest, proved = -inf, prices
    for _ in range(rounds):
        levels = packing.cheapest(prices)
        share = packing.worth(prices) / number
        share += EXACT * (share + float(levels.min()))
        value = choices.least(levels, share)
        if value > highest:
            highest, proved = value, prices
        program.add(choices.cheapest(levels, highest))
        optimum = program.solve()
        if optimum is None or optimum[0] <= EXACT * number:
            break
        prices = optimum[1]
    return highest, proved


class _Growing:
    """The least number of choices left out, which grows by choices.

    Rows of parts that are placed and used by groups of each level, of groups of each
    level, of domains of each kind, and of choices. What serves a level serves the one
    before.
    """

    def __init__(self, packing: Packing, number: float) -> None:
        self._solver = load(GLOP).Solver.CreateSolver("GLOP")
        self._rows = defaultdict[Any, Any](lambda: self._solver.Constraint(0.0, inf))
        self._rows["choices"] = self._solver.Constraint(number, number)
        left_out = self._column({"choices": 1})
        self._solver.Objective().SetCoefficient(left_out, 1)
        self._shape = len(packing.levels), packing.sums.shape[1]
        self._whole, self._known = packing.size, set[tuple[int, ...]]()
        self._sizes = np.flatnonzero(packing.sums.any(axis=0)).tolist()
        for level, size in product(range(len(packing.levels) - 1), self._sizes):
            self._column({(level, size): 1, (level + 1, size): -1})
        for level in range(1, len(packing.levels)):
            self._column({level: 1, level + 1: -1})
        for kind, (sums, levels) in packing.patterns.items():
            row = "domains", kind
            self._rows[row] = self._solver.Constraint(0.0, packing.domains[kind])
            for parts, level in zip(sums, levels.tolist(), strict=True):
                self._column({row: 1, **self._parts(parts, level)})
        for level, ways in enumerate(packing.ways):
            for parts in ways:
                self._column({level + 1: 1, **self._parts(-parts, level)})

    def _parts(self, parts: IntArray, level: int) -> dict[tuple[int, int], int]:
        """Parts by row; whole groups are fast wherever they lie."""
        rows = {size: (level, size) for size in np.flatnonzero(parts).tolist()}
        if self._whole in rows:
            rows[self._whole] = self._shape[0] - 1, self._whole
        return {row: int(parts[size]) for size, row in rows.items()}

    def add(self, levels: IntArray) -> None:
        """A column of each choice; shape (C, P)."""
        for choice in levels.tolist():
            if tuple(choice) not in self._known:
                self._known.add(tuple(choice))
                used = Counter(level for level in choice if level)
                self._column({"choices": 1, **{level: -used[level] for level in used}})

    def _column(self, entries: Mapping[Any, int]) -> Any:
        column = self._solver.NumVar(0.0, inf, "")
        for row, times in entries.items():
            self._rows[row].SetCoefficient(column, times)
        return column

    def solve(self) -> tuple[float, FloatArray] | None:
        """Choices left out and prices of parts; None where rounding leaves it open."""
        if self._solver.Solve() != self._solver.OPTIMAL:
            return None
        prices = np.zeros(self._shape)
        for at in product(range(len(prices)), self._sizes):
            prices[at] = self._rows[at].dual_value()
        # Rounding may leave a part of a higher level cheaper.
        prices = np.maximum.accumulate(np.maximum(prices, 0.0), axis=0)
        prices[:, self._whole :] = prices[-1, self._whole :]
        return self._solver.Objective().Value(), prices
