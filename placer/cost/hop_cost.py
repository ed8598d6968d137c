"""Hop cost: the sum over the job's edges of weight x distance between the two GPUs.

This is the objective of process-mapping papers (sparse quadratic assignment on a tree
of distances; Schulz and Traeff 2017, "Better process mapping and sparse quadratic
assignment"). Shapes: R ranks, E edges, T tiers, G GPUs.
"""

from __future__ import annotations

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.job.edges import hop_edges
from placer.job.model import Job
from placer.topology.machine import Domains


class HopCost:
    """The hop cost of one job on one machine."""

    def __init__(self, topology: Domains, job: Job) -> None:
        self.axes = hop_edges(job)
        self._topology = topology.by_island
        tiers = self._topology.tiers
        self.distance: FloatArray = np.array([tier.distance for tier in tiers])
        # The last tier holds every GPU, so it never separates two of them.
        self._domain_of_gpu = np.ascontiguousarray(self._topology.domain_of_gpu[:-1])

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
