"""A placement: which GPU every rank runs on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray

if TYPE_CHECKING:
    from placer.topology.model import Topology


@dataclass(frozen=True, eq=False)
class Placement:
    """Rank -> GPU, as indices into one topology.

    Attributes
    ----------
    gpu_of_rank : ndarray, shape (R,)
        Global GPU index (``Topology.first_gpu_of_node`` numbering) of each rank.
    """

    gpu_of_rank: IntArray

    @classmethod
    def on_nodes(cls, topology: Topology, node_of_rank: IntArray) -> Placement:
        """The placement with each rank on the given node, its GPUs taken by rank."""
        by_node = np.argsort(node_of_rank, kind="stable")
        nodes = node_of_rank[by_node]
        position = np.arange(len(nodes)) - np.searchsorted(nodes, nodes)
        gpu_of_rank = np.empty(len(nodes), dtype=np.int64)
        gpu_of_rank[by_node] = topology.first_gpu_of_node[nodes] + position
        return cls(gpu_of_rank)

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return len(self.gpu_of_rank)

    def same_as(self, other: Placement) -> bool:
        """Whether both put every rank on the same GPU."""
        return bool(np.array_equal(self.gpu_of_rank, other.gpu_of_rank))
