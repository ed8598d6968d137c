"""The hop cost as a compiled evaluator: edges of each axis by tier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import row_of_number
from placer.solve.score.groups import pairs_of_atoms
from placer.solve.score.slots import Sites, Slots, atoms_of
from placer.solve.score.step_time import set_machine

if TYPE_CHECKING:
    from placer.cost.fabric import Fabric
    from placer.cost.hop_cost import HopCost
    from placer.solve.score._kernel import Hops


def hop_kernel(
    hops: HopCost, fabric: Fabric, slots: Slots, cell: int
) -> tuple[Slots, Hops, int]:
    """The slots in the order of the tree, the cost on them, and atoms of a unit."""
    from placer.solve.score._kernel import Hops

    sites = Sites.of_hops(fabric, cell)
    slots = slots.in_order(sites.tree)
    atoms = atoms_of(slots, sites)
    kernel = Hops()
    set_machine(kernel, fabric, sites, atoms)
    distance = hops.distance[sites.tiers]
    atom = row_of_number(atoms.ranks)
    inside = np.zeros((len(hops.axes), len(distance)), dtype=np.int64)
    ends = [np.zeros((0, 2), dtype=np.int32)]
    times, axes = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for number, axis in enumerate(hops.axes):
        edges = np.sort(atom[axis.edges], axis=1)
        apart = edges[edges[:, 0] != edges[:, 1]]
        inside[number, 0] = len(edges) - len(apart)
        found = pairs_of_atoms(apart[:, 0], apart[:, 1])
        ends.append(found.members.entry.reshape(-1, 2))
        times.append(found.lanes)
        axes.append(np.full(len(found.lanes), number, dtype=np.int32))
    both = np.concatenate(ends)
    from_one, to_other = np.concatenate((both, both[:, ::-1])).T
    order = np.argsort(from_one, kind="stable")
    first = np.searchsorted(from_one[order], np.arange(len(atoms.ranks) + 1))
    kernel.set_edges(
        np.ascontiguousarray(distance),
        np.array([axis.weight for axis in hops.axes]),
        inside.ravel().tolist(),
        first.astype(np.int32),
        to_other[order],
        np.tile(np.concatenate(times), 2)[order],
        np.tile(np.concatenate(axes), 2)[order],
    )
    width = slots.ranks.shape[1] // atoms.ranks.shape[1]
    return slots, kernel, width
