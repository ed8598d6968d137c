"""A program on counts as plain data: columns to be counted, rows that bound their sums.

A column says how often something is done or how many there are of it. A row bounds a
sum of terms. Whoever needs a program states its columns and rows and nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

# The column of a constant term: it counts one.
ONE = -1
# The block of columns that belong to none.
COMMON = -1


class Term(NamedTuple):
    """A column and how often it enters a sum."""

    column: int
    times: float = 1


class Row(NamedTuple):
    """A sum and what it must lie between.

    Attributes
    ----------
    times : dict of int to float
        By column.
    """

    times: dict[int, float]
    least: float
    most: float


@dataclass(eq=False)
class Program:
    """Whole numbers from 0 on, of the least total price.

    Attributes
    ----------
    most : list of float
        Of each column.
    price : list of float
        Of one count of each column.
    block : list of int
        Columns of one block meet others in few rows; `COMMON` those of none.
    """

    most: list[float] = field(default_factory=list)
    price: list[float] = field(default_factory=list)
    block: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def column(
        self, most: float = inf, price: float = 0, *, block: int = COMMON
    ) -> int:
        """A new column."""
        self.most.append(most)
        self.price.append(price)
        self.block.append(block)
        return len(self.most) - 1

    def row(
        self, terms: Iterable[Term], least: float = -inf, most: float = inf
    ) -> None:
        """The sum of the terms lies between ``least`` and ``most``."""
        times: defaultdict[int, float] = defaultdict(float)
        for column, number in terms:
            times[column] += number
        constant = times.pop(ONE, 0)
        self.rows.append(Row(dict(times), least - constant, most - constant))
