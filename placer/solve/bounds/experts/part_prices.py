"""Prices of parts: what it takes to make groups up of parts that fit domains.

All units cost no more together than all domains are worth, at any price for a part of
1, 2 .. pieces (Gilmore and Gomory 1961, cutting stock; Lagrange). A *choice* says which
of several kinds of units are taken together. Prices for which the choices in favour are
too dear come from a linear program that grows by columns: patterns of domains are paths
along their room (Valerio de Carvalho 1999, arc flow).

Units may be of several *sorts*. Parts of the first fill domains as they like. Those of
others need company (`part_company`), so domains are also filled with *shares* of ``T``
pieces, made up of parts that are small enough. See docs/method.md, "When expert groups
leave their scale-up domains". Shapes: K kinds of domains, S pieces of the largest part,
N sorts, L levels, P places.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import FloatArray, IntArray
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
    limits : tuple of ndarray, each shape (max room + 1,)
        Of each sort but the first, the largest part in a share of so many pieces.
    """

    rooms: IntArray
    domains: IntArray
    size: int
    limits: tuple[IntArray, ...] = ()

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
        prices : ndarray, shape (N, S + 1), or (S + 1,) for the first sort alone
        """
        best = np.zeros(int(self.rooms[-1]) + 1)
        dearest = np.full(len(best), -np.inf)
        rows = np.atleast_2d(prices)
        dearest[: self.largest + 1] = rows[0]
        for row, limit in zip(rows[1:], self.limits, strict=True):
            dearest = np.maximum(dearest, Shares(row, limit).prices)
        for room in range(1, len(best)):
            taken = best[:room][::-1] + dearest[1 : room + 1]
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
        """A price for each piece alike, of a unit 1 in all; shape (N, S + 1)."""
        prices = np.arange(self.largest + 1) / self.size
        return np.tile(prices, (1 + len(self.limits), 1))


class Shares:
    """The dearest parts that make up a share of a domain, for each size of it.

    Parameters
    ----------
    prices : ndarray, shape (S + 1,)
        Of parts.
    limit : ndarray, shape (R + 1,)
        The largest part of a share of so many pieces, never falling.

    Attributes
    ----------
    prices : ndarray, shape (R + 1,)
        Of shares; minus infinity where no parts make one up.
    """

    def __init__(self, prices: FloatArray, limit: IntArray) -> None:
        self.limit = np.minimum(limit, len(prices) - 1)
        best = np.full(len(limit), -np.inf)
        best[0] = 0.0
        self.prices = best.copy()
        # Whether the dearest parts of so many pieces at most have one as large.
        self.takes = np.zeros((len(prices), len(limit)), dtype=bool)
        for part in range(1, int(self.limit[-1]) + 1):
            for size in range(part, len(limit)):
                if best[size - part] + prices[part] > best[size]:
                    best[size] = best[size - part] + prices[part]
                    self.takes[part, size] = True
            here = self.limit == part
            self.prices[here] = best[here]

    def parts(self, share: int) -> dict[int, int]:
        """How many parts of each size the dearest share of so many pieces has."""
        found: dict[int, int] = {}
        part, left = int(self.limit[share]), share
        while left:
            while not self.takes[part, left]:
                part -= 1
            found[part] = found.get(part, 0) + 1
            left -= part
        return found


class PartPrices:
    """Prices of parts, better and better.

    Rows of parts and of shares of each sort, rooms, levels of each sort and choices.

    Parameters
    ----------
    lows : sequence of int
        Pieces of the least part of a unit of each level, at least.
    boxes : Boxes
        Of levels.
    number : float
        Choices that are taken in all.
    sort : ndarray, shape (P,)
        Of the unit of each place.
    """

    def __init__(
        self,
        packing: Packing,
        lows: Sequence[int],
        boxes: Boxes,
        number: float,
        sort: IntArray,
    ) -> None:
        self.packing, self.lows, self.boxes = packing, lows, boxes
        self.number, self.sort = number, sort
        self.sizes, room = packing.largest, int(packing.rooms[-1])
        sorts = 1 + len(packing.limits)
        self.first_share = sorts * self.sizes
        self.first_room = self.first_share + len(packing.limits) * room
        self.first_level = self.first_room + room
        self.last = self.first_level + sorts * len(lows)
        sums = np.zeros(self.last + 1)
        sums[self.first_room + packing.rooms - 1] = packing.domains
        sums[-1] = number
        self.program = ColumnProgram(sums.tolist(), MISSING)
        self.program.add(1.0, {self.last: 1.0})
        for begin in range(room):
            self._add_path(begin, begin + 1, {})
            for part in range(1, min(self.sizes, room - begin) + 1):
                self._add_path(begin, begin + part, {part - 1: 1.0})
            for share in range(1, room - begin + 1):
                for first in range(self.first_share, self.first_room, room):
                    self._add_path(begin, begin + share, {first + share - 1: 1.0})

    def _add_path(self, begin: int, end: int, part: dict[int, float]) -> None:
        """A domain is filled up to ``begin`` pieces, then up to ``end``."""
        node = self.first_room - 1
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
            makes = [
                [self.packing.cheapest(row, low) for low in self.lows] for row in prices
            ]
            levels = np.array(
                [[one.price if one else UNKNOWN for one in row] for row in makes]
            )[self.sort]
            # One choice costs no more than the mean.
            share = self.packing.worth(prices) / self.number
            share += ROUNDING * (share + float(levels.min()))
            highest = max(highest, self.boxes.least(levels, share))
            self._add_makes(makes)
            self._add_shares(prices)
            self._add_choice(levels, highest)
            optimum = self.program.solve()
            if optimum is None or optimum.total <= ROUNDING * self.number:
                break
            found = np.maximum(optimum.prices[: self.first_share], 0.0)
            prices = np.pad(found.reshape(-1, self.sizes), ((0, 0), (1, 0)))
        return highest

    def _add_makes(self, makes: Sequence[Sequence[Make | None]]) -> None:
        """The cheapest way to make up a unit of each level."""
        for sort, row in enumerate(makes):
            first, level = sort * self.sizes, self.first_level + sort * len(self.lows)
            for place, make in enumerate(row):
                if make is not None:
                    sizes = np.flatnonzero(make.parts)
                    used = {
                        first + int(size) - 1: -float(make.parts[size])
                        for size in sizes
                    }
                    self.program.add(0.0, used | {level + place: 1.0})

    def _add_shares(self, prices: FloatArray) -> None:
        """The dearest parts of shares of each size."""
        room = int(self.packing.rooms[-1])
        for sort, limit in enumerate(self.packing.limits, start=1):
            shares = Shares(prices[sort], limit)
            first = sort * self.sizes
            row = self.first_share + (sort - 1) * room
            for share in np.flatnonzero(np.isfinite(shares.prices))[1:].tolist():
                parts = shares.parts(share)
                made = {first + size - 1: float(n) for size, n in parts.items()}
                self.program.add(0.0, made | {row + share - 1: -1.0})

    def _add_choice(self, prices: FloatArray, highest: float) -> None:
        """The cheapest choice among those that are no slower than the bound."""
        taken = self.boxes.cheapest(prices, highest)
        rows = self.first_level + self.sort * len(self.lows) + taken
        rows, counts = np.unique(rows, return_counts=True)
        used = dict(zip(rows.tolist(), (-counts.astype(float)).tolist(), strict=True))
        self.program.add(0.0, used | {self.last: 1.0})
