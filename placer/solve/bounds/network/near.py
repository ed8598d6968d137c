"""What placements keep to whose transfers take no longer than some time.

Ranks that their NIC alone would keep too long have partners in their scale-up domain.
Those take room there, so fewer ranks that need partners are together in it than would
fit. Shapes: R ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placer.base.arrays import IntArray


@dataclass(frozen=True, eq=False)
class Crowd:
    """Who needs how many partners near; ranks of other components share none of them.

    Attributes
    ----------
    needs, component : ndarray, shape (R,)
    asked : ndarray, shape (R,)
        Ranks that every partner in the component of a rank needs near in turn.
    """

    needs: IntArray
    component: IntArray
    asked: IntArray

    def most_together(self, members: IntArray, room: IntArray) -> IntArray:
        """Most members of a row in scale-up domains of such room; as ``room``."""
        if not self.needs[members].any():
            return np.full(room.shape, members.shape[1])
        rooms, which = np.unique(room, return_inverse=True)
        most = np.zeros(len(rooms), dtype=np.int64)
        for row in members:
            np.maximum(most, self._most_of_row(row, rooms), out=most)
        return most[which]

    def _most_of_row(self, row: IntArray, rooms: IntArray) -> IntArray:
        """As many as fit with their partners, those of a component sharing theirs.

        A domain with some of a component's members has the least that one of them
        needs of partners, and as many ranks as these need in turn, members or not. The
        cheapest components are not those with the most members, so either sum is a
        bound by itself.
        """
        component = np.unique(self.component[row], return_inverse=True)[1]
        size = np.bincount(component)
        needs = np.full(len(size), self.needs[row].max())
        np.minimum.at(needs, component, self.needs[row])
        asked = np.zeros(len(size), dtype=np.int64)
        asked[component] = self.asked[row]
        asked[needs == 0] = 0  # no partner need be there
        # Of one component, two and so on; shape (rooms, components).
        beside = rooms[:, None] - np.cumsum(np.sort(needs))
        spare = rooms[:, None] - np.cumsum(np.sort(needs + asked))
        within = np.cumsum(np.sort(np.minimum(size, asked))[::-1])
        most = np.minimum(np.cumsum(np.sort(size)[::-1]), beside)
        most = np.where(spare < 0, 0, np.minimum(most, spare + within))
        return np.asarray(most.max(axis=1))


@dataclass(frozen=True, eq=False)
class Near:
    """What placements keep to whose transfers take so long, and not much longer.

    Attributes
    ----------
    seconds : float, s
        Transfers take at least as long.
    crowds : tuple of Crowd
        Of either direction.
    """

    seconds: float
    crowds: tuple[Crowd, ...] = ()

    def most_together(self, members: IntArray, room: IntArray) -> IntArray:
        """Most members of a row in scale-up domains of such room; as ``room``."""
        most = np.full(room.shape, members.shape[1])
        for crowd in self.crowds:
            np.minimum(most, crowd.most_together(members, room), out=most)
        return most
