"""The network as it would be if one group took no time and were alone on the links.

What the cost model makes of it is the step without the waiting for that group, and the
group's own share of every count of bytes. Groups of one axis share no ranks, so a row
of ranks belongs to the group when all of them do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.cost.links import Cost
from placer.cost.network import Network, PlacedNetwork


@dataclass(frozen=True, eq=False)
class OneGroup(Network):
    """A network of which one group's operations take no time."""

    whole: PlacedNetwork  # with all groups
    is_member: BoolArray  # (R,): which ranks are in the group
    # (g, n): groups of an axis: collectives of others are not the group's, be it of the
    # same ranks.
    axis: IntArray | None = None

    def gather(self, members: IntArray, size_bytes: float) -> Cost:
        """One reduce-scatter or all-gather in every row of ``members``."""
        return self._free(lambda rows: self.whole.gather(rows, size_bytes), members)

    def all_reduce(
        self, members: IntArray, size_bytes: float, algorithm: str = "auto"
    ) -> Cost:
        """One all-reduce in every row of ``members``."""
        cost = self.whole.all_reduce(members, size_bytes, algorithm)
        own = self._own(members)

        def alone() -> Cost:
            chosen = str(cost.algorithms[own][0])
            return self.whole.all_reduce(members[own], size_bytes, chosen)

        return _free(cost, own, alone)

    def all_to_all(self, members: IntArray, size_bytes: float, copies: int = 0) -> Cost:
        """One all-to-all in every row of ``members``."""
        run = self.whole.all_to_all
        return self._free(lambda rows: run(rows, size_bytes, copies), members)

    def send(self, senders: IntArray, receivers: IntArray, size_bytes: float) -> Cost:
        """A message from each sender to its receiver."""
        cost = self.whole.send(senders, receivers, size_bytes)
        ends = np.stack((senders, receivers), axis=-1).reshape(len(senders), -1)
        own = np.all(self.is_member[ends], axis=1)
        mine = senders[own], receivers[own]
        return _free(cost, own, lambda: self.whole.send(*mine, size_bytes))

    def pass_on(self, members: IntArray, size_bytes: float) -> Cost:
        """A message from each member of a row to the next one, around it."""
        return self._free(lambda rows: self.whole.pass_on(rows, size_bytes), members)

    def flows(
        self,
        senders: IntArray,
        receivers: IntArray,
        size_bytes: FloatArray,
        pair_share: float = 1.0,
    ) -> Cost:
        """Messages of any sizes between ranks, which are of no group."""
        cost = self.whole.flows(senders, receivers, size_bytes, pair_share)
        return replace(cost, traffic=cost.traffic.times(0.0))

    def stays_inside(self, members: IntArray) -> BoolArray:
        """Whether each row of ``members`` lies in one scale-up domain."""
        return self.whole.stays_inside(members)

    def speed(self, members: IntArray) -> FloatArray:
        """Share of the usual speed of the slowest rank of each row; shape (g,)."""
        return self.whole.speed(members)

    def _free(self, run: Callable[[IntArray], Cost], members: IntArray) -> Cost:
        """What an operation of all rows costs without the group."""
        own = self._own(members)
        return _free(run(members), own, lambda: run(members[own]))

    def _own(self, members: IntArray) -> BoolArray:
        """Which rows are the group; shape (g,)."""
        size = np.count_nonzero(self.is_member)
        is_other = self.axis is not None and not np.array_equal(self.axis, members)
        if members.shape[1] != size or is_other:
            return np.zeros(len(members), dtype=bool)
        own: BoolArray = np.all(self.is_member[members], axis=1)
        return own


def _free(cost: Cost, own: BoolArray, alone: Callable[[], Cost]) -> Cost:
    """The seconds of all with the group's own at 0, and the bytes of the group."""
    if not own.any():
        return replace(cost, traffic=cost.traffic.times(0.0))
    seconds = cost.seconds.copy()
    seconds[own] = 0.0
    return replace(cost, seconds=seconds, traffic=alone().traffic)
