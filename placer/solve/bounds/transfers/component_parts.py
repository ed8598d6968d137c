"""Parts in which domains may hold components of a job's transfers.

Where those who send need receivers near, and those need senders, a domain that has any
of a component has enough of both kinds. Shapes: S sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import BoolArray, IntArray

if TYPE_CHECKING:
    from placer.solve.bounds.transfers.partners import Partners


@dataclass(frozen=True, eq=False)
class Parts:
    """Least parts of components whose sets all need some of the other kind near.

    Attributes
    ----------
    size, least : ndarray, ranks
        Of each such component, and of its parts.
    is_whole : ndarray of bool, shape (S,)
        Whether the component of a set must lie in one domain.
    """

    size: IntArray
    least: IntArray
    is_whole: BoolArray

    @classmethod
    def of(cls, partners: Partners, needs: IntArray) -> Parts:
        """The parts where each set, which sends or receives, has what it needs.

        A domain with one of either kind has at least the needs of both; where no
        second one could have as many the component is whole.
        """
        members, component = partners.members, partners.component
        is_sender = np.isin(np.arange(len(members)), partners.partners)
        least = np.full((2, len(members)), partners.room[0])
        ranks = np.zeros((2, len(members)), dtype=np.int64)
        for kind, of_kind in enumerate((is_sender, ~is_sender)):
            np.minimum.at(least[kind], component[of_kind], needs[of_kind])
            np.add.at(ranks[kind], component[of_kind], members[of_kind])
        is_tied = (least > 0).all(axis=0) & (ranks > 0).all(axis=0)
        # Senders need receivers, and those of a second domain as many others.
        is_whole = np.asarray(is_tied & (2 * least[::-1] > ranks).any(axis=0))
        size = ranks.sum(axis=0)
        part = np.where(is_whole, size, least.sum(axis=0))
        return cls(size[is_tied], part[is_tied], is_whole[component])

    def fit(self, room: IntArray) -> bool:
        """Whether domains may hold all components in such parts."""
        for smallest in np.unique(self.least).tolist():
            kept = self.least >= smallest
            rooms, domains = np.unique(room, return_counts=True)
            held = [self._held(int(one), kept) for one in rooms]
            if np.dot(held, domains) < self.size[kept].sum():
                return False
            # The largest domains hold a component in the fewest parts.
            fewest = np.searchsorted(np.cumsum(room), self.size[kept]) + 1
            if np.dot(rooms // smallest, domains) < fewest.sum():
                return False
        return True

    def _held(self, room: int, kept: BoolArray) -> int:
        """Most ranks of some components in a domain: whole ones, and parts of others.

        What a part leaves of its component is a part as well, or several.
        """
        smallest, size = int(self.least[kept].min()), int(self.size[kept].max())
        if self.size[kept].min() < size:
            return min(room, room // smallest * size)
        largest = size - smallest
        rest = room - size * np.arange(room // size + 1)
        parts = np.where(largest >= smallest, rest // smallest, 0)
        return int((room - rest + np.minimum(rest, parts * largest)).max())
