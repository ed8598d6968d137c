"""Who talks to whom under a plan, as a graph for analyses of the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from placer.document import closest
from placer.errors import InputError, Problem
from placer.job.edges import all_edges
from placer.placement.inputs import inputs_of

if TYPE_CHECKING:
    from placer.arrays import IntArray
    from placer.placement.plan import Plan

    Vertex = int | tuple[str, str]


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
        raise InputError([Problem(message, key="tier", hint=closest(tier, names))])
    index: dict[str, int] = {}
    of_node = np.array([index.setdefault(name, len(index)) for name in names[tier]])
    of_rank = of_node[plan.node_of_rank]
    for name, ranks in zip(index, np.bincount(of_rank).tolist(), strict=True):
        graph.add_node((tier, name), tier=tier, ranks=ranks)
    return of_rank
