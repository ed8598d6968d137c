"""Prices of parts: what it takes to make groups up of parts that fit domains.

All units cost no more together than all domains are worth, at any price for a part of
1, 2 .. pieces (Gilmore and Gomory 1961, cutting stock; Lagrange). A *choice* says which
of several kinds of units are taken together. Prices for which the choices in favour are
too dear come from a linear program that grows by columns: patterns of domains are paths
along their room (Valerio de Carvalho 1999, arc flow). Shapes: K kinds
of domains, S pieces of the largest part, L levels, P places.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.solve.count.columns import ColumnProgram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.solve.bounds.experts.level_boxes import Boxes

# Share of a total that rounding may take away: far more than it does.
ROUNDING = 1e-9
# What a part too many or too few costs in the program, where a choice left out costs 1,
# and the price of a unit that no parts add up to.
MISSING = 100.0
UNKNOWN = 1e9


class Make(NamedTuple):
    """The cheapest way to make up a unit; ``parts`` has how many of 0, 1 .. pieces."""

    price: float
    parts: IntArray


@dataclass(frozen=True, eq=False)
class Packing:
    """Units of equal size, and domains with room for them.

    Attributes
    ----------
    rooms, domains : ndarray, shape (K,)
        Room of each kind of domain, ascending, in pieces, and how many there are.
    size : int
        Pieces of a unit.
    """

    rooms: IntArray
    domains: IntArray
    size: int

    @classmethod
    def of(cls, room: IntArray, size: int) -> Packing | None:
        """Units of so many pieces on such domains, None if none has room."""
        rooms, domains = np.unique(room[room > 0], return_counts=True)
        return cls(rooms, domains, size) if len(rooms) else None

    @property
    def largest(self) -> int:
        """Pieces of the largest part."""
        return min(self.size, int(self.rooms[-1]))

    @property
    def work(self) -> int:
        """Array elements of one evaluation of prices, about."""
        return self.largest * int(self.rooms[-1])

    def worth(self, prices: FloatArray) -> float:
        """Price of the dearest parts that fit all domains.

        Parameters
        ----------
        prices : ndarray, shape (S + 1,)
        """
        best = np.zeros(int(self.rooms[-1]) + 1)
        for room in range(1, len(best)):
            most = min(room, self.largest)
            taken = best[room - most : room][::-1] + prices[1 : most + 1]
            best[room] = max(best[room - 1], taken.max())
        return float(self.domains @ best[self.rooms])

    def cheapest(self, prices: FloatArray, low: int) -> Make | None:
        """A unit in parts of ``low`` pieces or more, two at least; or a whole one.

        None where no parts add up to it.
        """
        parts = np.zeros(self.largest + 1, dtype=np.int64)
        if low == self.size:
            if self.largest < low:
                return None
            parts[low] = 1
            return Make(float(prices[low]), parts)
        high = min(self.largest, self.size - low)
        best = np.full(self.size + 1, np.inf)
        last = np.zeros(self.size + 1, dtype=np.int64)
        best[0] = 0.0
        for pieces in range(low, self.size + 1):
            most = min(high, pieces)
            if most < low:
                continue
            added = (
                best[pieces - most : pieces - low + 1][::-1] + prices[low : most + 1]
            )
            last[pieces] = low + int(added.argmin())
            best[pieces] = added.min()
        if not np.isfinite(best[-1]):
            return None
        left = self.size
        while left:
            parts[last[left]] += 1
            left -= int(last[left])
        return Make(float(best[-1]), parts)

    @cached_property
    def by_volume(self) -> FloatArray:
        """A price for each piece alike, of a unit 1 in all; shape (S + 1,)."""
        return np.asarray(np.arange(self.largest + 1) / self.size)


class PartPrices:
    """Prices of parts, better and better.

    Rows of parts, rooms, levels and choices.

    Parameters
    ----------
    lows : sequence of int
        Pieces of the least part of a unit of each level, at least.
    boxes : Boxes
        Of levels.
    number : float
        Choices that are taken in all.
    """

    def __init__(
        self, packing: Packing, lows: Sequence[int], boxes: Boxes, number: float
    ) -> None:
        self.packing, self.lows, self.boxes = packing, lows, boxes
        self.number, self.sizes = number, packing.largest
        room = int(packing.rooms[-1])
        self.first_level = self.sizes + room
        self.last = self.first_level + len(lows)
        sums = np.zeros(self.last + 1)
        sums[self.sizes + packing.rooms - 1] = packing.domains
        sums[-1] = number
        self.program = ColumnProgram(sums.tolist(), MISSING)
        self.program.add(1.0, {self.last: 1.0})
        for begin in range(room):
            self._add_path(begin, begin + 1, {})
            for part in range(1, min(self.sizes, room - begin) + 1):
                self._add_path(begin, begin + part, {part - 1: 1.0})

    def _add_path(self, begin: int, end: int, part: dict[int, float]) -> None:
        """A domain is filled up to ``begin`` pieces, then up to ``end``."""
        node = self.sizes - 1
        leaves = {node + begin: -1.0} if begin else {}
        self.program.add(0.0, {node + end: 1.0} | leaves | part)

    def climb(self, rounds: int) -> float:
        """The highest bound that is found on the greatest value of all choices.

        Parameters
        ----------
        rounds : int
            Prices that are tried.
        """
        highest, prices = -np.inf, self.packing.by_volume
        for _ in range(rounds):
            makes = [self.packing.cheapest(prices, low) for low in self.lows]
            row = np.array([make.price if make else UNKNOWN for make in makes])
            levels = np.tile(row, (self.boxes.places, 1))
            # One choice costs no more than the mean.
            share = self.packing.worth(prices) / self.number
            share += ROUNDING * (share + float(row.min()))
            highest = max(highest, self.boxes.least(levels, share))
            self._add_makes(makes)
            self._add_choice(levels, highest)
            optimum = self.program.solve()
            if optimum is None or optimum.total <= ROUNDING * self.number:
                break
            found = np.maximum(optimum.prices[: self.sizes], 0.0)
            prices = np.append(0.0, found)
        return highest

    def _add_makes(self, makes: Sequence[Make | None]) -> None:
        """The cheapest way to make up a unit of each level."""
        for place, make in enumerate(makes):
            if make is not None:
                sizes = np.flatnonzero(make.parts)
                used = {int(size) - 1: -float(make.parts[size]) for size in sizes}
                self.program.add(0.0, used | {self.first_level + place: 1.0})

    def _add_choice(self, prices: FloatArray, highest: float) -> None:
        """The cheapest choice among those that are no slower than the bound."""
        taken = self.boxes.cheapest(prices, highest)
        rows, counts = np.unique(self.first_level + taken, return_counts=True)
        used = dict(zip(rows.tolist(), (-counts.astype(float)).tolist(), strict=True))
        self.program.add(0.0, used | {self.last: 1.0})
