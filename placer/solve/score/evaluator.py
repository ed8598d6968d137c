"""The cost of a placement and of changes of it, exactly.

The step time and the hop cost have one evaluator each, compiled; where that was not
built, or the two costs do not agree on a job, changes are priced in full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.cost.fabric import Fabric
from placer.solve.problem.compiled import Problem
from placer.solve.problem.objective import TimeObjective
from placer.solve.score.hop_cost import hop_kernel
from placer.solve.score.kernel import is_built
from placer.solve.score.slots import Slots, cell_tier
from placer.solve.score.step_time import step_kernel

if TYPE_CHECKING:
    from placer.solve.score._kernel import Hops, StepTime


@dataclass(eq=False)
class Compiled:
    """The compiled cost: a change costs what it touches."""

    slots: Slots  # in the order of the tree
    kernel: StepTime | Hops
    width: int  # atoms of a unit: 1, or its ranks

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
