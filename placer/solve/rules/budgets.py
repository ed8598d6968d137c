"""Nodes left idle so that no placement on the others is over a budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.tree.fill import tree_order

if TYPE_CHECKING:
    from placer.solve.problem.rules import Cap, Limits

BoolArray = npt.NDArray[np.bool_]


def within_budgets(limits: Limits, offered: BoolArray) -> Iterator[BoolArray]:
    """Nodes of those ``offered`` on which the limits on GPUs hold by themselves.

    The fullest domains next to the nodes are kept, along the tree; then none of a
    budget's nodes, for jobs that find room elsewhere. ``r`` replicas count as the GPUs
    they have; that no others come there is for whoever mends placements to see.
    """
    if not limits.budgets:
        return
    kept, outside = offered.copy(), offered.copy()
    for cap in limits.budgets:
        _keep_fullest(limits, kept, cap)
        outside &= ~cap.inside
    yield kept
    if int(limits.topology.gpus_of_node[outside].sum()) >= limits.job.world_size:
        yield outside


def _keep_fullest(limits: Limits, kept: BoolArray, cap: Cap) -> None:
    """Take nodes of a budget off the offer until the others are within it."""
    most = _most_ranks(limits, cap)
    topology = limits.topology
    gpus = topology.gpus_of_node
    inside = kept & cap.inside
    if int(gpus[inside].sum()) <= most:
        return
    row = topology.domain_of_node[min(1, len(topology.tiers) - 1)]
    room = np.bincount(row, gpus * inside)
    order = tree_order(topology)
    order = order[inside[order]]
    pinned = np.zeros(topology.num_nodes, dtype=bool)
    for hosts in set(limits.hosts_of_rank.values()):
        pinned[list(hosts)] = True
    order = order[np.lexsort((-room[row[order]], ~pinned[order]))]
    held = 0
    for node in order.tolist():
        if held + gpus[node] > most:
            kept[node] = False
        else:
            held += int(gpus[node])


def _most_ranks(limits: Limits, cap: Cap) -> int:
    of_replicas = (
        limits.job.world_size
        if cap.replicas is None
        else cap.replicas * limits.replica_size
    )
    return of_replicas if cap.ranks is None else min(of_replicas, cap.ranks)
