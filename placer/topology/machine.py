"""A machine's tree as arrays: tiers of domains nested over its nodes.

There are two sorts, whose numbers of nodes and tiers differ where hosts have islands:
a `placer.Topology`, whose nodes are hosts, and a `Machine`, whose nodes are its
innermost domains. Either sort is refused where the other is asked for.

Shapes: T tiers, N nodes, G GPUs. Tier 0 is the node, tier T-1 the whole cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from placer.base.arrays import FloatArray, IntArray, by_appearance
from placer.topology.gpu_kinds import Gpu
from placer.topology.links import Link, kept_links

if TYPE_CHECKING:
    from placer.topology.model import Tier


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Domains:
    """What both sorts of machine have: every node, its GPUs and domain at each tier.

    Attributes
    ----------
    name : str
    tiers : tuple of Tier
        Innermost (the node) first, the whole cluster last.
    gpus_of_node : ndarray, shape (N,)
        Healthy GPUs of each node.
    bandwidth_factor : ndarray, shape (N,)
        Share of the nominal bandwidth a node reaches, in (0, 1].
    domain_of_node : ndarray, shape (T, N)
        Index of the node's domain at each tier; row 0 is ``arange(N)``.
    domain_names : tuple of tuple of str
        ``domain_names[t][d]`` is the name of domain ``d`` of tier ``t``.
    unavailable : mapping of str to str
        Hosts left out, with the reason.
    built : tuple of ndarray or None
        GPUs of every domain of each tier before any node was left out; None when none
        was.
    uplink_share : tuple of ndarray or None
        Share of the uplink of every domain of each tier that other jobs leave, in
        (0, 1]; None where there is none but this one.
    node_tier : int
        Index of the tier whose domains are hosts: 0, but where nodes are islands.
    gpu_index : ndarray, shape (G,), or None
        What a launcher calls each GPU on its host; None when it counts as we do.
    gpu : Gpu
        What one GPU holds and can do.
    compute_factor : ndarray, shape (N,), or None
        Share of the usual speed at which the GPUs of each node work, in (0, 1]; None
        where all work alike.
    links : tuple of Link
        Between domains that are slower than their tier says.
    """

    name: str
    tiers: tuple[Tier, ...]
    gpus_of_node: IntArray
    bandwidth_factor: FloatArray
    domain_of_node: IntArray
    domain_names: tuple[tuple[str, ...], ...]
    unavailable: Mapping[str, str] = field(default_factory=dict)
    built: tuple[IntArray, ...] | None = None
    uplink_share: tuple[FloatArray, ...] | None = None
    node_tier: int = 0
    gpu_index: IntArray | None = None
    gpu: Gpu = field(default_factory=Gpu)
    compute_factor: FloatArray | None = None
    links: tuple[Link, ...] = ()

    @property
    def by_island(self) -> Machine:
        """The machine with its innermost domains as nodes: what cost and search see."""
        raise NotImplementedError

    @property
    def num_nodes(self) -> int:
        """Number of usable nodes."""
        return len(self.gpus_of_node)

    @property
    def host_names(self) -> tuple[str, ...]:
        """Names of the hosts: the nodes, or what holds them where they are islands."""
        return self.domain_names[self.node_tier]

    @property
    def host_of_node(self) -> IntArray:
        """Host of each node, another one only where nodes are islands; shape (N,)."""
        hosts: IntArray = self.domain_of_node[self.node_tier]
        return hosts

    def domain_of_host(self, tier: int) -> IntArray:
        """Domain of each host at its own tier or one around it; shape (hosts,)."""
        first = np.unique(self.host_of_node, return_index=True)[1]
        found: IntArray = self.domain_of_node[tier, first]
        return found

    @property
    def host_of_gpu(self) -> IntArray:
        """Host of each GPU; shape (G,)."""
        return self.host_of_node[self.node_of_gpu]

    @property
    def speed_of_node(self) -> FloatArray:
        """Share of the usual speed at which each node's GPUs work; shape (N,)."""
        if self.compute_factor is None:
            return np.ones(self.num_nodes)
        return self.compute_factor

    @cached_property
    def kind_of_node(self) -> IntArray:
        """Number of each node's kind; shape (N,).

        Nodes of a kind are as fast, and in the same domains that links name. Their GPUs
        may differ in number.
        """
        facts = [self.bandwidth_factor, self.speed_of_node]
        links = self.links
        for name in dict.fromkeys(link.tier for link in links):
            t = self.tier_index(name)
            linked = {
                end for link in links if link.tier == name for end in link.between
            }
            is_linked = np.array([end in linked for end in self.domain_names[t]])
            row = self.domain_of_node[t]
            facts.append(np.where(is_linked[row], row, -1))
        kind = np.zeros(self.num_nodes, dtype=np.int64)
        for fact in facts:
            number = np.unique(fact, return_inverse=True)[1]
            both = kind * (int(number.max()) + 1) + number
            kind = np.unique(both, return_inverse=True)[1]
        return kind

    @property
    def num_gpus(self) -> int:
        """Number of usable GPUs."""
        return int(self.gpus_of_node.sum())

    @cached_property
    def first_gpu_of_node(self) -> IntArray:
        """Global index of each node's GPU 0, the GPU count at the end; shape (N+1,)."""
        return np.concatenate(([0], np.cumsum(self.gpus_of_node)))

    @cached_property
    def node_of_gpu(self) -> IntArray:
        """Node of each global GPU index; shape (G,)."""
        return np.repeat(np.arange(self.num_nodes), self.gpus_of_node)

    def gpus_of(self, nodes: IntArray) -> IntArray:
        """Global indices of the GPUs of some nodes, node after node."""
        counts = self.gpus_of_node[nodes]
        before = np.cumsum(counts) - counts
        start = np.repeat(self.first_gpu_of_node[nodes] - before, counts)
        gpus: IntArray = start + np.arange(len(start))
        return gpus

    def gpus_on(self, node_of_rank: IntArray, kept: IntArray | None = None) -> IntArray:
        """GPU of every rank, those that are free on a node taken by rank; shape (R,).

        ``kept`` ((R,)): GPUs that ranks keep, -1 for none.
        """
        if kept is None:
            kept = np.full(len(node_of_rank), -1)
        free = np.ones(self.num_gpus, dtype=bool)
        free[kept[kept >= 0]] = False
        left, gpu_of_rank = np.flatnonzero(free), kept.copy()
        newcomers = np.flatnonzero(kept < 0)
        newcomers = newcomers[np.argsort(node_of_rank[newcomers], kind="stable")]
        nodes = node_of_rank[newcomers]
        position = np.arange(len(nodes)) - np.searchsorted(nodes, nodes)
        first = np.append(0, np.cumsum(free))[self.first_gpu_of_node[nodes]]
        gpu_of_rank[newcomers] = left[first + position]
        return gpu_of_rank

    @cached_property
    def index_of_gpu(self) -> IntArray:
        """What a launcher calls each GPU on its node, 0 for the first; shape (G,).

        GPUs with neighbouring global indices are of one island where they can be, which
        need not be how a launcher counts them.
        """
        if self.gpu_index is not None:
            return self.gpu_index
        first: IntArray = self.first_gpu_of_node[self.node_of_gpu]
        return np.arange(self.num_gpus) - first

    @cached_property
    def domain_of_gpu(self) -> IntArray:
        """Domain of each GPU at each tier; shape (T, G)."""
        return self.domain_of_node[:, self.node_of_gpu]

    @cached_property
    def domain_around(self) -> list[IntArray]:
        """Domain of the next tier out that holds each domain of a tier, by tier."""
        found = []
        for inner, outer in pairwise(self.domain_of_node):
            around = np.empty(int(inner.max()) + 1, dtype=np.int64)
            around[inner] = outer
            found.append(around)
        return found

    @cached_property
    def scale_up_tier(self) -> int:
        """Index of the largest tier whose GPUs talk over NVLink; -1 without one."""
        count = 0
        while count < len(self.tiers) and self.tiers[count].scale_up:
            count += 1
        return count - 1

    def gpus_of_domain(self, tier: int) -> IntArray:
        """GPUs that every domain of a tier was built with; shape (domains,).

        Those of nodes left out count: uplinks do not shrink with them.
        """
        if self.built is not None:
            return self.built[tier]
        counts = np.bincount(self.domain_of_node[tier], self.gpus_of_node)
        return counts.astype(np.int64)

    def uplinks(self, tier: int) -> FloatArray:
        """Size of the uplink of every domain of a tier, in GPUs; shape (domains,).

        All GPUs that it was built with, less what other jobs use of it.
        """
        gpus = self.gpus_of_domain(tier).astype(np.float64)
        return gpus if self.uplink_share is None else gpus * self.uplink_share[tier]

    def tier_index(self, name: str) -> int:
        """Index of the tier called ``name``.

        Raises
        ------
        KeyError
            If there is no such tier.
        """
        return {tier.name: t for t, tier in enumerate(self.tiers)}[name]

    def select(self, nodes: IntArray) -> Self:
        """The machine with only ``nodes`` (indices), in that order.

        The digest stays that of the whole machine: an allocation is not another
        machine.
        """
        return replace(self, **self._of_nodes(nodes))

    def _of_nodes(self, nodes: IntArray) -> dict[str, Any]:
        """What is different of a machine with only these nodes."""
        domain_of_node = np.empty((len(self.tiers), len(nodes)), dtype=np.int64)
        names: list[tuple[str, ...]] = []
        built, shares = [], []
        speed, index = self.compute_factor, self.gpu_index
        for t, row in enumerate(self.domain_of_node[:, nodes]):
            kept, domain_of_node[t] = by_appearance(row)
            names.append(tuple(self.domain_names[t][d] for d in kept))
            built.append(self.gpus_of_domain(t)[kept])
            if self.uplink_share is not None:
                shares.append(self.uplink_share[t][kept])
        return {
            "gpus_of_node": self.gpus_of_node[nodes],
            "bandwidth_factor": self.bandwidth_factor[nodes],
            "compute_factor": None if speed is None else speed[nodes],
            "links": kept_links(self.links, [tier.name for tier in self.tiers], names),
            "domain_of_node": domain_of_node,
            "domain_names": tuple(names),
            "built": tuple(built),
            "uplink_share": tuple(shares) if shares else None,
            "gpu_index": None if index is None else index[self.gpus_of(nodes)],
        }


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Machine(Domains):
    """A machine as cost and search see it: its nodes are its innermost domains.

    Where hosts have islands these are the nodes, called ``host/0``, ``host/1`` ..., and
    tiers begin inside the host. Elsewhere hosts are. GPUs are numbered as by host.
    """

    @property
    def by_island(self) -> Machine:
        """The machine itself."""
        return self
