"""What groups cost at prices of parts: the program on contents, relaxed.

All groups cost no more together than all domains are worth, at any price for a part of
1, 2 .. members (Gilmore and Gomory 1961, cutting stock; Lagrange). A *choice* takes one
group for each of several *places*, each of a *level*: the higher, the larger its least
part. Choices cost no more than a share of the worth in the mean, so one costs no more,
and the least value of such a choice is a bound. Prices for which those of less value
are too dear come from a linear program that grows by columns. Shapes: P places, L
levels, S members of the largest part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.base.loading import load
from placer.solve.count import Program, Term
from placer.solve.programs.contents import Costs, fillings

GLOP = "ortools.linear_solver.pywraplp"
# Share of a total that rounding may take away: far more than it does.
ROUNDING = 1e-9
UNKNOWN = 1e9  # price of a group that no parts add up to
BATCH = 256  # boxes that are halved at once

# Least values of choices between a lowest and a highest one, (C, P) each to (C,).
Values = Callable[[IntArray, IntArray], FloatArray]


class Priced(NamedTuple):
    """A bound, and the prices of parts of 0, 1 .. members that prove it."""

    value: float
    prices: FloatArray


class Way(NamedTuple):
    """A way to make up a group: its price and how many parts of 0, 1 .. members."""

    price: float
    parts: IntArray


@dataclass(frozen=True, eq=False)
class Packing:
    """Groups of equal size, and domains with room for their parts."""

    size: int  # members of a group
    rooms: Mapping[int, int]  # how many domains there are of each room, in members

    @property
    def largest(self) -> int:
        """Members of the largest part."""
        return min(self.size, max(self.rooms))

    @property
    def work(self) -> int:
        """Array elements of one evaluation of prices, about."""
        return self.largest * max(self.rooms)

    def worth(self, prices: FloatArray) -> float:
        """Price of the dearest parts that fit all domains.

        ``prices``: shape (S + 1,).
        """
        best = np.zeros(max(self.rooms) + 1)
        for room in range(1, len(best)):
            most = min(room, self.largest)
            taken = best[room - most : room][::-1] + prices[1 : most + 1]
            best[room] = max(best[room - 1], taken.max())
        return sum(count * float(best[room]) for room, count in self.rooms.items())

    def cheapest(self, prices: FloatArray, low: int) -> Way:
        """A group in parts of ``low`` members or more."""
        best = np.full(self.size + 1, UNKNOWN)
        last = np.zeros(self.size + 1, dtype=np.int64)
        best[0] = 0.0
        for members in range(low, self.size + 1):
            most = min(self.largest, members)
            added = best[members - most : members - low + 1][::-1]
            added = added + prices[low : most + 1]
            if len(added) and added.min() < UNKNOWN:
                best[members], last[members] = added.min(), low + added.argmin()
        parts = np.zeros(self.largest + 1, dtype=np.int64)
        left = self.size if best[-1] < UNKNOWN else 0
        while left:
            parts[last[left]] += 1
            left -= int(last[left])
        return Way(float(best[-1]), parts)


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
            self._halve(several[:BATCH])

    def cheapest(self, prices: FloatArray, value: float) -> IntArray:
        """Levels of the cheapest choices of no higher value, as far as is known."""
        low = self._low[self._least <= value]
        levels: IntArray = low[prices[low].sum(axis=1).argmin()]
        return levels

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
    packing: Packing, lows: Sequence[int], choices: Choices, number: float, rounds: int
) -> Priced:
    """The highest bound that is found on the greatest value of all choices.

    ``lows``: members of the least part of a group of each level, at least. ``number``:
    choices that are taken in all. ``rounds``: prices that are tried.
    """
    program = _Growing(packing, len(lows), number)
    prices = np.arange(packing.largest + 1) / packing.size
    highest, best = -np.inf, prices
    for _ in range(rounds):
        ways = [packing.cheapest(prices, low) for low in lows]
        levels = np.array([way.price for way in ways])
        share = packing.worth(prices) / number
        share += ROUNDING * (share + float(levels.min()))
        value = choices.least(levels, share)
        if value > highest:
            highest, best = value, prices
        program.add(ways, choices.cheapest(levels, highest))
        optimum = program.solve()
        if optimum is None or optimum[0] <= ROUNDING * number:
            break
        prices = optimum[1]
    return Priced(highest, best)


class _Growing:
    """The least number of choices left out, which grows by ways and choices.

    Rows of parts that are placed and used, of groups of each level, and of choices.
    """

    def __init__(self, packing: Packing, levels: int, number: float) -> None:
        sizes, last = packing.largest, max(packing.rooms)
        program, free = Program(), [0.0] * (max(sizes, last) + 1)
        placed = fillings(program, packing.rooms, Costs(free[: sizes + 1], free, free))
        self._first, self._levels = len(program.rows) - 1, levels
        for size in range(1, sizes + 1):
            program.row(placed[size], least=0)
        for _ in range(levels):
            program.row((), least=0)
        program.row([Term(program.column(price=1))], number, number)
        self._solver = load(GLOP).Solver.CreateSolver("GLOP")
        self._known: set[tuple[tuple[int, float], ...]] = set()
        columns = [self._solver.NumVar(0.0, most, "") for most in program.most]
        self._rows = []
        for times, least, most in program.rows:
            self._rows.append(self._solver.Constraint(least, most))
            for column, entry in times.items():
                self._rows[-1].SetCoefficient(columns[column], entry)
        self._solver.Objective().SetCoefficient(columns[-1], 1)

    def add(self, ways: Sequence[Way], levels: IntArray) -> None:
        """Columns of the cheapest way of each level, and of a choice."""
        level = self._first + len(ways[0].parts)
        for place, way in enumerate(ways):
            if way.price < UNKNOWN:
                sizes = np.flatnonzero(way.parts).tolist()
                used = {self._first + size: -int(way.parts[size]) for size in sizes}
                self._column({**used, level + place: 1})
        taken, counts = np.unique(level + levels, return_counts=True)
        used = dict(zip(taken.tolist(), (-counts).tolist(), strict=True))
        self._column({**used, level + self._levels: 1})

    def _column(self, entries: Mapping[int, float]) -> None:
        key = tuple(entries.items())
        if key not in self._known:
            self._known.add(key)
            column = self._solver.NumVar(0.0, self._solver.infinity(), "")
            for row, entry in entries.items():
                self._rows[row].SetCoefficient(column, entry)

    def solve(self) -> tuple[float, FloatArray] | None:
        """Choices left out and prices of parts; None where rounding leaves it open."""
        if self._solver.Solve() != self._solver.OPTIMAL:
            return None
        found = [row.dual_value() for row in self._rows]
        parts = found[self._first + 1 : -self._levels - 1]
        return self._solver.Objective().Value(), np.maximum([0.0, *parts], 0.0)
