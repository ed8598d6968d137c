"""How many ranks the domains of a machine can hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placer.base.arrays import IntArray
from placer.topology.machine import Domains


def node_capacity(topology: Domains, block: int) -> IntArray:
    """Ranks each node may hold; shape (N,).

    A node of a node-contiguous launch holds one block or nothing.
    """
    gpus = topology.gpus_of_node
    return np.where(gpus >= block, block, 0) if block > 1 else gpus


def whole_sets(
    topology: Domains, capacity_of_node: IntArray, units: Sequence[int]
) -> list[IntArray]:
    """Ranks each domain can hold if it takes whole units only, one array a tier.

    ``units[t]`` ranks must stay together inside a domain of tier ``t``; each unit is
    made of whole units of the tier below. Exact: children can be filled independently.
    There are as many arrays as units, from the nodes out.
    """
    takes = [capacity_of_node // units[0] * units[0]]
    for t in range(1, len(units)):
        around = topology.domain_around[t - 1]
        inside = np.bincount(around, takes[-1], len(topology.domain_names[t]))
        takes.append(inside.astype(np.int64) // units[t] * units[t])
    return takes


def room_in_sets(
    topology: Domains, capacity_of_node: IntArray, label: IntArray
) -> list[IntArray]:
    """Most ranks of each domain in whole sets, one array a tier.

    ``capacity_of_node``: shape (N,). ``label`` ((T, R)): set of each rank at each tier;
    where sets differ in size their parts count.
    """
    sizes = [np.unique(sets, return_counts=True)[1] for sets in label]
    units = [int(known.min()) if (known == known[0]).all() else 1 for known in sizes]
    return whole_sets(topology, capacity_of_node, units)


def ancestor_of_domain(topology: Domains, tier: int, outer: int) -> IntArray:
    """Domain of tier ``outer`` that holds each domain of ``tier``."""
    inner = topology.domain_of_node[tier]
    ancestor = np.empty(int(inner.max()) + 1, dtype=np.int64)
    ancestor[inner] = topology.domain_of_node[outer]
    return ancestor
