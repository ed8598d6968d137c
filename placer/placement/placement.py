"""A placement: which GPU every rank runs on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placer.base.arrays import IntArray
from placer.topology.machine import Machine


@dataclass(frozen=True, eq=False)
class Placement:
    """Rank -> GPU, as indices into one topology."""

    # (R,): global GPU index (``Domains.first_gpu_of_node`` numbering) of each rank.
    gpu_of_rank: IntArray

    @classmethod
    def on_nodes(cls, topology: Machine, node_of_rank: IntArray) -> Placement:
        """The placement with each rank on the given node, its GPUs taken by rank."""
        return cls(topology.gpus_on(node_of_rank))

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return len(self.gpu_of_rank)

    def same_as(self, other: Placement) -> bool:
        """Whether both put every rank on the same GPU."""
        return bool(np.array_equal(self.gpu_of_rank, other.gpu_of_rank))
