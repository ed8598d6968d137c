"""A linear program that grows by columns, and the prices of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.base.arrays import FloatArray
from placer.base.loading import load

if TYPE_CHECKING:
    from collections.abc import Iterable

GLOP = "ortools.linear_solver.pywraplp"


class Optimum(NamedTuple):
    """The least total of a program, and what one more unit of each row costs."""

    total: float
    prices: FloatArray


class ColumnProgram:
    """Columns from 0 on, rows of given sums, the least total cost.

    Every row can be met at ``missing`` a unit that its columns lack or have too many.

    Parameters
    ----------
    sums : iterable of float
        What each row must sum to.
    missing : float
        More than any column is worth.
    """

    def __init__(self, sums: Iterable[float], missing: float) -> None:
        engine = load(GLOP)
        self._solver = engine.Solver.CreateSolver("GLOP")
        self._optimal = engine.Solver.OPTIMAL
        self._rows = [self._solver.Constraint(total, total) for total in sums]
        self._known: set[tuple[float, frozenset[tuple[int, float]]]] = set()
        for row in range(len(self._rows)):
            self.add(missing, {row: 1.0})
            self.add(missing, {row: -1.0})

    def add(self, cost: float, entries: Mapping[int, float], most: float = inf) -> bool:
        """Whether the program gets this column; it may have it already."""
        key = cost, frozenset(entries.items())
        if most == inf and key in self._known:
            return False
        self._known.add(key)
        column = self._solver.NumVar(0.0, most, "")
        self._solver.Objective().SetCoefficient(column, cost)
        for row, entry in entries.items():
            self._rows[row].SetCoefficient(column, entry)
        return True

    @property
    def columns(self) -> int:
        """How many there are."""
        return len(self._known)

    def solve(self) -> Optimum | None:
        """The optimum over the columns so far; None where rounding leaves it open."""
        if self._solver.Solve() != self._optimal:
            return None
        prices = [row.dual_value() for row in self._rows]
        return Optimum(self._solver.Objective().Value(), np.array(prices))


def entries_of(column: npt.NDArray[Any]) -> dict[int, float]:
    """Entries that are not 0, by row."""
    return {row: float(column[row]) for row in np.flatnonzero(column).tolist()}
