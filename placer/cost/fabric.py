"""The machine as the cost model sees it: rates, latencies and shared uplinks by tier.

Shapes: T tiers, G GPUs. A hop at tier ``t`` leaves the child domain of every tier
between the scale-up domain and ``t``; the uplink of each such child is a shared
resource.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.links import LinkLoad, PairLinks, weighted_counts
from placer.topology.machine import Domains, Machine

# A node whose GPUs share one NVLink switch holds eight (HGX, DGX); more are a rack.
NODE_GPUS = 8
# Uplinks are as wide as NICs where nothing but the last digits differs.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Fabric:
    """Rates and domains, ready for array arithmetic."""

    topology: Machine
    # (T,), B/s: what one GPU reaches at each tier: line rate times efficiency.
    bandwidth: FloatArray
    latency: FloatArray  # (T,), s
    scale_up_tier: int  # largest NVLink tier, -1 when there is none
    # (T,), s: what a hop to another rail of a tier takes besides: it goes over NVLink
    # to the GPU that is on the rail first (PXN in NCCL); 0 on tiers without rails.
    detour: FloatArray
    # Links between named child domains, of the tiers that have some.
    links: Mapping[int, PairLinks] = field(default_factory=dict)

    @classmethod
    def of(cls, topology: Domains) -> Fabric:
        """The fabric of a machine, from its innermost domains outwards."""
        machine = topology.by_island
        tiers = machine.tiers
        return cls(
            machine,
            np.array([tier.bandwidth * tier.efficiency for tier in tiers]),
            np.array([tier.latency for tier in tiers]),
            machine.scale_up_tier,
            np.array([tiers[0].latency if tier.rails else 0.0 for tier in tiers]),
            PairLinks.by_tier(machine),
        )

    def with_free_scale_out(self) -> Fabric:
        """The machine with free scale-out links (infinite rate, no latency)."""
        outer = np.arange(len(self.bandwidth)) > self.scale_up_tier
        return replace(
            self,
            bandwidth=np.where(outer, np.inf, self.bandwidth),
            latency=np.where(outer, 0.0, self.latency),
            detour=np.zeros_like(self.detour),
            links={},
        )

    @cached_property
    def has_rails(self) -> bool:
        """Whether hops between rails of some tier take a detour."""
        return bool(self.detour.any())

    @cached_property
    def rail_of_gpu(self) -> IntArray:
        """Rail of each GPU: its index on its node; shape (G,)."""
        return self.topology.index_of_gpu

    def hop_latency(
        self, sources: IntArray, targets: IntArray, tiers: IntArray
    ) -> FloatArray:
        """Latency of hops between GPUs at their tiers, elementwise, s."""
        latency: FloatArray = self.latency[tiers]
        if self.has_rails:
            leaves = self.rail_of_gpu[sources] != self.rail_of_gpu[targets]
            latency = latency + self.detour[tiers] * leaves
        return latency + self.link_latency(sources, targets)

    def least_message_s(self, tier: int, size_bytes: float) -> float:
        """Least seconds of a message over one of the tiers from ``tier`` on."""
        return float((size_bytes / self.bandwidth + self.latency)[tier:].min())

    def link_of(self, t: int, sources: IntArray, targets: IntArray) -> IntArray:
        """Link of tier ``t`` between GPUs, elementwise; -1 where there is none."""
        child = self.child_domain_of_gpu(t)
        return self.links[t].find(child[sources], child[targets])

    def link_latency(self, sources: IntArray, targets: IntArray) -> FloatArray:
        """What links make hops between GPUs take longer, elementwise, s."""
        latency = np.zeros(np.broadcast(sources, targets).shape)
        for t, links in self.links.items():
            link = self.link_of(t, sources, targets)
            latency += np.where(link >= 0, links.more_latency[link], 0.0)
        return latency

    # What copies of a machine side by side (`Copies`) do for each of them by itself.

    def copy_of_rows(self, gpus: IntArray) -> IntArray:
        """Copy that each row of GPUs is on, of which there is one; shape (g,)."""
        return np.zeros(len(gpus), dtype=np.int64)

    def per_row(self, sizes: float | FloatArray, gpus: IntArray) -> float | FloatArray:  # noqa: ARG002
        """The size of its copy, for each row of GPUs."""
        return sizes

    def by_tier(
        self,
        tiers: IntArray,
        weights: FloatArray,
        gpus: IntArray,  # noqa: ARG002
    ) -> FloatArray:
        """Sum of the weights of each tier; shape (T,)."""
        return weighted_counts(tiers, weights, self.num_tiers)

    def total(self, values: FloatArray, gpus: IntArray) -> FloatArray:  # noqa: ARG002
        """Sum of the values of all GPUs, (..., g, n); shape (...)."""
        return np.asarray(values.sum(axis=(-2, -1)))

    def scaled(self, load: LinkLoad, factor: float | FloatArray) -> LinkLoad:
        """The load of ``factor`` such rounds."""
        return load.times(factor)

    @property
    def num_tiers(self) -> int:
        """Number of tiers."""
        return len(self.bandwidth)

    @cached_property
    def has_rack_switch(self) -> bool:
        """Whether an NVLink switch joins more GPUs than the eight of a node."""
        if self.scale_up_tier < 0:
            return False
        return bool(self.topology.gpus_of_domain(self.scale_up_tier).max() > NODE_GPUS)

    @property
    def scale_out_tiers(self) -> range:
        """Indices of the tiers above NVLink."""
        return range(self.scale_up_tier + 1, self.num_tiers)

    @property
    def thin_tiers(self) -> list[int]:
        """Those that several uplinks lead to, which carry less than what sends."""
        return [
            t
            for t in self.scale_out_tiers
            if t > 0
            and self.topology.tiers[t].oversubscription > 1
            and len(self.uplink_capacity[t]) > 1
        ]

    @property
    def can_leave_scale_up(self) -> bool:
        """Whether GPUs have scale-up domains, and there is something outside these."""
        return self.scale_up_tier >= 0 and self.has_network

    @property
    def has_network(self) -> bool:
        """Whether anything is outside scale-up domains, or outside single GPUs."""
        return self.scale_up_tier < self.num_tiers - 1

    @cached_property
    def domain_of_gpu(self) -> IntArray:
        """Domain of each GPU at each tier; shape (T, G)."""
        return self.topology.domain_of_gpu

    @cached_property
    def factor_of_gpu(self) -> FloatArray:
        """Share of the nominal bandwidth each GPU reaches; shape (G,)."""
        return self.topology.bandwidth_factor[self.topology.node_of_gpu]

    @cached_property
    def speed_of_gpu(self) -> FloatArray | None:
        """Share of the usual speed of each GPU; shape (G,). None: all work alike."""
        factor = self.topology.compute_factor
        return None if factor is None else factor[self.topology.node_of_gpu]

    @cached_property
    def scale_up_domain_of_gpu(self) -> IntArray:
        """Scale-up domain of each GPU, the GPU itself without any; shape (G,)."""
        return self.child_domain_of_gpu(self.scale_up_tier + 1)

    def child_domain_of_gpu(self, tier: int) -> IntArray:
        """Child domain of ``tier`` that holds each GPU; shape (G,)."""
        if tier == 0:
            return np.arange(self.domain_of_gpu.shape[1])
        domain: IntArray = self.domain_of_gpu[tier - 1]
        return domain

    @cached_property
    def uplink_capacity(self) -> Sequence[FloatArray]:
        """Bytes a second of each child's uplink into a tier, one array a tier.

        ``GPUs of the child x bandwidth / oversubscription``, those of nodes that are
        left out among them, less what other jobs use.
        """
        capacities = []
        for t, tier in enumerate(self.topology.tiers):
            gpus = (
                self.topology.uplinks(t - 1)
                if t > 0
                else np.ones(self.topology.num_gpus)
            )
            capacities.append(gpus * self.bandwidth[t] / tier.oversubscription)
        return capacities

    @cached_property
    def shared_uplinks(self) -> Mapping[int, FloatArray]:
        """Capacity of each child's uplink into the tiers where flows share some.

        One as wide as all NICs below it holds nobody back, whatever each of them sends,
        and counts as endless; tiers that have such alone are left out.
        """
        found = {}
        for t in self.scale_out_tiers:
            capacity = self.uplink_capacity[t]
            gpus = np.bincount(self.child_domain_of_gpu(t), minlength=len(capacity))
            nics = gpus * self.bandwidth[t:].max()
            is_narrow = capacity < nics * (1 - ROUNDING)
            if is_narrow.any():
                found[t] = np.where(is_narrow, capacity, np.inf)
        return found

    def tier_between(self, gpus: IntArray, others: IntArray) -> IntArray:
        """Lowest tier whose domain holds both GPUs, elementwise.

        Domains are nested, so it is the number of tiers at which the two differ.
        """
        tier = np.zeros(np.broadcast(gpus, others).shape, dtype=np.int64)
        for row in self.domain_of_gpu[:-1]:
            apart = row[gpus] != row[others]
            if not apart.any():  # nor at any tier further out
                break
            tier += apart
        return tier

    def common_tier(self, gpus: IntArray) -> IntArray:
        """Lowest tier whose domain holds all GPUs of each row; shape (groups,)."""
        return np.asarray(self.tier_between(gpus[:, :1], gpus).max(axis=1))
