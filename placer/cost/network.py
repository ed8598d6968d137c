"""What one operation of many groups takes: the seam between volumes and machine.

`StepModel` asks a network for the cost of collectives and messages between ranks.
`PlacedNetwork` answers for a placement; the time bound answers for the best placement
imaginable.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.cost.collectives import Sizes
from placer.cost.communicators import Communicators
from placer.cost.exchange import all_to_all_cost, flows_cost, send_cost
from placer.cost.fabric import Fabric
from placer.cost.links import Cost
from placer.cost.rings import build_rings


class Network(Protocol):
    """Costs of operations between ranks; all groups of a call run at once."""

    def gather(self, members: IntArray, size_bytes: float) -> Cost:
        """One reduce-scatter or all-gather in every row of ``members``."""

    def all_reduce(
        self, members: IntArray, size_bytes: float, algorithm: str = "auto"
    ) -> Cost:
        """One all-reduce in every row of ``members``."""

    def all_to_all(self, members: IntArray, size_bytes: float, copies: int = 0) -> Cost:
        """One all-to-all in every row of ``members``.

        With ``copies`` the buffer holds so many copies of each token, of which only one
        crosses to each domain.
        """

    def send(self, senders: IntArray, receivers: IntArray, size_bytes: float) -> Cost:
        """A message from each sender to its receiver."""

    def relay(self, members: IntArray, size_bytes: float) -> list[Cost]:
        """Messages along each row of ``members``, the cost of each hop in turn."""
        hops = zip(members.T[:-1], members.T[1:], strict=True)
        return [self.send(one, other, size_bytes) for one, other in hops]

    def pass_on(self, members: IntArray, size_bytes: float) -> Cost:
        """A message from each member of a row to the next one, around it.

        The seconds are those of a row's slowest message; shape (g,).
        """
        cost = self.send(members, np.roll(members, -1, axis=1), size_bytes)
        return replace(cost, seconds=cost.seconds.max(axis=1))

    def flows(
        self,
        senders: IntArray,
        receivers: IntArray,
        size_bytes: FloatArray,
        pair_share: float = 1.0,
    ) -> Cost:
        """Messages of any sizes between different ranks, all at once.

        What one rank sends another reaches ``pair_share`` of a NIC's rate.
        """

    def stays_inside(self, members: IntArray) -> BoolArray:
        """Whether each row of ``members`` lies in one scale-up domain."""

    def speed(self, members: IntArray) -> FloatArray:
        """Share of the usual speed of the slowest rank of each row; shape (g,)."""


@dataclass(frozen=True, eq=False)
class PlacedNetwork(Network):
    """The network as ranks on given GPUs see it."""

    fabric: Fabric
    gpu_of_rank: IntArray  # (R,)
    # Groups met so far by the identity of their array, which is kept alive here.
    _known: dict[int, tuple[IntArray, Communicators]] = field(
        default_factory=dict, repr=False
    )

    def at(self, fabric: Fabric) -> PlacedNetwork:
        """The network at other rates of the machine; rings met so far are the same."""
        known = {
            key: (members, replace(groups, fabric=fabric))
            for key, (members, groups) in self._known.items()
        }
        return PlacedNetwork(fabric, self.gpu_of_rank, known)

    def gather(self, members: IntArray, size_bytes: Sizes) -> Cost:
        """One reduce-scatter or all-gather in every row of ``members``."""
        return self._communicators(members).gather(size_bytes)

    def all_reduce(
        self, members: IntArray, size_bytes: Sizes, algorithm: str = "auto"
    ) -> Cost:
        """One all-reduce in every row of ``members``."""
        return self._communicators(members).all_reduce(size_bytes, algorithm)

    def all_to_all(self, members: IntArray, size_bytes: Sizes, copies: int = 0) -> Cost:
        """One all-to-all in every row of ``members``."""
        gpus = self.gpu_of_rank[members]
        return all_to_all_cost(self.fabric, gpus, size_bytes, copies)

    def send(self, senders: IntArray, receivers: IntArray, size_bytes: Sizes) -> Cost:
        """A message from each sender to its receiver."""
        at = self.gpu_of_rank
        return send_cost(self.fabric, at[senders], at[receivers], size_bytes)

    def flows(
        self,
        senders: IntArray,
        receivers: IntArray,
        size_bytes: FloatArray,
        pair_share: float = 1.0,
    ) -> Cost:
        """Messages of any sizes between different ranks, all at once."""
        at = self.gpu_of_rank
        ends = at[senders], at[receivers]
        return flows_cost(self.fabric, *ends, size_bytes, pair_share)

    def stays_inside(self, members: IntArray) -> BoolArray:
        """Whether each row of ``members`` lies in one scale-up domain."""
        inside: BoolArray = self._communicators(members).rings.domains == 1
        return inside

    def speed(self, members: IntArray) -> FloatArray:
        """Share of the usual speed of the slowest rank of each row; shape (g,)."""
        speed = self.fabric.speed_of_gpu
        if speed is None:
            return np.ones(len(members))
        slowest: FloatArray = speed[self.gpu_of_rank[members]].min(axis=1)
        return slowest

    def _communicators(self, members: IntArray) -> Communicators:
        known = self._known.get(id(members))
        if known is None:
            rings = build_rings(self.fabric, self.gpu_of_rank[members])
            known = members, Communicators(rings, self.fabric)
            self._known[id(members)] = known
        return known[1]
