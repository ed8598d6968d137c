"""Domains of a machine: up to which tier links are alike, how many ranks fit a domain.

And what free nodes are worth to other jobs, which breaks ties (`Rest`).

A job to come wants ``u`` = 16, 8, 4 or 1 nodes of one domain, with the probabilities
``p`` of `DEMAND`, if nothing else is known. A domain with ``f`` free nodes is worth the
nodes that such jobs can fill: ``sum of p * u * floor(f / u)``. Further out the same
counts whole domains of the tier below, and inside a node GPUs. Of what is worth the
same, the rest that lies closer together wins: the sum of the squares of what each
domain has free.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from placer.base.arrays import BoolArray, IntArray
from placer.topology.machine import Domains, Machine


def base_tier(topology: Machine) -> int:
    """Largest tier, the last aside, inside which a hop costs the least."""
    return _widest_alike([tier.distance for tier in topology.tiers])


def linked_tier(topology: Machine) -> int:
    """Largest tier, the last aside, whose links are as fast as those of a node."""
    return _widest_alike(
        [(t.bandwidth, t.latency, t.efficiency, t.scale_up) for t in topology.tiers]
    )


def fastest_tier(topology: Machine) -> int:
    """Largest tier, the last aside, inside which a byte takes the least time."""
    seconds = [1 / (tier.bandwidth * tier.efficiency) for tier in topology.tiers]
    return _widest_alike(np.maximum.accumulate(seconds).tolist())


def _widest_alike(value_of_tier: Sequence[object]) -> int:
    """Largest tier, the last aside, up to which all tiers are like the innermost."""
    tier = 0
    while tier + 2 < len(value_of_tier) and value_of_tier[tier + 1] == value_of_tier[0]:
        tier += 1
    return tier


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


# Units of one domain that a job to come wants, and how often out of ten.
DEMAND = ((16, 4), (8, 3), (4, 2), (1, 1))


class Rest:
    """What is left of one machine.

    Tiers run from the nodes to the one inside the whole cluster; a machine of one tier
    has no other.
    """

    def __init__(
        self, machine: Domains, demand: Sequence[tuple[int, int]] = DEMAND
    ) -> None:
        self._machine = machine
        self._demand = demand
        self.often = sum(often for _, often in demand)
        self.tiers = range(max(1, len(machine.tiers) - 1))

    @cached_property
    def units(self) -> list[int]:
        """Of every tier, what a job to come counts in: GPUs, nodes, then domains.

        Domains are as large as the largest of the tier below, in nodes.
        """
        rows = self._machine.domain_of_node
        return [1, *(int(np.bincount(row).max()) for row in rows[:-1])]

    def worth(self, tier: int, free: IntArray) -> tuple[IntArray, IntArray]:
        """Nodes that jobs to come can fill, and the square, of each domain.

        ``free`` counts the free nodes of domains of a tier above the nodes, the GPUs of
        nodes.
        """
        unit = self.units[tier]
        filled = sum(often * u * (free // (u * unit)) for u, often in self._demand)
        return np.asarray(filled), free * free

    def left(self, used: BoolArray) -> tuple[int, ...]:
        """What nodes that are not ``used`` are worth, by tier; the squares, by tier."""
        machine = self._machine
        filled, squares = [], []
        for tier in self.tiers:
            if tier:
                row = machine.domain_of_node[tier]
                free = np.bincount(row, ~used).astype(np.int64)
            else:
                free = np.where(used, 0, machine.gpus_of_node)
            worth, square = self.worth(tier, free)
            filled.append(int(worth.sum()))
            squares.append(int(square.sum()))
        return (*filled, *squares)
