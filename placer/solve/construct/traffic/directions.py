"""The directions of a graph that looks like a grid, a torus or a cube somewhere.

Edges on opposite sides of a square go the same way, and two edges of a vertex that are
on no square do as well (Imrich and Klavzar 2000, *Product Graphs*, on the relation
delta). Edges are put into classes by the first, and classes are joined by the second,
the surest first, where no square anywhere has an edge of each, so that a missing corner
does little harm. Coordinate ``i`` of a vertex is its component once the edges of
direction ``i`` are gone. Where coordinates tell all vertices apart they are good; what
is proved from them needs no more than that. Shapes: V vertices, E edges, I directions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import IntArray
from placer.base.loading import load

if TYPE_CHECKING:
    import networkx as nx

# Loaded where a graph is looked at: it takes a seventh of what all modules take.
NETWORKX = "networkx"

# So many directions at the most: stencils and cubes have fewer.
MOST = 24
WORK = 2_000_000  # pairs of edges at one vertex that are looked at


class Directions(NamedTuple):
    """Directions of edges, and coordinates of vertices."""

    of_edge: IntArray  # (E,)
    # (I, V): edges of direction ``i`` lead from one vertex to another that differs from
    # it in coordinate ``i`` alone. No two vertices have the same coordinates.
    coordinate: IntArray


def directions(edges: IntArray, vertices: int) -> Directions:
    """The directions of a graph; a single one where it is no product.

    Parameters
    ----------
    edges : ndarray, shape (E, 2)
        Each pair once.
    """
    one = np.zeros(len(edges), dtype=np.int64)
    alone = Directions(one, np.arange(vertices)[None])
    degree = np.bincount(edges.ravel(), minlength=vertices)
    if int((degree**2).sum()) > WORK:
        return alone
    of_edge = _classes(edges, vertices)
    count = int(of_edge.max(initial=0)) + 1
    if not 1 < count <= MOST:
        return alone
    rows = [_components(edges[of_edge != i], vertices) for i in range(count)]
    coordinate = np.array(rows)
    if np.unique(coordinate, axis=1).shape[1] < vertices:
        return alone
    return Directions(of_edge, coordinate)


def _components(edges: IntArray, vertices: int) -> IntArray:
    networkx = load(NETWORKX)
    graph: nx.Graph[int] = networkx.empty_graph(vertices)
    graph.add_edges_from(edges.tolist())
    found = np.empty(vertices, dtype=np.int64)
    for number, component in enumerate(networkx.connected_components(graph)):
        found[list(component)] = number
    return found


def _classes(edges: IntArray, vertices: int) -> IntArray:
    """Direction of each edge, from 0 up."""
    neighbours: list[dict[int, int]] = [{} for _ in range(vertices)]
    for number, (one, other) in enumerate(edges.tolist()):
        neighbours[one][other] = neighbours[other][one] = number
    alike: nx.utils.UnionFind[int] = load(NETWORKX).utils.UnionFind(range(len(edges)))
    bent: list[tuple[int, int]] = []
    square: list[bool] = []
    for vertex, near in enumerate(neighbours):
        for one, other in combinations(sorted(near), 2):
            at = near[one], near[other]
            corners = neighbours[one].keys() & neighbours[other].keys() - {vertex}
            corners = {corner for corner in corners if corner not in near}
            if other in neighbours[one] or len(corners) > 1:
                alike.union(*at)
                continue
            for corner in corners:
                alike.union(at[0], neighbours[other][corner])
                alike.union(at[1], neighbours[one][corner])
            bent.append(at)
            square.append(bool(corners))
    roots = [alike[number] for number in range(len(edges))]
    sides: defaultdict[int, set[int]] = defaultdict(set)
    straight = Counter[tuple[int, int]]()
    for at, is_square in zip(bent, square, strict=True):
        one, other = sorted(roots[edge] for edge in at)
        if is_square:
            sides[one].add(other)
            sides[other].add(one)
        else:
            straight[one, other] += 1
    whole = _joined(straight, sides)
    found = np.array([whole[root] for root in roots])
    return np.asarray(np.unique(found, return_inverse=True)[1], dtype=np.int64)


def _joined(
    straight: Counter[tuple[int, int]], sides: defaultdict[int, set[int]]
) -> nx.utils.UnionFind[int]:
    """Classes after those that go on in each other are joined, the surest first.

    Two that have edges of one square never are, nor what they are joined to.
    """
    whole: nx.utils.UnionFind[int] = load(NETWORKX).utils.UnionFind()
    for (one, other), _ in straight.most_common():
        kept, gone = whole[one], whole[other]
        if kept == gone or gone in sides[kept]:
            continue
        whole.union(kept, gone)
        if whole[kept] != kept:
            kept, gone = gone, kept
        for beyond in sides.pop(gone, set()):
            sides[beyond].discard(gone)
            sides[beyond].add(kept)
            sides[kept].add(beyond)
    return whole
