"""The cost of a placement and of changes of it, exactly.

The step time and the hop cost have one evaluator each, compiled; where that was not
built, or the two costs do not agree on a job, changes are priced in full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray, row_of_number
from placer.cost.fabric import Fabric
from placer.cost.hop_cost import HopCost
from placer.solve.problem.compiled import Problem
from placer.solve.score import is_built
from placer.solve.score.groups import Rows, pairs_of_atoms
from placer.solve.score.slots import Sites, Slots, atoms_of, cell_tier
from placer.solve.score.step_time import set_machine, step_kernel

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
    if problem.goal.name == "time":
        found: tuple[Slots, StepTime | Hops, int] | None
        found = step_kernel(problem.model, slots)
    else:
        fabric, cell = Fabric.of(problem.machine), cell_tier(problem)
        found = _hop_kernel(problem.hops, fabric, slots, cell)
    return None if found is None else Compiled(*found)


def _hop_kernel(
    hops: HopCost, fabric: Fabric, slots: Slots, cell: int
) -> tuple[Slots, Hops, int]:
    """The slots in the order of the tree, the cost on them, and atoms of a unit."""
    from placer.solve.score._kernel import Hops

    sites = Sites.of_hops(fabric, cell)
    slots = slots.in_order(sites.tree)
    atoms = atoms_of(slots, sites)
    kernel = Hops()
    set_machine(kernel, fabric, sites, atoms)
    atom = row_of_number(atoms.ranks)
    inside = np.zeros((len(hops.axes), len(sites.tiers)), dtype=np.int64)
    pairs = []
    for number, axis in enumerate(hops.axes):
        edges = np.sort(atom[axis.edges], axis=1)
        apart = edges[edges[:, 0] != edges[:, 1]]
        inside[number, 0] = len(edges) - len(apart)
        pairs.append(pairs_of_atoms(apart[:, 0], apart[:, 1]))
    ends = Rows.of(one.members.entry for one in pairs).entry
    kernel.set_edges(
        distance=hops.distance[sites.tiers],
        weights=np.array([axis.weight for axis in hops.axes]),
        inside=inside.ravel(),
        ends=Rows(np.arange(0, len(ends) + 1, 2), ends),
        times=Rows.of(one.lanes for one in pairs).entry,
        axis=np.repeat(
            np.arange(len(pairs)), np.array([one.count for one in pairs], int)
        ),
    )
    width = slots.ranks.shape[1] // atoms.ranks.shape[1]
    return slots, kernel, width
