"""The hop cost as a compiled evaluator: edges of each axis by tier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import row_of_number
from placer.solve.score.groups import pairs_of_atoms
from placer.solve.score.slots import Sites, Slots, atoms_of
from placer.solve.score.step_time import set_machine

if TYPE_CHECKING:
    from placer.arrays import IntArray
    from placer.cost.fabric import Fabric
    from placer.cost.hop_cost import HopCost
    from placer.solve.score._kernel import Hops


def hop_kernel(hops: HopCost, fabric: Fabric, slots: Slots) -> tuple[Slots, Hops, int]:
    """The slots in the order of the tree, the cost on them, and atoms of a unit."""
    from placer.solve.score._kernel import Hops

    sites = Sites.of_hops(fabric)
    slots = slots.in_order(sites.tree)
    atoms = atoms_of(slots, sites)
    kernel = Hops()
    set_machine(kernel, fabric, sites, atoms)
    kernel.set_distance(np.ascontiguousarray(hops.distance))
    count = len(atoms.ranks)
    atom = row_of_number(atoms.ranks)
    for axis in hops.axes:
        _add_axis(kernel, axis.weight, atom[axis.edges], count, len(hops.distance))
    width = slots.ranks.shape[1] // atoms.ranks.shape[1]
    return slots, kernel, width


def _add_axis(
    kernel: Hops, weight: float, edges: IntArray, count: int, tiers: int
) -> None:
    """The edges between atoms; those inside one are always of the innermost tier."""
    apart = edges[:, 0] != edges[:, 1]
    inside = [int((~apart).sum()), *[0] * (tiers - 1)]
    between = np.sort(edges[apart], axis=1)
    found = pairs_of_atoms(between[:, 0], between[:, 1])
    ends = found.members.entry.reshape(-1, 2)
    of_atom = found.members.turned(count)
    kernel.add_axis(
        weight,
        of_atom.start,
        of_atom.entry,
        np.ascontiguousarray(ends[:, 0]),
        np.ascontiguousarray(ends[:, 1]),
        found.lanes,
        inside,
    )
