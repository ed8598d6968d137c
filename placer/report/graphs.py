"""Machines and traffic as graphs, for analyses of the user's own."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from placer.base.arrays import IntArray
from placer.base.errors import InputError
from placer.documents import closest
from placer.job.edges import all_edges
from placer.placement.inputs import inputs_of
from placer.placement.plan import Plan
from placer.topology.model import Topology

if TYPE_CHECKING:
    Vertex = int | tuple[str, str]


def machine_tree(topology: Topology, gpus: bool) -> nx.DiGraph:
    """The tree that `Topology.to_networkx` describes."""
    tree = nx.DiGraph(name=topology.name)
    usable = topology.gpus_of_node
    keys = []
    for t, (tier, names) in enumerate(
        zip(topology.tiers, topology.domain_names, strict=True)
    ):
        keys.append([(tier.name, name) for name in names])
        sizes = np.bincount(topology.domain_of_node[t], usable).astype(int)
        facts = {
            "tier": tier.name,
            "bandwidth": tier.bandwidth,
            "latency": tier.latency,
            "scale_up": tier.scale_up,
        }
        for key, size in zip(keys[t], sizes.tolist(), strict=True):
            tree.add_node(key, size=size, **facts)
    for t, (inner, outer) in enumerate(pairwise(topology.domain_of_node)):
        tier = topology.tiers[t + 1]
        uplinks = topology.gpus_of_domain(t) * tier.bandwidth / tier.oversubscription
        for child, parent in dict(
            zip(inner.tolist(), outer.tolist(), strict=True)
        ).items():
            uplink = float(uplinks[child])
            tree.add_edge(keys[t + 1][parent], keys[t][child], bandwidth=uplink)
    if gpus:
        tier = topology.tiers[0]
        uplink = tier.bandwidth / tier.oversubscription
        for node, count in zip(keys[0], usable.tolist(), strict=True):
            for k in range(count):
                tree.add_node(("gpu", node[1], k), tier="gpu", size=1)
                tree.add_edge(node, ("gpu", node[1], k), bandwidth=uplink)
    return tree


def traffic_graph(plan: Plan, tier: str | None) -> nx.Graph:
    """The graph that `Plan.to_networkx` describes."""
    job = inputs_of(plan).job
    graph = nx.Graph(name=plan.job["name"])
    vertex_of_rank = _add_vertices(graph, plan, tier)
    vertices: list[Vertex] = list(graph)
    for axis, weight, pairs in all_edges(job):
        ends = np.sort(vertex_of_rank[pairs], axis=1)
        apart = ends[ends[:, 0] != ends[:, 1]]
        found, counts = np.unique(apart, axis=0, return_counts=True)
        for (a, b), count in zip(found.tolist(), counts.tolist(), strict=True):
            graph.add_edge(vertices[a], vertices[b])
            edge = graph[vertices[a]][vertices[b]]
            edge.setdefault("pairs", {})[axis] = count
            edge["weight"] = edge.get("weight", 0.0) + weight * count
    return graph


def _add_vertices(graph: nx.Graph, plan: Plan, tier: str | None) -> IntArray:
    """Add the vertices; position of each rank's among them, shape (R,)."""
    names = {plan.outer_tiers[0]: plan.nodes, **plan.domains}
    if tier is None:
        for rank, (node, gpu) in enumerate(
            zip(plan.node_of_rank.tolist(), plan.gpu_of_rank.tolist(), strict=True)
        ):
            where = {name: own[node] for name, own in names.items()}
            graph.add_node(rank, gpu=gpu, domains=where)
        return np.arange(plan.world_size)
    if tier not in names:
        message = f'the plan names no domains of a tier "{tier}"'
        raise InputError(message, key="tier", hint=closest(tier, names))
    index: dict[str, int] = {}
    of_node = np.array([index.setdefault(name, len(index)) for name in names[tier]])
    of_rank = of_node[plan.node_of_rank]
    for name, ranks in zip(index, np.bincount(of_rank).tolist(), strict=True):
        graph.add_node((tier, name), tier=tier, ranks=ranks)
    return of_rank
