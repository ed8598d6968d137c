"""The cost of a placement and of changes of it, priced from the beginning each time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from placer.base.arrays import FloatArray, IntArray
    from placer.solve.problem.compiled import Problem
    from placer.solve.score.evaluator import Changes
    from placer.solve.score.slots import Slots


@dataclass(eq=False)
class FullPrice:
    """Every placement priced from the beginning."""

    problem: Problem
    slots: Slots
    value: float = field(default=0.0, init=False)
    slot_of_unit: IntArray = field(init=False)

    def load(self, slot_of_unit: IntArray) -> None:
        """Go to another placement."""
        self.slot_of_unit = np.array(slot_of_unit)
        self.value = self._price(self.slot_of_unit)

    def delta(self, changes: Changes) -> FloatArray:
        """What each change would add to the cost."""
        count = len(changes.first) - 1
        after = [self._price(self._after(changes, k)) for k in range(count)]
        return np.array(after) - self.value

    def apply(self, changes: Changes, chosen: int) -> None:
        """Make one of the changes."""
        self.load(self._after(changes, chosen))

    def pressure(self) -> FloatArray:
        """All units alike."""
        return np.ones(len(self.slots.ranks))

    def _price(self, slot_of_unit: IntArray) -> float:
        return float(self.problem.goal.value(self.slots.gpu_of_rank(slot_of_unit)))

    def _after(self, changes: Changes, change: int) -> IntArray:
        unit = np.full(len(self.slots.gpus), -1)
        unit[self.slot_of_unit] = np.arange(len(self.slot_of_unit))
        for one, other in zip(*changes.pairs(change), strict=True):
            unit[[one, other]] = unit[[other, one]]
        found = np.empty_like(self.slot_of_unit)
        found[unit[unit >= 0]] = np.flatnonzero(unit >= 0)
        return found
