"""The machine as users know it: hosts, the tiers around them and those inside.

Shapes: T tiers, N nodes, G GPUs. Tier 0 is the node, tier T-1 the whole cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.assumed import Assumption
from placer.base.arrays import IntArray
from placer.base.budget import HostBudget
from placer.base.loading import Shown, load
from placer.documents.keys import (
    BANDWIDTH,
    BOOLEAN,
    TIME,
    Key,
    integer,
    key,
    list_of,
    matching,
    number,
    special,
)
from placer.topology.affinity import Affinity
from placer.topology.islands import Islands, seen_by_island
from placer.topology.kubernetes import Kubernetes
from placer.topology.machine import Domains, Machine

if TYPE_CHECKING:
    import networkx as nx

    from placer.topology.build import Nodes


TIER_NAME = r"[A-Za-z][A-Za-z0-9_-]{0,62}"
SMALLEST = 1e-6
MAX_GPUS_OF_NODE = 1024


def _members_schema() -> dict[str, Any]:
    return list_of(list_of(integer(0, MAX_GPUS_OF_NODE - 1))).schema()


@dataclass(frozen=True)
class Tier:
    """One level of the machine's tree, for example a rack."""

    name: str = key(matching(TIER_NAME), "name of the level")
    size = Key(
        integer(1, MAX_GPUS_OF_NODE),
        "GPUs in a node; with islands, what each tier up to the node is made of",
        absent="required up to the node",
    )
    members = Key(
        special(_members_schema),
        "which GPUs of a node form each island; first tier only",
        absent="in order",
    )
    bandwidth: float = key(
        BANDWIDTH,
        "what one GPU can send to GPUs of the same domain of this tier outside its own "
        "child domain, one way",
    )
    latency: float = key(TIME, "of one hop whose lowest common tier is this one", 0.0)
    scale_up: bool = key(
        BOOLEAN, "whether this tier is NVLink; such tiers are the innermost ones", False
    )
    oversubscription: float = key(
        number(SMALLEST),
        "the uplink of a child domain into this tier carries GPUs of the child x "
        "bandwidth / oversubscription",
        1.0,
    )
    efficiency: float = key(
        number(SMALLEST, 1.0), "share of the line rate that long messages reach", 1.0
    )
    distance: float = key(
        number(),
        "weight of a hop at this tier for hop cost",
        1.0,
        absent="innermost bandwidth / this bandwidth",
    )
    rails: bool = key(
        BOOLEAN,
        "whether GPU 0 of every node has a switch of its own at this tier, GPU 1 "
        "the next, and so on",
        False,
        unsaid=True,
    )
    apart: bool = key(
        BOOLEAN,
        "whether nothing joins the domains of this tier, as trees of Slurm that no "
        "switch joins: the hosts of a job lie in one of them",
        False,
        unsaid=True,
    )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Topology(Shown, Domains):
    """A machine whose nodes are hosts, as it is described, with what else is known.

    Attributes
    ----------
    sources : tuple of str
        Where the figures come from.
    sha256 : str
        Digest of the machine's content (not of the file's layout).
    description : str
        One line for people.
    listed : Nodes or None
        Every node the machine lists, usable or not, whatever was left out since; None
        for a machine that was not built from a description.
    islands : Islands or None
        The tiers inside the node; None when all GPUs of a node talk alike.
    affinity : Affinity
        What the GPUs of a node are near to; no placement depends on it.
    scheduler : str
        ``slurm`` or ``kubernetes``, who hands out its nodes; empty when not known.
    kubernetes : Kubernetes
        What pods must say on its nodes; no placement depends on it.
    budgets : tuple of HostBudget
        What sets of hosts may run in all, across the tiers.
    assumed : tuple of Assumption
        What no source says of it.
    """

    sources: tuple[str, ...] = ()
    sha256: str = ""
    description: str = ""
    listed: Nodes | None = None
    islands: Islands | None = None
    affinity: Affinity = field(default_factory=Affinity)
    scheduler: str = ""
    kubernetes: Kubernetes = field(default_factory=Kubernetes)
    budgets: tuple[HostBudget, ...] = ()
    assumed: tuple[Assumption, ...] = ()

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A plain mapping a usable node: its name, GPUs, factors and domains."""
        domains = {
            tier.name: [self.domain_names[t][d] for d in self.domain_of_node[t]]
            for t, tier in enumerate(self.tiers)
            if t > 0
        }
        return [
            {
                "node": name,
                "gpus": int(self.gpus_of_node[n]),
                "bandwidth_factor": float(self.bandwidth_factor[n]),
                "compute_factor": float(self.speed_of_node[n]),
                **{tier: names[n] for tier, names in domains.items()},
            }
            for n, name in enumerate(self.node_names)
        ]

    @property
    def node_names(self) -> tuple[str, ...]:
        """Usable nodes, in the order the input gives them; length N."""
        return self.domain_names[0]

    def _of_nodes(self, nodes: IntArray) -> dict[str, Any]:
        return super()._of_nodes(nodes) | {
            "islands": self.islands.of_nodes(nodes) if self.islands else None
        }

    @property
    def gpus_by_island(self) -> IntArray:
        """Healthy GPUs of each node, island by island; shape (N, islands of a node)."""
        if self.islands is None:
            return self.gpus_of_node[:, None]
        return self.islands.gpus

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
        tree: nx.DiGraph = load("placer.report.graphs").machine_tree(self, gpus)
        return tree

    @cached_property
    def by_island(self) -> Machine:
        """The machine with its innermost domains as nodes: what cost and search see."""
        return seen_by_island(self)
