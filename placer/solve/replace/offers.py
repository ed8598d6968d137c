"""Repairs that are carried out, priced and kept, as few as it takes."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from placer.solve.replace.curve import Curve
    from placer.solve.replace.repair import Repairs

# Repairs that are carried out to begin with.
CHOICES = 24


class OfferedRepairs:
    """Repairs of one sort, carried out as far as they are asked for.

    Parameters
    ----------
    repairs : Repairs
    curve : Curve
        Offered every repair that is carried out.
    over : callable
        Asked now and then; True carries out no more.
    """

    def __init__(
        self, repairs: Repairs, curve: Curve, over: Callable[[], bool]
    ) -> None:
        self._repairs, self._curve, self._over = repairs, curve, over
        self._choices = repairs.choices(over)
        self._value: dict[int, float] = {}

    def spread(self) -> None:
        """Offer the first and the last choice, and some between."""
        last = len(self._choices) - 1
        for place in np.unique(np.linspace(0, last, CHOICES).astype(int)).tolist():
            if place >= 0 and not self._over():
                self._offer(place)

    def close_in(self, budget: float) -> None:
        """Offer choices around the first that costs no more than ``budget``."""
        high = [place for place, value in self._value.items() if value > budget]
        low = [place for place, value in self._value.items() if value <= budget]
        if not (high and low):
            return
        first, last = max(high), min(low)
        while first + 1 < last and not self._over():
            middle = (first + last) // 2
            if self._offer(middle) <= budget:
                last = middle
            else:
                first = middle

    def _offer(self, place: int) -> float:
        if place not in self._value:
            found = self._repairs.placement(self._choices[place])
            self._value[place] = (
                inf if found is None else self._curve.offer("repair", found)
            )
        return self._value[place]
