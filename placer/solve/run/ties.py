"""Which of two placements of equal value is to be preferred."""

from __future__ import annotations

import numpy as np

from placer.base.arrays import IntArray
from placer.placement.previous import Previous
from placer.solve.problem.compiled import Problem
from placer.solve.run.rest import Rest

Key = tuple[float, tuple[int, ...]]

# Relative difference of two sums of the same numbers in another order.
ROUNDING = 1e-12


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
