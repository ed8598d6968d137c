"""A bound on the cut of a tier: parts of lines must add up to whole lines.

A *line* is a ring or clique of one axis, one for each vertex *across* lines. A domain
holds a *part* of some lines; the sizes of its parts are its *pattern*.

* A line of ``n`` members pays for its parts alone: a ring the weight of an edge for
  every part, nothing if it stays whole; a clique ``w/2 (n^2 - sum k^2)`` for parts of
  ``k`` members.
* Across lines a domain has a boundary of ``sum over x of floor(m_x)`` or more, ``m_x``
  being the number of its parts with ``x`` members or more, and half of it counts.
* Each line's parts add up to ``n``, and as many parts of each size are needed as the
  patterns of all domains have.

The least of this, patterns and partitions as often as one likes, bounds the cut
(Gilmore and Gomory 1961, cutting stock), and so does any price for a part of each size
(Lagrange). Prices come from a linear program that grows by columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.solve.bounds.hops.isoperimetric import shift_rows
from placer.solve.count.columns import ColumnProgram, entries_of

if TYPE_CHECKING:
    from placer.solve.bounds.hops.lagrange import SizeClass
    from placer.solve.problem.axes import Axis

# Prices are looked for between the best so far and those of the program.
STEP = 0.5
CLOSE = 1e-7
# Share of all that is added up that rounding may take away: far more than it does.
ROUNDING = 1e-12


class _Column(NamedTuple):
    """A pattern or a partition.

    Attributes
    ----------
    parts : ndarray, shape (K,)
        How many have 1, 2 .. K members.
    """

    cost: float
    parts: IntArray


@dataclass(frozen=True, eq=False)
class Parts:
    """Lines to be cut into parts, and domains to be filled with them.

    Attributes
    ----------
    lines : int
        How many there are.
    across : ndarray, shape (M + 1,)
        Least cost of a set across lines, by its size.
    besides : ndarray, shape (S + 1,)
        What a domain costs besides, by its ranks.
    classes : list of SizeClass
        Domains, the largest last.
    """

    line: Axis
    lines: int
    across: FloatArray
    besides: FloatArray
    classes: list[SizeClass]

    def work(self, unit: int) -> int:
        """Array elements that pricing patterns in such units touches, about."""
        sets, sizes = len(self.across) // unit + 1, len(self.besides) // unit + 1
        return self.largest * (sets * sizes + self.line.size)

    def least(self, unit: int, most_work: int, known: float) -> float:
        """The bound, with prices that are found with so much work.

        Parameters
        ----------
        unit : int
            Vertices across lines that are best kept together. Prices are first looked
            for as if they were, which takes less work.
        most_work : int
            Array elements.
        known : float
            A bound that is known. The search ends where it cannot be surpassed.
        """
        search = _Search(self, known)
        if unit > 1:
            search.climb(unit, most_work // 2)
        return search.climb(1, most_work // 2)

    @property
    def largest(self) -> int:
        """Members of the largest part that fits a domain."""
        return min(self.line.size, self.classes[-1].high)

    @cached_property
    def part_costs(self) -> FloatArray:
        """What a part of 0, 1 .. members costs its line."""
        return part_costs(self.line, self.largest)

    def bound(
        self, prices: FloatArray, unit: int
    ) -> tuple[float, list[_Column], list[_Column]]:
        """The bound at such prices of parts; best patterns by class, partitions.

        Parameters
        ----------
        prices : ndarray, shape (K + 1,)
            What a domain pays for a part of 0, 1 .. members, and a line gets for it.
        unit : int
            Patterns consist of whole units across lines: 1 for a valid bound.
        """
        patterns = self._patterns(prices, unit)
        of_line, partitions = self._partitions(prices)
        total = self.lines * of_line
        for domains, pattern in zip(self.classes, patterns, strict=True):
            paid = pattern.cost + float(prices[1:] @ pattern.parts)
            total += domains.count * paid
        largest = max(
            np.abs(row).max() for row in (prices, self.part_costs, self.across)
        )
        total -= ROUNDING * float(largest) * self.lines * self.line.size
        return total, patterns, partitions

    def _patterns(self, prices: FloatArray, unit: int) -> list[_Column]:
        """The cheapest pattern of each class of domains.

        One number of parts after the other, from those of the most members on: it
        rises, each adds its set across lines and the rise of the price.
        """
        across = self.across[::unit]
        sets = unit * np.arange(len(across))
        besides = self.besides[::unit]
        best = np.full((len(across), len(besides)), np.inf)
        best[0, 0] = 0.0
        before = []
        for rise in np.diff(prices)[::-1]:
            before.append(best)
            reach = np.minimum.accumulate(best, axis=0)
            best = shift_rows(reach[None])[0] + (across + rise * sets)[:, None]
        total = best.min(axis=0) + besides
        found = []
        for domains in self.classes:
            low = domains.low // unit
            ranks = low + int(total[low : domains.high // unit + 1].argmin())
            counts = [int(best[:, ranks].argmin())]
            left = ranks
            for table in before[:0:-1]:
                left -= counts[-1]
                counts.append(int(table[: counts[-1] + 1, left].argmin()))
            parts = unit * -np.diff(counts, append=0)
            cost = float(across[counts].sum() + besides[ranks])
            found.append(_Column(cost, parts))
        return found

    def _partitions(self, prices: FloatArray) -> tuple[float, list[_Column]]:
        """The cheapest partition of a line, and that with a part of each size."""
        size, costs = self.line.size, self.part_costs - prices
        best = np.zeros(size + 1)
        first = np.zeros(size + 1, dtype=np.int64)
        for members in range(1, size + 1):
            most = min(members, self.largest)
            rest = best[members - most : members][::-1] + costs[1 : most + 1]
            first[members] = 1 + int(rest.argmin())
            best[members] = rest.min()
        found = []
        for given in range(self.largest + 1):
            parts = np.zeros(self.largest + 1, dtype=np.int64)
            parts[given] = 1
            left = size - given
            while left:
                parts[first[left]] += 1
                left -= int(first[left])
            found.append(_Column(float(self.part_costs @ parts), parts[1:]))
        return float(best[size]), found


def part_costs(line: Axis, largest: int) -> FloatArray:
    """What a part of 0, 1 .. members costs its line; shape (largest + 1,)."""
    members = np.arange(largest + 1)
    if line.is_clique:
        return np.asarray(line.weight / 2 * members * (line.size - members))
    # Each part of a ring ends in two cut edges, shared with others; two are one.
    edge = line.weight / (2 if line.size == 2 else 1)
    return np.where((members > 0) & (members < line.size), edge, 0.0)


class _Search:
    """Prices of parts, better and better.

    Parameters
    ----------
    known : float
        A bound that is known.
    """

    def __init__(self, parts: Parts, known: float) -> None:
        self.parts, self.known = parts, known
        self.best = np.zeros(parts.largest + 1)
        sums = [0.0] * parts.largest
        sums += [float(domains.count) for domains in parts.classes]
        # Costs near 1 keep the program within what rounding allows.
        self.scale = float(parts.part_costs.max())
        dearest = max(1.0, float(parts.across.max()) / self.scale)
        self.program = ColumnProgram([*sums, float(parts.lines)], 100 * dearest)

    def climb(self, unit: int, most_work: int) -> float:
        """The highest bound that is found with patterns of such units."""
        highest, prices = -np.inf, self.best
        for _ in range(max(1, most_work // self.parts.work(unit))):
            value, patterns, partitions = self.parts.bound(prices, unit)
            if value > highest:
                highest, self.best = value, prices
            self._add(patterns, partitions)
            optimum = self.program.solve()
            if optimum is None:
                break
            # No prices reach more than the program over the columns so far.
            total = optimum.total * self.scale
            # What costs nothing is 0 but for rounding, of which no share is close.
            near = CLOSE * total + ROUNDING * self.scale * self.parts.lines
            if total - max(highest, self.known) <= near:
                break
            found = np.append(0.0, -optimum.prices[: self.parts.largest]) * self.scale
            prices = STEP * self.best + (1 - STEP) * found
        return highest

    def _add(self, patterns: list[_Column], partitions: list[_Column]) -> None:
        sizes = self.parts.largest
        last = sizes + len(patterns)
        for row, column in enumerate(patterns, start=sizes):
            cost = column.cost / self.scale
            self.program.add(cost, entries_of(column.parts) | {row: 1.0})
        for column in partitions:
            cost = column.cost / self.scale
            self.program.add(cost, entries_of(-column.parts) | {last: 1.0})
