"""Which of two placements of equal value is preferred, and how useful a rest is.

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
from placer.placement.previous import Previous
from placer.solve.problem.compiled import Problem
from placer.topology.machine import Domains

Key = tuple[float, tuple[int, ...]]

# Relative difference of two sums of the same numbers in another order.
ROUNDING = 1e-12

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


class TieBreak:
    """The rule for placements of equal value.

    The value of a step is its worst replica and its worst groups. Where these are
    equal, less traffic in sum wins; then the fewest domains that hold ranks, at the
    outermost tier first; then the most ranks left where a previous plan has them; then
    the most useful rest (`Rest`).
    """

    def __init__(self, problem: Problem, previous: Previous | None = None) -> None:
        self._machine, self._goal = problem.machine, problem.goal
        self._previous, self._rest = previous, Rest(problem.machine)
        self._known: list[tuple[IntArray, Key]] = []

    def takes(
        self, value: float, new: IntArray, known: float, old: IntArray | None
    ) -> bool:
        """Whether ``new`` is as good as ``old``, whose value is known, and better."""
        if old is None or value > known * (1 + ROUNDING):
            return False
        return self.prefers(new, old)

    def prefers(self, new: IntArray, old: IntArray) -> bool:
        """Whether ``new`` is better than ``old``, given as GPU of every rank."""
        # The old one first, which is then among the last two.
        (less, old_counts), (more, new_counts) = self._key(old), self._key(new)
        if abs(more - less) > ROUNDING * max(more, less):
            return more < less
        return new_counts < old_counts

    def _key(self, gpu_of_rank: IntArray) -> Key:
        """Traffic; then domains used, outermost first, ranks kept and the rest."""
        found = [key for known, key in self._known if known is gpu_of_rank]
        key = found[0] if found else self._worked_out(gpu_of_rank)
        others = [one for one in self._known if one[0] is not gpu_of_rank]
        self._known = [*others[-1:], (gpu_of_rank, key)]
        return key

    def _worked_out(self, gpu_of_rank: IntArray) -> Key:
        return self._goal.traffic_s(gpu_of_rank), self._counts(gpu_of_rank)

    def _counts(self, gpu_of_rank: IntArray) -> tuple[int, ...]:
        node = np.unique(self._machine.node_of_gpu[gpu_of_rank])
        used = [
            len(np.unique(row[node])) for row in self._machine.domain_of_node[-2::-1]
        ]
        kept = self._previous.kept(gpu_of_rank) if self._previous else 0
        is_used = np.zeros(self._machine.num_nodes, dtype=bool)
        is_used[node] = True
        return (*used, -kept, *(-worth for worth in self._rest.left(is_used)))
