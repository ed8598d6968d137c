"""Hop cost: the sum over the job's edges of weight x distance between the two GPUs.

This is the objective of process-mapping papers (sparse quadratic assignment on a tree
of distances; Schulz and Traeff 2017, "Better process mapping and sparse quadratic
assignment"). Shapes: R ranks, E edges, T tiers, G GPUs.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.arrays import FloatArray, IntArray
from placer.job.edges import hop_edges

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.placement import Placement
    from placer.topology.machine import Domains


class Neighbours(NamedTuple):
    """Adjacency in compressed rows: the edges of rank r are start[r]:start[r+1].

    Attributes
    ----------
    start : ndarray, shape (R+1,)
    rank : ndarray, shape (2E,)
        The other end of each edge.
    weight : ndarray, shape (2E,)
    """

    start: IntArray
    rank: IntArray
    weight: FloatArray


def hop_cost(topology: Domains, job: Job, placement: Placement) -> float:
    """Sum over the job's edges of weight x distance of the tier of the two GPUs."""
    return HopCost(topology, job).cost(placement.gpu_of_rank)


class HopCost:
    """The hop cost of one job on one machine, whole or as the exact effect of a change.

    Parameters
    ----------
    topology : Topology or Machine
    job : Job
    """

    def __init__(self, topology: Domains, job: Job) -> None:
        self.axes = hop_edges(job)
        self._topology = topology.by_island
        tiers = self._topology.tiers
        self.distance: FloatArray = np.array([tier.distance for tier in tiers])
        # The last tier holds every GPU, so it never separates two of them.
        self._domain_of_gpu = np.ascontiguousarray(self._topology.domain_of_gpu[:-1])
        self._world_size = job.world_size

    def crossings(self, gpu_of_rank: IntArray) -> dict[str, IntArray]:
        """Edges of each axis by the tier of their GPUs: axis -> counts, shape (T,)."""
        domain_of_rank = self._domain_of_gpu[:, gpu_of_rank]
        counts = {}
        for axis, _, edges in self.axes:
            tier = np.zeros(len(edges), dtype=np.int64)
            for domain in domain_of_rank:
                ends = domain[edges]
                tier += ends[:, 0] != ends[:, 1]
            counts[axis] = np.bincount(tier, minlength=len(self.distance))
        return counts

    def cost(self, gpu_of_rank: IntArray) -> float:
        """Hop cost of a placement given as GPU of each rank, shape (R,)."""
        counts = self.crossings(gpu_of_rank)
        return float(
            sum(a.weight * (counts[a.axis] @ self.distance) for a in self.axes)
        )

    def move_delta(self, gpu_of_rank: IntArray, rank: int, gpu: int) -> float:
        """Change of the cost when ``rank`` moves to the free GPU ``gpu``."""
        return self._change(gpu_of_rank, rank, gpu, rank)

    def swap_delta(self, gpu_of_rank: IntArray, first: int, second: int) -> float:
        """Change of the cost when two ranks exchange their GPUs."""
        gpu_first, gpu_second = int(gpu_of_rank[first]), int(gpu_of_rank[second])
        # An edge between the two keeps its length.
        return self._change(gpu_of_rank, first, gpu_second, second) + self._change(
            gpu_of_rank, second, gpu_first, first
        )

    def _change(
        self, gpu_of_rank: IntArray, rank: int, gpu: int, partner: int
    ) -> float:
        """Change of a rank's edges when it goes to ``gpu``, that to ``partner`` aside.

        A rank has a few edges, and plain numbers outrun arrays of a few entries.
        """
        neighbours = self.neighbours
        span = slice(neighbours.start[rank], neighbours.start[rank + 1])
        others = neighbours.rank[span]
        path, distance = self._path_of_gpu, self._distance_of_bits
        old, new = int(path[gpu_of_rank[rank]]), int(path[gpu])
        delta = 0.0
        for other, at, weight in zip(
            others.tolist(),
            path[gpu_of_rank[others]].tolist(),
            neighbours.weight[span].tolist(),
            strict=True,
        ):
            if other != partner:
                delta += weight * (
                    distance[(at ^ new).bit_length()]
                    - distance[(at ^ old).bit_length()]
                )
        return delta

    @cached_property
    def _path_of_gpu(self) -> npt.NDArray[Any]:
        """Each GPU's domains of all tiers as one number, outermost in the top bits.

        The highest bit in which two paths differ tells their lowest common tier.
        """
        domains = self._topology.domain_of_node[:-1]
        # Many large tiers need more than 64 bits: Python's integers then.
        number = np.int64 if sum(self._path_bits) < 63 else np.object_
        path: npt.NDArray[Any] = np.zeros(domains.shape[1], dtype=number)
        for row, bits in zip(domains[::-1], self._path_bits[::-1], strict=True):
            path = (path << bits) | row.astype(number)
        return path[self._topology.node_of_gpu]

    @cached_property
    def _path_bits(self) -> list[int]:
        """Bits that the domains of each tier take in a path, innermost first."""
        domains = self._topology.domain_of_node[:-1]
        return [int(row.max()).bit_length() for row in domains]

    @cached_property
    def _distance_of_bits(self) -> list[float]:
        """Distance of two GPUs by the bit length of their paths' difference."""
        tiers = np.arange(1, len(self.distance))
        tier_of_bits = np.concatenate(([0], np.repeat(tiers, self._path_bits)))
        distances: list[float] = self.distance[tier_of_bits].tolist()
        return distances

    @cached_property
    def neighbours(self) -> Neighbours:
        """Who every rank has an edge with; only changes ask for it."""
        edges = np.concatenate(
            [a.edges for a in self.axes] or [np.empty((0, 2), np.int64)]
        )
        weight = np.repeat(
            [a.weight for a in self.axes], [len(a.edges) for a in self.axes]
        )
        source = edges.T.ravel()
        by_source = np.argsort(source, kind="stable")
        degree = np.bincount(source, minlength=self._world_size)
        return Neighbours(
            np.concatenate(([0], np.cumsum(degree))),
            edges[:, ::-1].T.ravel()[by_source],
            np.tile(weight, 2)[by_source],
        )
