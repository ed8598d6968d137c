"""How many members of a group domains may hold, and how many domains hold them all.

A node of a node-contiguous launch holds one run of consecutive ranks, of any length up
to its GPUs ``g``, and a run shorter than ``g`` lies in one of ``g`` ranks. So,

    members of a group on a node  <=  its most members among any g consecutive ranks
    members of a group in a domain  <=  the sum of that over the nodes of the domain
    domains that a group touches  >=  fewest whose sums reach its size
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray

if TYPE_CHECKING:
    from placer.solve.bounds.network.ideal import IdealNetwork

Counts = tuple[IntArray, IntArray, list[IntArray]]


def fewest_domains(network: IdealNetwork, members: IntArray) -> Counts:
    """Fewest domains that hold a row of ``members``, and most in each domain.

    Of the first, shape (T + 1,), entry 0 counts single GPUs, entry ``t + 1`` domains of
    tier ``t``. The second has scale-up domains, the fullest first, the third all of
    each tier.
    """
    fewest, most = [num_members := members.shape[1]], list[IntArray]()
    room = np.ones(1, dtype=np.int64)
    topology, scale_up = network.fabric.topology, network.fabric.scale_up_tier
    for t, capacity in enumerate(network.capacities):
        inside = most_alike(network.label[t][members]) * (
            capacity // network.smallest_sets[t]
        )
        if t > 0:
            around = topology.domain_around[t - 1]
            children = np.bincount(around, most[-1], len(inside)).astype(np.int64)
            inside = np.minimum(inside, children)
        if network.in_runs and t in network.run_tiers:
            gpus = np.bincount(topology.domain_of_node[t], topology.gpus_of_node)
            inside = np.minimum(inside, most_in_runs(members, gpus))
        if network.replica is not None:
            of_one = most_alike(network.replica[members])
            inside = np.minimum(inside, network.most_replicas[t] * of_one)
        if network.crowd is not None and t <= scale_up:
            near = network.crowd(members, network.capacities[scale_up])
            inside = np.minimum(inside, near if t == scale_up else near.max())
        most.append(inside)
        descending = np.sort(inside)[::-1]
        filled = np.cumsum(descending)
        fewest.append(int(np.searchsorted(filled, num_members)) + 1)
        if t == scale_up:
            room = descending
    # A case that no placement meets may leave too little room: any number holds.
    fewest[-1] = 1
    return np.array(fewest), room, most


def most_in_runs(members: IntArray, lengths: IntArray) -> IntArray:
    """Most members of one row among so many consecutive ranks; shape of ``lengths``.

    ``k`` members fit a run of ``g`` ranks where the first and the last of ``k``
    neighbours in a row are less than ``g`` apart: found by bisection over ``k``.
    """
    in_order = np.sort(members, axis=1)
    sizes, place = np.unique(lengths.astype(np.int64), return_inverse=True)
    most = []
    for size in sizes.tolist():
        low, high = min(size, 1), min(size, in_order.shape[1])
        while low < high:
            count = (low + high + 1) // 2
            apart = in_order[:, count - 1 :] - in_order[:, : 1 - count]
            low, high = (count, high) if (apart < size).any() else (low, count - 1)
        most.append(low)
    return np.array(most, dtype=np.int64)[place]


def most_alike(values: IntArray) -> int:
    """How often a value comes in a row, at the most; found like `most_in_runs`."""
    in_order = np.sort(values, axis=1)
    low, high = 1, in_order.shape[1]
    while low < high:
        count = (low + high + 1) // 2
        alike = in_order[:, count - 1 :] == in_order[:, : 1 - count]
        low, high = (count, high) if alike.any() else (low, count - 1)
    return low
