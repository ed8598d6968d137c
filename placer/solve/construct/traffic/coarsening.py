"""Coarsening a graph by its heaviest edges, inside parts.

Locally dominant edges are matched, all at once: those heavier than every other edge at
either end (Preis 1999, "Linear time 1/2-approximation algorithm for maximum weighted
matching in general graphs"). Shapes: V vertices, E edges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.solve.problem.flows import bundled

MATCHING_ROUNDS = 8
# A matching that leaves more than this share of the vertices is not worth a level.
LEAST_SHRINK = 0.9


class Graph(NamedTuple):
    """Vertices in parts; no edge joins two parts."""

    size: IntArray  # (V,)
    part: IntArray  # (V,)
    side: BoolArray  # (V,): half of the part; vertices of two sides are not joined
    edges: IntArray  # (E, 2)
    weight: FloatArray  # (E,)


def contracted(graph: Graph, label: IntArray) -> Graph:
    """The graph of the sets that ``label`` puts vertices into, from 0 up.

    Edges between sets of two parts are left out.
    """
    count = int(label.max()) + 1
    size = np.bincount(label, graph.size, count).astype(np.int64)
    part = np.empty(count, dtype=np.int64)
    side = np.empty(count, dtype=bool)
    part[label], side[label] = graph.part, graph.side
    ends = label[graph.edges]
    inside = part[ends[:, 0]] == part[ends[:, 1]]
    flows = bundled(ends[inside], graph.weight[inside], count)
    return Graph(size, part, side, flows.edges, flows.weight)


def levels(
    graph: Graph, most: int, largest: IntArray, rng: np.random.Generator
) -> list[tuple[Graph, IntArray]]:
    """Ever coarser graphs, the finest first, until parts have few vertices.

    Parameters
    ----------
    most : int
        Vertices that a part of the coarsest graph may have.
    largest : ndarray, shape (parts,), ranks
        Size that vertices of each part may grow to.

    Returns
    -------
    list of (graph, label)
        ``label`` gives each vertex of a graph that of the next one; the last one's is
        empty.
    """
    found = []
    parts = len(largest)
    while (crowded := np.bincount(graph.part, minlength=parts) > most).any():
        label = _matched(graph, np.where(crowded, largest, 0), rng)
        left = np.bincount(graph.part, minlength=parts)
        firsts = np.unique(label, return_index=True)[1]
        joined = np.bincount(graph.part[firsts], minlength=parts)
        if (joined > np.maximum(LEAST_SHRINK * left, most))[crowded].any():
            label = _neighbours_joined(graph, label, crowded)
        found.append((graph, label))
        graph = contracted(graph, label)
    found.append((graph, np.zeros(0, dtype=np.int64)))
    return found


def _matched(graph: Graph, largest: IntArray, rng: np.random.Generator) -> IntArray:
    """Number of each vertex after heavy edges are drawn together."""
    first, second = graph.edges.T
    size = graph.size
    fits = size[first] + size[second] <= largest[graph.part[first]]
    fits &= graph.side[first] == graph.side[second]
    # Small vertices first: they leave vertices of about the same size.
    rating = graph.weight / (size[first] * size[second])
    order = np.lexsort((rng.random(len(rating)), rating))
    priority = np.empty(len(order), dtype=np.int64)
    priority[order] = np.arange(1, len(order) + 1)
    edge = np.flatnonzero(fits)
    partner = np.arange(len(size))
    for _ in range(MATCHING_ROUNDS):
        if not len(edge):
            break
        best = np.zeros(len(size), dtype=np.int64)
        np.maximum.at(best, first[edge], priority[edge])
        np.maximum.at(best, second[edge], priority[edge])
        dominant = edge[
            (best[first[edge]] == priority[edge])
            & (best[second[edge]] == priority[edge])
        ]
        partner[first[dominant]] = second[dominant]
        partner[second[dominant]] = first[dominant]
        free = partner == np.arange(len(partner))
        edge = edge[free[first[edge]] & free[second[edge]]]
    lead = np.minimum(partner, np.arange(len(partner)))
    label: IntArray = np.unique(lead, return_inverse=True)[1]
    return label


def _neighbours_joined(graph: Graph, label: IntArray, crowded: BoolArray) -> IntArray:
    """Labels after those like each other in crowded parts are joined, two by two."""
    count = int(label.max()) + 1
    half = np.empty(count, dtype=np.int64)
    half[label] = 2 * graph.part + graph.side
    size = np.bincount(label, graph.size, count)
    order = np.lexsort((size, half))
    in_order = half[order]
    start = np.searchsorted(in_order, in_order)
    place = np.arange(count) - start
    pair = np.where(crowded[in_order // 2], place // 2, place)
    key = np.empty(count, dtype=np.int64)
    key[order] = in_order * count + pair
    joined: IntArray = np.unique(key, return_inverse=True)[1][label]
    return joined
