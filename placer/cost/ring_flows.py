"""Flows around rings: from every member of a group to the next one.

Shapes: g groups of n members, T tiers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.cost.fair_share import Crossings
from placer.cost.links import LinkLoad, weighted_counts

if TYPE_CHECKING:
    from placer.cost.fabric import Fabric


class _Crossing(NamedTuple):
    """Hops that leave child domains of one tier; arrays of shape (g, n).

    ``sent`` and ``received`` say which members do so.
    """

    child: IntArray
    sent: BoolArray
    received: BoolArray


@dataclass(frozen=True, eq=False)
class RingFlows:
    """A byte on every hop of groups whose members' GPUs are rows in ring order.

    Attributes
    ----------
    fabric : Fabric
    gpus : ndarray, shape (g, n)
    """

    fabric: Fabric
    gpus: IntArray

    @cached_property
    def _crossings(self) -> dict[int, _Crossing]:
        """Hops of every tier that has any."""
        found = {}
        for t in self.fabric.scale_out_tiers:
            child = self.fabric.child_domain_of_gpu(t)[self.gpus]
            leaves = child != np.roll(child, -1, axis=1)
            if not leaves.any():  # nor at any tier further out
                break
            found[t] = _Crossing(child, leaves, np.roll(leaves, 1, axis=1))
        return found

    @cached_property
    def _links(self) -> list[tuple[int, IntArray]]:
        """(tier, link) of every hop; links (g, n), or -1."""
        following = np.roll(self.gpus, -1, axis=1)
        return [
            (t, self.fabric.link_of(t, self.gpus, following)) for t in self.fabric.links
        ]

    @cached_property
    def load(self) -> LinkLoad:
        """Load of one byte on every hop."""
        up: list[FloatArray] = [np.empty(0)] * self.fabric.num_tiers
        down: list[FloatArray] = [np.empty(0)] * self.fabric.num_tiers
        for t in self.fabric.scale_out_tiers:
            num_children = len(self.fabric.uplink_capacity[t])
            crossing = self._crossings.get(t)
            if crossing is None:
                up[t] = down[t] = np.zeros(num_children)
                continue
            up[t], down[t] = (
                weighted_counts(crossing.child, moved.astype(np.float64), num_children)
                for moved in (crossing.sent, crossing.received)
            )
        links = self.fabric.links
        between = {t: links[t].load(link, 1.0) for t, link in self._links}
        return LinkLoad(up, down, between)

    @cached_property
    def crossings(self) -> list[Crossings]:
        """Where the hops use uplinks and links, both directions of every tier."""
        uplinks = [
            Crossings(rows, found.child[rows, columns], self.fabric.uplink_capacity[t])
            for t, found in self._crossings.items()
            for moved in (found.sent, found.received)
            for rows, columns in [np.nonzero(moved)]
        ]
        return uplinks + [
            Crossings(rows, link[rows, columns], self.fabric.links[t].capacity)
            for t, link in self._links
            for rows, columns in [np.nonzero(link >= 0)]
        ]
