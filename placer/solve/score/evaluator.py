"""The cost of a placement and of changes of it, exactly.

The step time and the hop cost have one evaluator each, compiled; where that was not
built, or the two costs do not agree on a job, changes are priced in full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.fabric import Fabric
from placer.solve.problem.objective import TimeObjective
from placer.solve.score.hop_cost import hop_kernel
from placer.solve.score.kernel import is_built
from placer.solve.score.slots import cell_tier
from placer.solve.score.step_time import step_kernel

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.score._kernel import Hops, StepTime
    from placer.solve.score.slots import Slots


@dataclass(frozen=True, eq=False)
class Changes:
    """K changes: each exchanges what some pairs of slots hold, one after the other.

    Attributes
    ----------
    first : ndarray, shape (K + 1,)
        The pairs of change ``k`` are ``first[k]:first[k + 1]``.
    one, other : ndarray
        Slots of each pair.
    """

    first: IntArray
    one: IntArray
    other: IntArray

    @classmethod
    def of(cls, *changes: list[tuple[int, int]]) -> Changes:
        """Changes as lists of pairs of slots."""
        first = np.concatenate(([0], np.cumsum([len(pairs) for pairs in changes])))
        pairs = np.array([pair for pairs in changes for pair in pairs], dtype=np.int64)
        one, other = pairs.reshape(-1, 2).T
        return cls(first, one, other)

    def pairs(self, change: int) -> tuple[IntArray, IntArray]:
        """Slots of the pairs of one change."""
        own = slice(self.first[change], self.first[change + 1])
        return self.one[own], self.other[own]


@dataclass(eq=False)
class Compiled:
    """The compiled cost: a change costs what it touches.

    Attributes
    ----------
    slots : Slots
        In the order of the tree.
    kernel : StepTime or Hops
    width : int
        Atoms of a unit: 1, or its ranks.
    """

    slots: Slots
    kernel: StepTime | Hops
    width: int

    @property
    def value(self) -> float:
        """Cost of the placement."""
        return self.kernel.value

    @property
    def slot_of_unit(self) -> IntArray:
        """Slot of each unit; shape (U,)."""
        return np.asarray(self.kernel.slots[:: self.width], np.int64) // self.width

    def load(self, slot_of_unit: IntArray) -> None:
        """Go to another placement."""
        self.kernel.load(self.atoms(slot_of_unit))

    def delta(self, changes: Changes) -> FloatArray:
        """What each change would add to the cost."""
        before = self.value
        found = np.empty(len(changes.first) - 1)
        for change in range(len(found)):
            pairs = map(self.atoms, changes.pairs(change))
            found[change] = self.kernel.change(*pairs) - before
            self.kernel.undo()
        return found

    def apply(self, changes: Changes, chosen: int) -> None:
        """Make one of the changes."""
        self.kernel.change(*map(self.atoms, changes.pairs(chosen)))
        self.kernel.keep()

    def pressure(self) -> FloatArray:
        """The time of the slowest replica that each unit is of, or of its edges."""
        found = self.kernel.pressure().reshape(-1, self.width)
        most: FloatArray = found.max(axis=1)
        return most

    def atoms(self, slots: IntArray) -> IntArray:
        """Slots of atoms, given those of units."""
        spread = slots[:, None] * self.width + np.arange(self.width)
        return spread.ravel()


def compiled(problem: Problem, slots: Slots) -> Compiled | None:
    """The compiled cost; None where it was not built or is not the scorer's."""
    if not is_built():
        return None
    if isinstance(problem.goal, TimeObjective):
        found: tuple[Slots, StepTime | Hops, int] | None
        found = step_kernel(problem.goal.model, slots)
    else:
        fabric, cell = Fabric.of(problem.machine), cell_tier(problem)
        found = hop_kernel(problem.hops, fabric, slots, cell)
    return None if found is None else Compiled(*found)
