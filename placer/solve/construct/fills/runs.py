"""Ranks in order along the machine, domains ending where groups of ranks end.

For node-contiguous launches on nodes of several sizes. A node holds consecutive ranks,
so groups of them can only be shifted along. A domain that ends within a group cuts it;
leaving a few of its GPUs idle avoids that as long as some are spare. Shapes: N nodes, D
domains.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.problem.compiled import Problem
from placer.solve.run.incumbent import Candidate
from placer.solve.tree.base import base_tier, linked_tier


def run_fills(problem: Problem) -> Iterator[Candidate]:
    """(name, GPU of every rank) for groups of each size that are kept whole."""
    machine, axes = problem.machine, problem.job.parallelism
    tier = (linked_tier if problem.goal.name == "time" else base_tier)(machine)
    if tier == len(machine.tiers) - 1:
        return
    outer = machine.domain_around[tier]
    domain_of_node = machine.domain_of_node[tier]
    for chunk in dict.fromkeys((axes.tp, 1)):
        capacity = machine.gpus_of_node // chunk * chunk
        room = np.bincount(domain_of_node, capacity).astype(np.int64)
        if room.sum() < axes.world_size:
            continue
        for size in dict.fromkeys((axes.etp * axes.ep, axes.tp * axes.cp)):
            slots = [
                _slots(np.flatnonzero(domain_of_node == domain), capacity)[:take]
                for domain, take in along(room, outer, size, axes.world_size)
            ]
            node_of_rank = np.concatenate(slots)[: axes.world_size]
            gpu_of_rank = machine.gpus_on(node_of_rank)
            yield f"ranks in order, groups of {size} whole", gpu_of_rank


def _slots(nodes: IntArray, capacity: IntArray) -> IntArray:
    """Node of each rank that some nodes hold in turn."""
    return np.repeat(nodes, capacity[nodes])


def along(
    room: IntArray, outer: IntArray, size: int, world: int
) -> list[tuple[int, int]]:
    """Domains in turn, and the ranks that each takes, of at least ``world``.

    The next domain is one that ends with a group if any does, at the price of few idle
    GPUs, else the one with the most of a group that it cuts; in the same outer domain
    while there is one.

    Parameters
    ----------
    room : ndarray, shape (D,), ranks
    outer : ndarray, shape (D,)
        Outer domain of each.
    size, world : int
        Ranks of a group, and all ranks.
    """
    unused = room > 0
    spare = int(room.sum()) - world
    begun, taken, here = 0, 0, -1
    found = []
    while taken < world:
        near = unused & (outer == here)
        choice = np.flatnonzero(near if near.any() else unused)
        over = (begun + room[choice]) % size
        idle = np.where(over <= spare, over, size)
        best = int(np.lexsort((-over, idle))[0])
        domain, wasted = int(choice[best]), int(idle[best])
        wasted = 0 if wasted == size or wasted >= room[domain] else wasted
        take = int(room[domain]) - wasted
        found.append((domain, take))
        begun = (begun + take) % size
        spare, taken, here = spare - wasted, taken + take, int(outer[domain])
        unused[domain] = False
    return found
