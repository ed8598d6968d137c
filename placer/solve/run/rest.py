"""How useful are the nodes that a placement leaves to other jobs.

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
from placer.topology.machine import Domains

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
