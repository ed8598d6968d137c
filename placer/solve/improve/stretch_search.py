"""Local search on step time where nodes hold runs of ranks of several lengths.

A *stretch* is a run of whole groups that begins and ends with a node: one group on
nodes of its own, or several that are cut where nodes end. Stretches of as many groups
change places, so that no replica waits for many groups that are cut, or for small parts
beside larger ones. Simulated annealing; every placement is priced in full.

Shapes: R ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.placement.placement import Placement
from placer.solve.problem.axes import sizes_kept_whole
from placer.solve.run.cooling import accepts, cooling, exchanged
from placer.solve.run.solution import EXACT

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

IntArray = npt.NDArray[np.int64]

NAME = "stretches annealed"
TRIES = 40  # placements priced for each stretch, at most
MISSES = 50  # changes that are drawn for one that is priced


def stretches_annealed(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Exchange stretches of the best placement, for groups of each size in turn."""
    job, axes = problem.job, problem.job.parallelism
    if problem.goal.name != "time" or job.launcher == "free":
        return
    for size in sizes_kept_whole(axes):
        if incumbent.gpu_of_rank is None or axes.world_size % size:
            continue
        node_of_rank = problem.machine.node_of_gpu[incumbent.gpu_of_rank]
        stretches = stretches_of(node_of_rank, size)
        if len({_looks(one) for one in stretches}) > 1:
            search = _Search(problem, stretches, size, float(incumbent.bound))
            found = search.better(float(incumbent.value), budget)
            if found is not None:
                incumbent.offer(f"{incumbent.method}, {NAME}", found)


def stretches_of(node_of_rank: IntArray, size: int) -> list[IntArray]:
    """Node of every rank of each stretch, one after the other.

    Parameters
    ----------
    node_of_rank : ndarray, shape (R,)
    size : int
        Ranks of a group, which ``R`` is a multiple of.
    """
    ends = np.flatnonzero(node_of_rank[1:] != node_of_rank[:-1]) + 1
    return np.split(node_of_rank, ends[ends % size == 0])


def _looks(stretch: IntArray) -> tuple[int, ...]:
    """Ranks on each of its nodes, in order: stretches that look alike cost the same."""
    begins = np.flatnonzero(np.diff(stretch, prepend=-1))
    return tuple(np.diff(begins, append=len(stretch)).tolist())


class _Search:
    """Orders of stretches, priced.

    Parameters
    ----------
    problem : Problem
    stretches : sequence of ndarray
    size : int
        Ranks of a group.
    bound : float, s
        Step time that cannot be beaten.
    """

    def __init__(
        self, problem: Problem, stretches: Sequence[IntArray], size: int, bound: float
    ) -> None:
        self.problem, self.stretches, self.bound = problem, stretches, bound
        self.groups = [len(one) // size for one in stretches]
        self.looks = [_looks(one) for one in stretches]
        self.rng = np.random.default_rng(problem.seed)

    def better(self, value: float, budget: Budget) -> IntArray | None:
        """GPU of every rank in the best placement met; None if the start is that."""
        params = self.problem.params
        tries = params.ranks_priced // self.problem.job.world_size
        tries = min(tries, TRIES * len(self.stretches))
        gap = max(value - self.bound, EXACT * value)
        order, least = list(range(len(self.stretches))), value
        best: IntArray | None = None
        for heat in cooling(*params.exchange_heat, tries, budget):
            changed = self._changed(order)
            if changed is None:
                continue
            nodes = np.concatenate([self.stretches[one] for one in changed])
            gpus = Placement.on_nodes(self.problem.machine, nodes).gpu_of_rank
            if not self.problem.allows(gpus):
                continue
            step_s = float(self.problem.goal.value(gpus))
            if not accepts(step_s - value, gap * heat, self.rng.random):
                continue
            order, value = changed, step_s
            if value < least * (1 - EXACT):
                least, best = value, gpus
        return best

    def _changed(self, order: list[int]) -> list[int] | None:
        """The order when a stretch changes places with others; None for none found."""
        groups = [self.groups[stretch] for stretch in order]
        for _ in range(MISSES):
            one, begin = (int(self.rng.integers(len(order))) for _ in range(2))
            found = exchanged(order, groups, one, begin)
            if found is None:
                continue
            changed, others = found
            if [self.looks[other] for other in others] != [self.looks[order[one]]]:
                return changed
        return None
