"""A graph of ranks divided down the tree: all domains halved again and again.

Dual recursive bisection (Pellegrini 1994, "Static mapping by dual recursive
bipartitioning of process and architecture graphs"): machine and graph are halved side
by side, the machine between children of the outermost tier first. Shapes: R ranks, N
nodes, T tiers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.construct.traffic.bisection import Range, halved
from placer.solve.construct.traffic.coarsening import Graph, contracted
from placer.solve.tree.fill import tree_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from placer.solve.problem.flows import Flows
    from placer.topology.machine import Machine


def partitioned_nodes(
    topology: Machine,
    capacity: IntArray,
    label: IntArray,
    flows: Flows,
    rng: np.random.Generator,
    is_over: Callable[[], bool],
) -> IntArray | None:
    """Node of every rank, so that few bytes leave domains; shape (R,).

    Parameters
    ----------
    capacity : ndarray, shape (N,), ranks
    label : ndarray, shape (T, R)
        Sets that stay in one domain of each tier.
    is_over : callable
        Whether there is no time left.

    Returns
    -------
    None where the sets do not fit as they were divided, or time is up.
    """
    order = tree_order(topology)
    nodes = order[capacity[order] > 0]
    room = np.concatenate(([0], np.cumsum(capacity[nodes])))
    domain = topology.domain_of_node[:, nodes]
    sets = int(label[0].max()) + 1
    first_rank = np.unique(label[0], return_index=True)[1]
    outer = label[:, first_rank]
    whole = Graph(
        np.ones(label.shape[1], dtype=np.int64),
        np.zeros(label.shape[1], dtype=np.int64),
        np.zeros(label.shape[1], dtype=bool),
        flows.edges,
        flows.weight / flows.weight.max(initial=1e-300),
    )
    graph = contracted(whole, label[0])
    # Each part is a stretch of nodes.
    begin, end = np.zeros(1, dtype=np.int64), np.array([len(nodes)])
    while (end - begin > 1).any():
        if is_over():
            return None
        middle, tier = _split(domain, room, begin, end)
        held = np.bincount(graph.part, graph.size, len(begin)).astype(np.int64)
        left, right = room[middle] - room[begin], room[end] - room[middle]
        tied = outer[tier[graph.part], np.arange(sets)]
        key = graph.part * label.shape[1] + tied
        unit = np.unique(key, return_inverse=True)[1]
        units = contracted(graph, unit)
        wanted = _evenly(held, left, right, int(units.size.max()))
        side = halved(units, wanted, rng)[unit]
        # A part of one node has no right side.
        new = 2 * graph.part + side
        begin = np.stack((begin, middle), axis=1).ravel()
        end = np.stack((middle, end), axis=1).ravel()
        kept = np.flatnonzero(end > begin)
        number = np.empty(len(begin), dtype=np.int64)
        number[kept] = np.arange(len(kept))
        if not np.isin(new, kept).all():
            return None
        graph = graph._replace(part=number[new], side=np.zeros(sets, dtype=bool))
        graph = contracted(graph, np.arange(sets))
        begin, end = begin[kept], end[kept]
    held = np.bincount(graph.part, graph.size, len(nodes))
    if (held > capacity[nodes]).any():
        return None
    node_of_rank: IntArray = nodes[graph.part[label[0]]]
    return node_of_rank


def _evenly(held: IntArray, left: IntArray, right: IntArray, unit: int) -> Range:
    """Ranks of the left sides when both sides are about equally full.

    To a whole number of units, and never more than a side has room for.
    """
    share = held * left / np.maximum(left + right, 1)
    least, most = np.maximum(held - right, 0), np.minimum(left, held)
    low = np.floor(share / unit).astype(np.int64) * unit
    high = np.ceil(share / unit).astype(np.int64) * unit
    return Range(np.clip(low, least, most), np.clip(high, least, most))


def _split(
    domain: IntArray, room: IntArray, begin: IntArray, end: IntArray
) -> tuple[IntArray, IntArray]:
    """Where each stretch of nodes is cut in two, and the tier of the halves' domains.

    Between two domains of the outermost tier at which its nodes differ, near the middle
    of its room; a single node is cut at its end.
    """
    tier = np.zeros(len(begin), dtype=np.int64)
    middle = end.copy()
    rows = [np.flatnonzero(np.diff(row)) + 1 for row in domain]
    for i in np.flatnonzero(end - begin > 1).tolist():
        a, b = int(begin[i]), int(end[i])
        for t in range(len(rows) - 1, -1, -1):
            cuts = rows[t]
            inside = cuts[np.searchsorted(cuts, a + 1) : np.searchsorted(cuts, b)]
            if len(inside):
                break
        half = (room[a] + room[b]) / 2
        tier[i] = t
        middle[i] = inside[np.abs(room[inside] - half).argmin()]
    return middle, tier
