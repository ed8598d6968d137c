"""How many sets of ranks each outer domain holds in runs of its nodes.

Where sets of ranks that follow each other lie whole in a leaf, the nodes of a leaf hold
runs of these sets alone. Which sets is not known, so a run serves at a place of a set
if it serves there in any. `priced_runs.py` says how many sets fit the nodes of a leaf
one after the other, at the most; all leaves together must hold all sets. By hand: sets
of 16 in runs of 8. Nine nodes of 8 and two of 7 have room for five sets, and hold four.

Shapes: U units of ranks that share a node, L lengths of a run in units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import BoolArray, IntArray
from placer.solve.bounds.groups.priced_runs import cheapest_runs, fitting_runs
from placer.solve.bounds.groups.run_program import consecutive
from placer.solve.tree.capacity import ancestor_of_domain

if TYPE_CHECKING:
    from placer.topology.machine import Machine


@dataclass(frozen=True)
class LeafRuns:
    """Sets of ranks that lie in leaves, domains of some outer tier.

    Attributes
    ----------
    size : int
        Units of a set.
    leaves : tuple of pairs
        Units that each node of a leaf holds, and how many leaves are like that.
    """

    size: int
    leaves: tuple[tuple[tuple[int, ...], int], ...]

    @classmethod
    def by_tier(
        cls, topology: Machine, label: IntArray, tier: int, grain: int
    ) -> Iterator[LeafRuns]:
        """Of every tier above the nodes whose domains hold sets whole.

        Parameters
        ----------
        topology : Machine
        label : ndarray, shape (T, R)
            Set of each rank at each tier.
        tier : int
            Whose domains are the nodes.
        grain : int
            Ranks of a unit.
        """
        units = np.bincount(topology.domain_of_gpu[tier]) // grain
        for outer in range(tier + 1, len(label) - 1):
            home = ancestor_of_domain(topology, tier, outer)
            size = consecutive(label[outer])
            if size > grain and size % grain == 0:
                leaves = Counter(
                    tuple(sorted(units[home == leaf].tolist()))
                    for leaf in range(int(home.max()) + 1)
                )
                yield cls(size // grain, tuple(leaves.items()))

    def may_hold(self, serves: BoolArray) -> bool:
        """Whether leaves may hold all sets in runs that serve; False is certain.

        Parameters
        ----------
        serves : ndarray of bool, shape (U, L)
            Whether a run that begins at a unit serves, by its length less 1.
        """
        in_set = serves.reshape(-1, self.size, serves.shape[1])
        sets, anywhere = len(in_set), np.asarray(in_set.any(axis=0))
        left = sum(number * (sum(units) // self.size) for units, number in self.leaves)
        for units, number in self.leaves:
            room = sum(units) // self.size
            left -= number * (room - self._most(np.array(units), anywhere, room))
            if left < sets:
                return False
        return True

    def _most(self, units: IntArray, serves: BoolArray, most: int) -> int:
        """Sets that nodes hold one after the other, no more than so many."""
        serves = serves[:, : int(units.max())]
        for sets in range(most, 0, -1):
            begin, length = np.indices((sets * self.size, serves.shape[1]))
            inside = np.tile(serves, (sets, 1)) & (begin + length < sets * self.size)
            if fits(units, inside):
                return sets
        return 0


def fits(units: IntArray, serves: BoolArray) -> bool:
    """Whether nodes may hold all ranks in runs that serve; False is certain."""
    return fitting_runs(
        units, lambda price: cheapest_runs(np.where(serves, price, np.inf))
    )[0]
