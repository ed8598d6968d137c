"""Local search on step time where nodes hold runs of ranks of several lengths.

A *stretch* is a run of whole groups that begins and ends with a node: one group on
nodes of its own, or several that are cut where nodes end. Stretches of as many groups
change places, so that no replica waits for many groups that are cut, or for small parts
beside larger ones. They are annealed (`launch_walk.py`).

Shapes: R ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray, equal_runs
from placer.solve.improve.launch_walk import offer_walked
from placer.solve.problem.axes import sizes_kept_whole
from placer.solve.run.cooling import exchanged

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

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
            search = _Search(stretches, size, np.random.default_rng(problem.seed))
            offer_walked(
                problem,
                incumbent,
                budget,
                NAME,
                search,
                list(range(len(stretches))),
                TRIES * len(stretches),
            )


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
    return tuple(equal_runs(stretch)[1].tolist())


class _Search:
    """Orders of stretches.

    Parameters
    ----------
    size : int
        Ranks of a group.
    """

    def __init__(
        self, stretches: Sequence[IntArray], size: int, rng: np.random.Generator
    ) -> None:
        self.stretches, self.rng = stretches, rng
        self.groups = [len(one) // size for one in stretches]
        self.looks = [_looks(one) for one in stretches]

    def nodes(self, order: list[int]) -> IntArray:
        """Node of every rank."""
        return np.concatenate([self.stretches[one] for one in order])

    def changed(self, order: list[int]) -> list[int] | None:
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
