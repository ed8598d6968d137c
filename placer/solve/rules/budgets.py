"""Nodes left idle so that no placement on the others is over a budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import BoolArray
from placer.solve.tree.fill import tree_order

if TYPE_CHECKING:
    from placer.solve.problem.rules import Cap, Limits


def within_budgets(
    limits: Limits, offered: BoolArray, unit: int
) -> Iterator[BoolArray]:
    """Nodes of those ``offered`` on which the limits on GPUs hold by themselves.

    Nodes of few budgets and of full domains are kept, along the tree, without what is
    left over of ``unit`` ranks that stay together. Then none of a budget's nodes are.
    ``r`` replicas count as the GPUs they have; that no others come there is for whoever
    mends placements to see. What has too few GPUs for the job is left out.
    """
    if not limits.budgets:
        return
    kept, outside = offered.copy(), offered.copy()
    for cap in limits.budgets:
        _keep_fullest(limits, kept, cap, unit)
        outside &= ~cap.inside
    gpus = limits.topology.gpus_of_node
    for part in (kept, outside):
        if int(gpus[part].sum()) >= limits.job.world_size:
            yield part


def _keep_fullest(limits: Limits, kept: BoolArray, cap: Cap, unit: int) -> None:
    """Take nodes of a budget off the offer until the others are within it."""
    most = _most_ranks(limits, cap)
    topology = limits.topology
    gpus = topology.gpus_of_node
    inside = kept & cap.inside
    if int(gpus[inside].sum()) <= most:
        return
    row = topology.domain_of_node[min(1, len(topology.tiers) - 1)]
    room = np.bincount(row, gpus * inside).astype(np.int64)
    useful = room // unit * unit
    order = tree_order(topology)
    order = order[inside[order]]
    budgets = np.sum([one.inside for one in limits.budgets], axis=0)
    keys = -room[row[order]], budgets[order], ~limits.pinned[order]
    order = order[np.lexsort(keys)]
    held = 0
    for node in order.tolist():
        size, domain = int(gpus[node]), int(row[node])
        if held + size > most or size > useful[domain]:
            kept[node] = False
        else:
            held += size
            useful[domain] -= size


def _most_ranks(limits: Limits, cap: Cap) -> int:
    of_replicas = (
        limits.job.world_size
        if cap.replicas is None
        else cap.replicas * limits.replica_size
    )
    return of_replicas if cap.ranks is None else min(of_replicas, cap.ranks)
