"""Flows from every member of a group to those some places further on: rings, PAT.

PAT runs one binomial tree from every member at once: a chunk goes from offset to offset
with its bits set from the highest down (Jeaugey 2025, *PAT: a new algorithm for
all-gather and reduce-scatter operations at scale*, arXiv 2506.20252). Shapes: g groups
of n members, T tiers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.cost.fair_share import Crossings
from placer.cost.links import LinkLoad, weighted_counts

if TYPE_CHECKING:
    from placer.cost.fabric import Fabric


class _Crossing(NamedTuple):
    """Flows that leave child domains of one tier; arrays of shape (g, n).

    ``sent`` and ``received`` are bytes of each member, ``flows`` (g,) their number.
    """

    child: IntArray
    sent: FloatArray
    received: FloatArray
    flows: IntArray


@dataclass(frozen=True, eq=False)
class Shifts:
    """Flows around groups whose members' GPUs are rows in ring order.

    Attributes
    ----------
    fabric : Fabric
    gpus : ndarray, shape (g, n)
    shares : mapping of int to float
        Distance -> bytes that every member sends so far, for each byte of the buffer.
    """

    fabric: Fabric
    gpus: IntArray
    shares: dict[int, float]

    @classmethod
    def around(cls, fabric: Fabric, gpus: IntArray) -> Shifts:
        """A byte on every hop of a ring."""
        return cls(fabric, gpus, {1: 1.0})

    @classmethod
    def of_pat(cls, fabric: Fabric, gpus: IntArray) -> Shifts:
        """The flows of PAT for groups that have a domain for every member.

        On distance ``2**k`` goes the chunk of every offset whose lowest set bit is
        ``k``.
        """
        n = gpus.shape[1]
        distances = [1 << k for k in range((n - 1).bit_length())]
        return cls(fabric, gpus, {d: (n - 1 + d) // (2 * d) / n for d in distances})

    @cached_property
    def _crossings(self) -> dict[int, _Crossing]:
        """Flows of every tier that has any."""
        found = {}
        for t in self.fabric.scale_out_tiers:
            child = self.fabric.child_domain_of_gpu(t)[self.gpus]
            sent, received = np.zeros(child.shape), np.zeros(child.shape)
            flows = np.zeros(len(child), dtype=np.int64)
            for distance, share in self.shares.items():
                leaves = child != np.roll(child, -distance, axis=1)
                sent += share * leaves
                received += share * np.roll(leaves, distance, axis=1)
                flows += np.count_nonzero(leaves, axis=1)
            if not flows.any():  # nor at any tier further out
                break
            found[t] = _Crossing(child, sent, received, flows)
        return found

    @cached_property
    def _links(self) -> list[tuple[int, float, IntArray]]:
        """(tier, share, link) of the flows of each distance; links (g, n), or -1."""
        return [
            (t, share, self.fabric.link_of(t, self.gpus, self._at(distance)))
            for t in self.fabric.links
            for distance, share in self.shares.items()
        ]

    def _at(self, distance: int) -> IntArray:
        """GPU so far from each member; shape (g, n)."""
        return np.roll(self.gpus, -distance, axis=1)

    @cached_property
    def load(self) -> LinkLoad:
        """Load of one byte of buffer in every group."""
        up: list[FloatArray] = [np.empty(0)] * self.fabric.num_tiers
        down: list[FloatArray] = [np.empty(0)] * self.fabric.num_tiers
        for t in self.fabric.scale_out_tiers:
            num_children = len(self.fabric.uplink_capacity[t])
            crossing = self._crossings.get(t)
            if crossing is None:
                up[t] = down[t] = np.zeros(num_children)
                continue
            up[t] = weighted_counts(crossing.child, crossing.sent, num_children)
            down[t] = weighted_counts(crossing.child, crossing.received, num_children)
        links = self.fabric.links
        between = {t: np.zeros(len(links[t].capacity)) for t in links}
        for t, share, link in self._links:
            between[t] += links[t].load(link, share)
        return LinkLoad(up, down, between)

    @cached_property
    def crossings(self) -> list[Crossings]:
        """Where the flows use uplinks and links, both directions of every tier."""
        uplinks = [
            Crossings(rows, found.child[rows, columns], self.fabric.uplink_capacity[t])
            for t, found in self._crossings.items()
            for moved in (found.sent, found.received)
            for rows, columns in [np.nonzero(moved > 0)]
        ]
        return uplinks + [
            Crossings(rows, link[rows, columns], self.fabric.links[t].capacity)
            for t, _, link in self._links
            for rows, columns in [np.nonzero(link >= 0)]
        ]

    @cached_property
    def shared_pace(self) -> FloatArray:
        """Seconds a byte of buffer takes on a group's fullest uplink or link; (g,)."""
        slowest = np.zeros(len(self.gpus))
        for t, crossing in self._crossings.items():
            for load, moved in (
                (self.load.up[t], crossing.sent),
                (self.load.down[t], crossing.received),
            ):
                busy = (load / self.fabric.uplink_capacity[t])[crossing.child]
                np.maximum(slowest, (busy * (moved > 0)).max(axis=1), out=slowest)
        for t, _, link in self._links:
            busy = self.load.between[t] / self.fabric.links[t].capacity
            on_links = np.where(link >= 0, busy[link], 0.0)
            np.maximum(slowest, on_links.max(axis=1), out=slowest)
        return slowest

    @cached_property
    def _flows_of_tier(self) -> IntArray:
        """How many flows of each group have each tier; shape (T, g).

        Those inside scale-up domains are not counted.
        """
        crossing = np.zeros((self.fabric.num_tiers + 1, len(self.gpus)), dtype=np.int64)
        for t, found in self._crossings.items():
            crossing[t] = found.flows
        first = self.fabric.scale_up_tier + 1
        own = crossing[:-1] - crossing[1:]
        own[:first] = 0
        return own

    @cached_property
    def single_pace(self) -> FloatArray:
        """Seconds a byte takes on one NIC at the slowest tier of a group; (g,)."""
        pace = (self._flows_of_tier > 0) / self.fabric.bandwidth[:, None]
        slowest: FloatArray = pace.max(axis=0)
        return slowest

    @cached_property
    def latency(self) -> FloatArray:
        """Mean latency of the flows of a group between domains, s; shape (g,)."""
        flows = self._flows_of_tier
        total = self.fabric.latency @ flows
        if self.fabric.has_rails:
            total = total + self._detours()
        if self.fabric.links:
            hops = [
                self.fabric.link_latency(self.gpus, self._at(d)) for d in self.shares
            ]
            total = total + np.sum(hops, axis=(0, 2))
        return np.asarray(total / np.maximum(flows.sum(axis=0), 1))

    def _detours(self) -> FloatArray:
        """What the flows of a group take besides to reach other rails, s; (g,)."""
        fabric = self.fabric
        rail = fabric.rail_of_gpu[self.gpus]
        total = np.zeros(len(self.gpus))
        for distance in self.shares:
            tier = fabric.tier_between(self.gpus, self._at(distance))
            leaves = rail != np.roll(rail, -distance, axis=1)
            total += (fabric.detour[tier] * leaves).sum(axis=1)
        return total

    @cached_property
    def bytes_by_tier(self) -> FloatArray:
        """Bytes sent between domains for each byte of buffer; shape (T,)."""
        none = np.zeros_like(self.fabric.total(np.zeros(self.gpus.shape), self.gpus))
        crossing = np.stack([none] * (self.fabric.num_tiers + 1))
        for t, found in self._crossings.items():
            crossing[t] = self.fabric.total(found.sent, self.gpus)
        own = crossing[:-1] - crossing[1:]
        own[: self.fabric.scale_up_tier + 1] = 0.0
        return own
