"""The hop cost as a compiled evaluator: edges of each axis by tier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import row_of_number
from placer.cost.fabric import Fabric
from placer.cost.hop_cost import HopCost
from placer.solve.score.groups import pairs_of_atoms
from placer.solve.score.slots import Sites, Slots, atoms_of
from placer.solve.score.step_time import set_machine

if TYPE_CHECKING:
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
    parts = [np.zeros((0, 4), dtype=np.int64)]  # one end, the other, times, axis
    for number, axis in enumerate(hops.axes):
        edges = np.sort(atom[axis.edges], axis=1)
        apart = edges[edges[:, 0] != edges[:, 1]]
        inside[number, 0] = len(edges) - len(apart)
        found = pairs_of_atoms(apart[:, 0], apart[:, 1])
        ends = found.members.entry.reshape(-1, 2)
        axes = np.full(len(ends), number)
        parts += [
            np.stack((*both.T, found.lanes, axes), axis=1)
            for both in (ends, ends[:, ::-1])
        ]
    every = np.concatenate(parts)
    every = every[np.argsort(every[:, 0], kind="stable")]
    kernel.set_edges(
        distance=distance,
        weights=np.array([axis.weight for axis in hops.axes]),
        inside=inside.ravel(),
        first=np.searchsorted(every[:, 0], np.arange(len(atoms.ranks) + 1)),
        other=every[:, 1],
        times=every[:, 2],
        axis=every[:, 3],
    )
    width = slots.ranks.shape[1] // atoms.ranks.shape[1]
    return slots, kernel, width
