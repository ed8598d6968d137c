"""The machine as arrays: tiers of nested domains over nodes and their GPUs.

Shapes: T tiers, N nodes, G GPUs. Tier 0 is the node, tier T-1 the whole cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.arrays import FloatArray, IntArray, by_appearance
from placer.html_table import html_table
from placer.topology.affinity import Affinity
from placer.topology.drawing import parts, tier_rows
from placer.topology.facts import kinds, node_rows
from placer.topology.gpu import Gpu
from placer.topology.links import Link, kept_links

if TYPE_CHECKING:
    import networkx as nx

    from placer.budget import Budget
    from placer.topology.build import Nodes


@dataclass(frozen=True)
class Tier:
    """One level of the machine's tree.

    Attributes
    ----------
    name : str
        Name of the level, for example ``rack``.
    bandwidth : float, B/s
        What one GPU sends, one way, to other GPUs of the same domain of this tier
        outside its own child domain.
    latency : float, s
        Latency of one hop whose lowest common tier is this one.
    scale_up : bool
        Whether GPUs talk over NVLink at this tier.
    oversubscription : float
        The uplink of a child carries ``its GPUs x bandwidth / oversubscription``.
    efficiency : float
        Share of the line rate that long messages reach, in (0, 1].
    distance : float
        Weight of a hop at this tier in the hop-cost objective.
    rails, apart : bool
        Whether GPU i of every node has a switch of its own at this tier, its rail;
        whether nothing joins its domains, so that the hosts of a job lie in one.
    """

    name: str
    bandwidth: float
    latency: float
    scale_up: bool
    oversubscription: float
    efficiency: float
    distance: float
    rails: bool = False
    apart: bool = False


@dataclass(frozen=True, eq=False)
class Islands:
    """The tiers inside a node: groups of its GPUs that talk faster than the others.

    Shapes: K tiers below the node, I islands of the innermost one in every node.

    Attributes
    ----------
    tiers : tuple of Tier, length K
        Innermost first.
    sizes : tuple of int, length K + 1
        GPUs of an innermost island, then how many islands of a tier the next one holds;
        the last counts the outermost islands of a node.
    gpus : ndarray, shape (N, I)
        Healthy GPUs of each innermost island of each node.
    members : tuple of int
        What a launcher calls the GPUs of a node that misses none, island by island.
    """

    tiers: tuple[Tier, ...]
    sizes: tuple[int, ...]
    gpus: IntArray
    members: tuple[int, ...]

    def of_nodes(self, nodes: IntArray) -> Islands:
        """Those of some nodes, in that order."""
        return replace(self, gpus=self.gpus[nodes])

    @property
    def groups(self) -> list[list[int]]:
        """What a launcher calls the GPUs of each island of a node that misses none."""
        size, members = self.sizes[0], [*self.members]
        return [members[i : i + size] for i in range(0, len(members), size)]

    @property
    def are_whole(self) -> bool:
        """Whether no GPU of any island is missing."""
        return bool((self.gpus == self.sizes[0]).all())


@dataclass(frozen=True, eq=False)
class Topology:
    """A machine, compiled: every node, its GPUs and its domain at each tier.

    Attributes
    ----------
    name : str
    tiers : tuple of Tier
        Innermost (the node) first, the whole cluster last.
    node_names : tuple of str, length N
        Usable nodes, in the order the input gives them.
    gpus_of_node : ndarray, shape (N,)
        Healthy GPUs of each node.
    bandwidth_factor : ndarray, shape (N,)
        Share of the nominal bandwidth a node reaches, in (0, 1].
    domain_of_node : ndarray, shape (T, N)
        Index of the node's domain at each tier; row 0 is ``arange(N)``.
    domain_names : tuple of tuple of str
        ``domain_names[t][d]`` is the name of domain ``d`` of tier ``t``.
    unavailable : mapping of str to str
        Nodes left out, with the reason.
    sources : tuple of str
        Where the figures come from.
    sha256 : str
        Digest of the machine's content (not of the file's layout).
    description : str
        One line for people.
    built : tuple of ndarray or None
        GPUs of every domain of each tier before any node was left out; None when none
        was.
    uplink_share : tuple of ndarray or None
        Share of the uplink of every domain of each tier that other jobs leave, in
        (0, 1]; None where there is none but this one.
    listed : Nodes or None
        Every node the machine lists, usable or not, whatever was left out since; None
        for a machine that was not built from a description.
    islands : Islands or None
        The tiers inside the node; None when all GPUs of a node talk alike.
    node_tier : int
        Index of the tier whose domains are hosts: 0, but in the view `by_island` of a
        machine with islands, whose nodes are the islands.
    gpu_index : ndarray, shape (G,), or None
        What a launcher calls each GPU on its node; None when it counts as we do.
    gpu : Gpu
        What one GPU holds and can do.
    affinity : Affinity
        What the GPUs of a node are near to; no placement depends on it.
    compute_factor : ndarray, shape (N,), or None
        Share of the usual speed at which the GPUs of each node work, in (0, 1]; None
        where all work alike.
    links : tuple of Link
        Between domains that are slower than their tier says.
    scheduler : str
        ``slurm`` or ``kubernetes``, who hands out its nodes; empty when not known.
    budgets : tuple of Budget
        What sets of hosts may run in all, across the tiers.
    """

    name: str
    tiers: tuple[Tier, ...]
    node_names: tuple[str, ...]
    gpus_of_node: IntArray
    bandwidth_factor: FloatArray
    domain_of_node: IntArray
    domain_names: tuple[tuple[str, ...], ...]
    unavailable: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    sha256: str = ""
    description: str = ""
    built: tuple[IntArray, ...] | None = None
    uplink_share: tuple[FloatArray, ...] | None = None
    listed: Nodes | None = None
    islands: Islands | None = None
    node_tier: int = 0
    gpu_index: IntArray | None = None
    gpu: Gpu = field(default_factory=Gpu)
    affinity: Affinity = field(default_factory=Affinity)
    compute_factor: FloatArray | None = None
    links: tuple[Link, ...] = ()
    scheduler: str = ""
    budgets: tuple[Budget, ...] = ()

    def __repr__(self) -> str:
        return f"<placer.Topology {self.name}: {parts(self)}>"

    def _repr_html_(self) -> str:
        return html_table(tier_rows(self), f"{self.name}: {parts(self)}")

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A plain mapping a usable node: its name, GPUs, factors and domains."""
        return node_rows(self)

    @property
    def num_nodes(self) -> int:
        """Number of usable nodes."""
        return len(self.node_names)

    @property
    def host_names(self) -> tuple[str, ...]:
        """Names of the hosts: the nodes, or in the view by island what holds them."""
        if self.node_tier:
            return self.domain_names[self.node_tier]
        return self.node_names

    @property
    def host_of_node(self) -> IntArray:
        """Host of each node, another one only where nodes are islands; shape (N,)."""
        hosts: IntArray = self.domain_of_node[self.node_tier]
        return hosts

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
        return kinds(self)

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

    def gpus_on(self, node_of_rank: IntArray) -> IntArray:
        """GPU of every rank, those of a node taken by rank; shape (R,)."""
        by_node = np.argsort(node_of_rank, kind="stable")
        nodes = node_of_rank[by_node]
        position = np.arange(len(nodes)) - np.searchsorted(nodes, nodes)
        gpu_of_rank = np.empty(len(nodes), dtype=np.int64)
        gpu_of_rank[by_node] = self.first_gpu_of_node[nodes] + position
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

    def gpu_at(self, node: IntArray, index: IntArray) -> IntArray:
        """Global index of the GPU that a launcher calls ``index`` on its ``node``."""
        first = self.first_gpu_of_node[node]
        if self.gpu_index is None:
            return first + index
        of_node = self.first_gpu_of_node[self.node_of_gpu]
        gpu = np.empty(self.num_gpus, dtype=np.int64)
        gpu[of_node + self.index_of_gpu] = np.arange(self.num_gpus)
        found: IntArray = gpu[first + index]
        return found

    @cached_property
    def domain_of_gpu(self) -> IntArray:
        """Domain of each GPU at each tier; shape (T, G)."""
        return self.domain_of_node[:, self.node_of_gpu]

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

    def to_networkx(self, *, gpus: bool = False) -> nx.DiGraph:
        """The machine's tree as a directed graph, from the whole cluster down.

        A domain is the vertex ``(tier, name)``, such as ``("rack", "r01")``, with
        ``tier``, ``size`` (usable GPUs), ``scale_up``, and, as in `Tier`, ``bandwidth``
        (B/s) and ``latency`` (s). The ``bandwidth`` of an edge is the uplink of its
        lower end, B/s one way, nominal.

        Parameters
        ----------
        gpus : bool
            GPU k of a node is the vertex ``("gpu", node, k)`` below it.
        """
        from placer.topology.graph import machine_tree

        return machine_tree(self, gpus=gpus)

    def select(self, nodes: IntArray) -> Topology:
        """The same machine with only ``nodes`` (indices), in that order.

        The digest stays that of the whole machine: an allocation is not another
        machine.
        """
        domain_of_node = np.empty((len(self.tiers), len(nodes)), dtype=np.int64)
        names: list[tuple[str, ...]] = []
        built, shares = [], []
        for t, row in enumerate(self.domain_of_node[:, nodes]):
            kept, domain_of_node[t] = by_appearance(row)
            names.append(tuple(self.domain_names[t][d] for d in kept))
            built.append(self.gpus_of_domain(t)[kept])
            if self.uplink_share is not None:
                shares.append(self.uplink_share[t][kept])
        return replace(
            self,
            node_names=tuple(self.node_names[n] for n in nodes),
            gpus_of_node=self.gpus_of_node[nodes],
            bandwidth_factor=self.bandwidth_factor[nodes],
            compute_factor=self._compute_factor_on(nodes),
            links=kept_links(self.links, [tier.name for tier in self.tiers], names),
            domain_of_node=domain_of_node,
            domain_names=tuple(names),
            built=tuple(built),
            uplink_share=tuple(shares) if shares else None,
            islands=self.islands.of_nodes(nodes) if self.islands else None,
            gpu_index=self._gpu_index_on(nodes),
        )

    def _compute_factor_on(self, nodes: IntArray) -> FloatArray | None:
        return None if self.compute_factor is None else self.compute_factor[nodes]

    def _gpu_index_on(self, nodes: IntArray) -> IntArray | None:
        return None if self.gpu_index is None else self.gpu_index[self.gpus_of(nodes)]

    @cached_property
    def by_island(self) -> Topology:
        """The machine with its innermost domains as nodes: what cost and search see.

        The machine itself where nodes have no islands. Elsewhere every island is a node
        of the view, called ``node/0``, ``node/1`` ..., and its tiers begin inside the
        node. GPUs keep their global index.
        """
        if self.islands is None:
            return self
        from placer.topology.islands import seen_by_island

        return seen_by_island(self, self.islands)
