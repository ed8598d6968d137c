"""What one operation of many groups takes: the seam between volumes and machine.

`StepModel` asks a network for the cost of rings, all-to-alls and messages between
ranks. `PlacedNetwork` answers for a placement; the time bound answers for the best
placement imaginable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from placer.cost.exchange import ExchangeCost, all_to_all_cost, send_cost
from placer.cost.rings import RingCost, build_rings, ring_cost

if TYPE_CHECKING:
    from placer.cost.fabric import Fabric

IntArray = npt.NDArray[np.int64]


class Network(Protocol):
    """Costs of operations between ranks; all groups of a call run at once."""

    def ring(self, members: IntArray, size_bytes: float) -> RingCost:
        """One reduce-scatter or all-gather in every row of ``members``."""

    def all_to_all(self, members: IntArray, size_bytes: float) -> ExchangeCost:
        """One all-to-all in every row of ``members``."""

    def send(
        self, senders: IntArray, receivers: IntArray, size_bytes: float
    ) -> ExchangeCost:
        """A message from each sender to its receiver."""


@dataclass(frozen=True, eq=False)
class PlacedNetwork:
    """The network as ranks on given GPUs see it.

    Attributes
    ----------
    fabric : Fabric
    gpu_of_rank : ndarray, shape (R,)
    """

    fabric: Fabric
    gpu_of_rank: IntArray

    def ring(self, members: IntArray, size_bytes: float) -> RingCost:
        """One reduce-scatter or all-gather in every row of ``members``."""
        rings = build_rings(self.fabric, self.gpu_of_rank[members])
        return ring_cost(self.fabric, rings, np.full(len(members), size_bytes))

    def all_to_all(self, members: IntArray, size_bytes: float) -> ExchangeCost:
        """One all-to-all in every row of ``members``."""
        return all_to_all_cost(self.fabric, self.gpu_of_rank[members], size_bytes)

    def send(
        self, senders: IntArray, receivers: IntArray, size_bytes: float
    ) -> ExchangeCost:
        """A message from each sender to its receiver."""
        at = self.gpu_of_rank
        return send_cost(self.fabric, at[senders], at[receivers], size_bytes)
