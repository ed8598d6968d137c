"""All ways to choose a level for each of several places, in boxes.

A box holds many ways at once. It is halved only where it is not known whether all of
its ways count.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placer.base.arrays import FloatArray, IntArray

ROUNDING = 1e-9
BATCH = 256  # boxes that are split at once

# Least values of boxes by their highest levels.
BoxValues = Callable[[IntArray], FloatArray]


class Boxes:
    """All ways to choose a level for each place, in boxes that are split as needed.

    A box has a lowest and a highest level for each place. Its price is that of the
    lowest, and no choice in it costs or has less than its price or value.

    Parameters
    ----------
    value : function
        Values of choices, (C, places) to (C,), none less at a higher level.
    most : int
        Boxes at most.
    """

    def __init__(self, places: int, levels: int, value: BoxValues, most: int) -> None:
        self.value, self.most, self.places = value, most, places
        self.low = np.zeros((1, places), dtype=np.int64)
        self.high = np.full((1, places), levels - 1)
        self.values = value(self.high)

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

    def _split(self, chosen: IntArray) -> None:
        """Halve boxes."""
        low, high = _halves(self.low[chosen], self.high[chosen])
        kept = np.ones(len(self.values), dtype=bool)
        kept[chosen] = False
        self.low = np.concatenate((self.low[kept], low))
        self.high = np.concatenate((self.high[kept], high))
        self.values = np.concatenate((self.values[kept], self.value(high)))

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
