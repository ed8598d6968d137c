"""All ways to choose a level for each of several places, in boxes.

A box holds many ways at once. It is halved only where it is not known whether all of
its ways count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.solve.count.model import Term

if TYPE_CHECKING:
    from placer.solve.count.model import Program

ROUNDING = 1e-9
BATCH = 256  # boxes that are split at once

# Values of boxes by their lowest and highest levels.
BoxValues = Callable[[IntArray, IntArray], FloatArray]


class Boxes:
    """All ways to choose a level for each place, in boxes that are split as needed.

    A box has a lowest and a highest level for each place. Its price is that of the
    lowest, and no choice in it costs or has less than its price or value.

    Parameters
    ----------
    value : function
        Values of boxes by their lowest and highest levels, either (C, places), no more
        than that of any choice; of a single choice where both are the same.
    most : int
        Boxes at most.
    """

    def __init__(self, places: int, levels: int, value: BoxValues, most: int) -> None:
        self.value, self.most = value, most
        self.low = np.zeros((1, places), dtype=np.int64)
        self.high = np.full((1, places), levels - 1)
        self.values = value(self.low, self.high)

    def least(self, prices: FloatArray, share: float) -> float:
        """The least value of a choice that costs no more than a share of the worth.

        Where all cost more, there are no such units and any value will do.

        Parameters
        ----------
        prices : ndarray, shape (P, L)
            Of each level of each place.
        """
        prices = np.minimum.accumulate(prices[:, ::-1], axis=1)[:, ::-1]
        places = np.arange(len(prices))
        while True:
            paid = prices[places, self.low].sum(axis=1)
            affordable = np.flatnonzero(paid <= share)
            if not len(affordable):
                return float(self.values.max())
            order = affordable[np.argsort(self.values[affordable], kind="stable")]
            several = order[(self.low[order] < self.high[order]).any(axis=1)]
            is_exact = not len(several) or several[0] != order[0]
            if is_exact or len(self.values) >= self.most:
                return float(self.values[order[0]])
            self._split(several[:BATCH])

    def below(self, value: float) -> IntArray:
        """Lowest levels of all boxes that have a choice below a value; (C, places).

        Boxes of which only a part is below are halved, as long as there are few enough.
        """
        low, high = self.low[:1], self.high[:1]
        whole: list[IntArray] = []
        while True:
            is_some = self.value(low, high) < value
            low, high = low[is_some], high[is_some]
            is_part = self.value(high, low) >= value
            whole.append(low[~is_part])
            low, high = low[is_part], high[is_part]
            if not len(low) or sum(map(len, whole)) + 2 * len(low) > self.most:
                return np.concatenate((*whole, low))
            low, high = _halves(low, high)

    def _split(self, chosen: IntArray) -> None:
        """Halve boxes."""
        low, high = _halves(self.low[chosen], self.high[chosen])
        kept = np.ones(len(self.values), dtype=bool)
        kept[chosen] = False
        self.low = np.concatenate((self.low[kept], low))
        self.high = np.concatenate((self.high[kept], high))
        self.values = np.concatenate((self.values[kept], self.value(low, high)))

    def cheapest(self, prices: FloatArray, value: float) -> IntArray:
        """Levels of the cheapest box whose value is no higher; shape (places,)."""
        found = np.flatnonzero(self.values <= value)
        paid = prices[np.arange(len(prices)), self.low[found]].sum(axis=1)
        low: IntArray = self.low[found[paid.argmin()]]
        return low


def _halves(low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
    """Boxes halved at the place with the most levels, the highest level first."""
    rows = np.arange(len(low))
    place = (high - low).argmax(axis=1)
    middle = (low[rows, place] + high[rows, place]) // 2
    above, below = low.copy(), high.copy()
    above[rows, place], below[rows, place] = middle + 1, middle
    return np.concatenate((low, above)), np.concatenate((below, high))


def slower_times(times: FloatArray) -> FloatArray:
    """What all units of each level take less than, s; shape (L,).

    A unit is of the slowest level that it takes no less than.
    """
    return np.append(np.inf, times[:-1] * (1 - ROUNDING))


def least_asked(levels: IntArray, count: int) -> tuple[list[int], IntArray]:
    """Replicas that ask for no more than others, and what they ask for.

    That is units of each of so many levels, or of faster ones; shape (C, L).
    """
    # Stages that change their levels ask for the same, so each set of levels is told
    # once; a sort by columns takes a quarter of the time of one by rows.
    ascending = np.sort(levels, axis=1)
    order = np.lexsort(ascending.T[::-1])
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (np.diff(ascending[order], axis=0) != 0).any(axis=1)
    number = order[is_new]
    rows = (levels[number, :, None] >= np.arange(count)).sum(axis=1)
    kept: list[int] = []
    left = np.argsort(rows.sum(axis=1), kind="stable")
    while len(left):
        kept.append(int(left[0]))
        left = left[(rows[left] < rows[left[0]]).any(axis=1)]
    return number[kept].tolist(), rows[kept]


def replicas_taken(
    program: Program, replicas: int, asked: IntArray, held: Sequence[Sequence[Term]]
) -> list[int]:
    """Columns of so many replicas of some choices, for which there are units enough.

    Parameters
    ----------
    asked : ndarray, shape (C, L)
        Units of each level, or of faster ones, that each choice asks for.
    held : sequence of sequence of Term
        Those that there are, by level.
    """
    taken = [program.column(replicas) for _ in asked]
    program.row([Term(c) for c in taken], replicas, replicas)
    for needed, terms in zip(asked.T.tolist(), held, strict=True):
        used = [Term(c, -n) for c, n in zip(taken, needed, strict=True) if n]
        program.row([*terms, *used], 0)
    return taken
