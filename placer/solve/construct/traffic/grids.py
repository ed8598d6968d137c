"""The axes of a graph that looks like a grid, a torus or a cube.

Edges on opposite sides of a square go the same way (Imrich and Klavzar 2000, *Product
Graphs*, on the relation delta), and those that meet in a corner of one go different
ways: classes of the first are coloured so that no two of the second are alike, and a
colour is an axis. A missing corner does no harm. A place along an axis is a component
of the graph without the edges of the axis. Shapes: V vertices, E edges.
"""

from __future__ import annotations

from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import IntArray
from placer.base.loading import load
from placer.solve.problem.flows import Flows

if TYPE_CHECKING:
    import networkx as nx

# Loaded where a graph is looked at: it takes a seventh of what all modules take.
NETWORKX = "networkx"

# So many axes at the most: stencils and cubes have fewer.
MOST = 24
WORK = 2_000_000  # pairs of edges at one vertex that are looked at
# Places of a grid for each vertex, at most: some are missing.
SPARSE = 2


class Axis(NamedTuple):
    """An axis of a grid."""

    length: int
    is_ring: bool
    size_bytes: float  # that neighbours send each other, one way
    place: IntArray  # (V,): of each vertex along it


def axes_of(flows: Flows, vertices: int) -> list[Axis]:
    """The axes of a graph, on which no two vertices share all places.

    None where it is no grid of two axes or more.
    """
    degree = np.bincount(flows.edges.ravel(), minlength=vertices)
    if int((degree**2).sum()) > WORK:
        return []
    direction = _directions(flows.edges, vertices)
    found: list[Axis] = []
    for way in range(min(int(direction.max()) + 1, MOST + 1)):
        axis = _axis(flows, direction == way, vertices)
        if axis is None:
            return []
        found.append(axis)
    is_grid = 1 < len(found) <= MOST
    if not is_grid or prod(axis.length for axis in found) > SPARSE * vertices:
        return []
    places = np.unique([axis.place for axis in found], axis=1)
    return found if places.shape[1] == vertices else []


def _directions(edges: IntArray, vertices: int) -> IntArray:
    """Direction of each edge, from 0 up; shape (E,)."""
    networkx = load(NETWORKX)
    neighbours: list[dict[int, int]] = [{} for _ in range(vertices)]
    for number, (one, other) in enumerate(edges.tolist()):
        neighbours[one][other] = neighbours[other][one] = number
    alike: nx.utils.UnionFind[int] = networkx.utils.UnionFind(range(len(edges)))
    bent: list[tuple[int, int]] = []
    for vertex, near in enumerate(neighbours):
        for one, other in combinations(near, 2):
            at = near[one], near[other]
            corners = neighbours[one].keys() & neighbours[other].keys() - {vertex}
            corners -= near.keys()
            if other in neighbours[one] or len(corners) > 1:
                alike.union(*at)
                continue
            for corner in corners:
                alike.union(at[0], neighbours[other][corner])
                alike.union(at[1], neighbours[one][corner])
                bent.append(at)
    crossing: nx.Graph[int] = networkx.Graph(
        (alike[one], alike[other]) for one, other in bent if alike[one] != alike[other]
    )
    # From one to the next, two ways are told apart exactly.
    colour = networkx.greedy_color(crossing, "connected_sequential_bfs")
    return np.array([colour.get(alike[edge], 0) for edge in range(len(edges))])


def _axis(flows: Flows, own: IntArray, vertices: int) -> Axis | None:
    """The axis of some of the edges; None where its lines are no paths or rings."""
    networkx = load(NETWORKX)
    others: nx.Graph[int] = networkx.empty_graph(vertices)
    others.add_edges_from(flows.edges[~own].tolist())
    component = np.empty(vertices, dtype=np.int64)
    for number, members in enumerate(networkx.connected_components(others)):
        component[list(members)] = number
    line = networkx.Graph(component[flows.edges[own]].tolist())
    degree = dict(line.degree)
    length = int(component.max()) + 1
    if max(degree.values()) > 2 or not networkx.is_connected(line):
        return None
    if len(line) < length or any(networkx.selfloop_edges(line)):
        return None
    place = np.empty(length, dtype=np.int64)
    along = networkx.dfs_preorder_nodes(line, min(degree, key=degree.__getitem__))
    place[list(along)] = np.arange(length)
    size = float(flows.weight[own].mean()) / 2
    return Axis(length, line.size() == length, size, place[component])
