"""Groups that lie across sets which a rule keeps in outer domains.

``require: {cp: leaf}`` keeps cp groups in leaves. A tp group lies across ``n`` of them,
one rank in each, and so do others: together a *block* of ``n`` sets of ``c`` ranks, or
of ``c`` groups. A leaf with groups whole of ``b_d`` blocks takes all their sets:

``whole <= max sum_d min(c b_d, w_d)`` over ``b_d <= room_d // (c n)``, ``sum b_d = B``

with ``w_d`` groups that the nodes of leaf d hold whole, and B blocks; all others are
cut. Where no part of a group is below ``p``, neither is what a leaf holds of it: j sets
of a block, ``p <= j <= n - p`` or ``j = n``. See docs/method.md, "Groups across sets of
a rule". Shapes: D domains, R ranks, g groups of n.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placer.arrays import IntArray
from placer.solve.problem.colocation import join
from placer.solve.tree.outer_sets import sets_cut_least


@dataclass(frozen=True, eq=False)
class AcrossSets:
    """Groups that lie across sets of one outer tier.

    Attributes
    ----------
    outer : ndarray, shape (D,)
        Outer domain of each inner domain.
    size : int
        Ranks of a group, each in a set of its own.
    alike : int
        Ranks of a set, and groups that lie across the same sets.
    """

    outer: IntArray
    size: int
    alike: int

    def fewest_cut(self, room: IntArray, groups: int) -> int:
        """Groups that no inner domain holds whole, at the least.

        Parameters
        ----------
        room : ndarray, shape (D,)
            Ranks that each inner domain may hold.
        """
        whole = self._of_outer(room // self.size)
        held = self._of_outer(room) // (self.size * self.alike)
        blocks = groups // self.alike
        sets = sets_cut_least(whole, held, self.alike, blocks)
        cut = np.maximum(sets * self.alike - whole, 0).sum()
        return int(cut) + self.alike * (blocks - int(sets.sum()))

    def sets_held(self, used: IntArray) -> IntArray:
        """Sets that each outer domain may hold.

        Parameters
        ----------
        used : ndarray, shape (D,)
            Ranks that each inner domain may hold.
        """
        return self._of_outer(used) // self.alike

    def _of_outer(self, value: IntArray) -> IntArray:
        return np.bincount(self.outer, value).astype(np.int64)


def across_sets(
    domain_of_node: IntArray, label: IntArray, inner: int, members: IntArray
) -> Iterator[AcrossSets]:
    """Of each outer tier whose sets the groups lie across, one rank in each.

    Parameters
    ----------
    domain_of_node : ndarray, shape (T, N)
    label : ndarray, shape (T, R)
        Set of each rank at each tier.
    inner : int
        Tier of the inner domains.
    members : ndarray, shape (g, n)
        Every rank once.
    """
    if inner < 0:
        return
    first = np.unique(domain_of_node[inner], return_index=True)[1]
    size = members.shape[1]
    for tier in range(inner + 1, len(label) - 1):
        ranks = np.unique(np.unique(label[tier], return_counts=True)[1])
        rows = np.sort(label[tier][members], axis=1)
        blocks = np.unique(join(label[tier], members), return_counts=True)[1]
        if (
            len(ranks) == 1
            and ranks[0] > 1
            and (np.diff(rows) > 0).all()
            and (blocks == ranks[0] * size).all()
        ):
            yield AcrossSets(domain_of_node[tier][first], size, int(ranks[0]))
