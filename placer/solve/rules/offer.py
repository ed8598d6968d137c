"""Which nodes to offer to a search so that what it finds keeps spares and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from placer.solve.problem.limits import Limits
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def without_spares(limits: Limits, offered: BoolArray, unit: int) -> BoolArray:
    """The ``offered`` nodes less those that their domains must keep free.

    A domain of ``n`` nodes that keeps ``k`` free offers ``n - k``; nodes that are not
    offered anyway count as kept. ``unit`` ranks that stay together say what a node is
    worth to its domain: nodes are withheld where ranks would be left over.
    """
    keep = offered.copy()
    for tier, number in limits.spares:
        row = limits.topology.domain_of_node[tier]
        surplus = np.bincount(row, keep) - (np.bincount(row) - number)
        for domain in np.flatnonzero(surplus > 0):
            inside = (row == domain) & keep
            count = min(int(surplus[domain]), int(inside.sum()))
            _withhold(limits, keep, inside, count, unit)
    return keep


def within_replicas(limits: Limits, offered: BoolArray) -> BoolArray:
    """The ``offered`` nodes less those that the replicas a domain may have leave idle.

    At most ``k`` replicas have ``k`` times their ranks in a domain, and it need not
    offer more GPUs than that.
    """
    keep = offered.copy()
    gpus = limits.topology.gpus_of_node
    for tier, number in limits.at_most:
        row = limits.topology.domain_of_node[tier]
        most = number * limits.replica_size
        held = np.bincount(row, gpus * keep)
        for domain in np.flatnonzero(held - gpus.max() >= most):
            spare = int(held[domain]) - most
            inside = (row == domain) & keep
            count = spare // int(gpus[inside].max())
            _withhold(limits, keep, inside, count, limits.replica_size)
    return keep


def loses_nothing(limits: Limits, offered: BoolArray) -> bool:
    """Whether any choice of spares is as good as any other, up to equal nodes.

    So it is when spares are asked for of the tier next to the nodes only, and the nodes
    that each of its domains offers are equal.
    """
    if not limits.spares:
        return True
    tiers = [tier for tier, _ in limits.spares]
    topology = limits.topology
    if tiers != [1] or limits.hosts_of_rank:
        return False
    row = topology.domain_of_node[1]
    return all(
        _is_same_inside(row, values, offered)
        for values in (topology.gpus_of_node, topology.bandwidth_factor)
    )


def _is_same_inside(
    row: IntArray, values: npt.NDArray[np.number], mask: BoolArray
) -> bool:
    """Whether ``values`` of the nodes of ``mask`` differ in no domain of ``row``."""
    low = np.full(int(row.max()) + 1, np.inf)
    high = np.full(int(row.max()) + 1, -np.inf)
    np.minimum.at(low, row[mask], values[mask])
    np.maximum.at(high, row[mask], values[mask])
    return bool((low >= high).all())


def _withhold(
    limits: Limits, keep: BoolArray, inside: BoolArray, count: int, unit: int
) -> None:
    """Take ``count`` of the nodes ``inside`` a domain off the offer.

    One after the other from the lowest domain above the nodes with the most ranks left
    over, pinned hosts last, nodes with the fewest GPUs and the slowest first.
    """
    topology = limits.topology
    row = topology.domain_of_node[min(1, len(topology.tiers) - 1)]
    pinned = _pinned(limits, topology)
    gpus = topology.gpus_of_node
    nodes = np.flatnonzero(inside)
    order = np.lexsort((topology.bandwidth_factor[nodes], gpus[nodes], pinned[nodes]))
    queue: dict[int, list[int]] = {}
    room: dict[int, int] = {}
    for node in nodes[order][::-1].tolist():
        queue.setdefault(int(row[node]), []).append(node)
        room[int(row[node])] = room.get(int(row[node]), 0) + int(gpus[node])
    for _ in range(count):
        leaf = min(
            (d for d in queue if queue[d]),
            key=lambda d: (bool(pinned[queue[d][-1]]), -(room[d] % unit), room[d], d),
        )
        node = queue[leaf].pop()
        room[leaf] -= int(gpus[node])
        keep[node] = False


def _pinned(limits: Limits, topology: Topology) -> BoolArray:
    """Whether a rank is pinned to a node, or to it among others; shape (N,)."""
    pinned = np.zeros(topology.num_nodes, dtype=bool)
    for hosts in set(limits.hosts_of_rank.values()):
        pinned[list(hosts)] = True
    return pinned
