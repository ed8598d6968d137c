"""Stitch a large machine window by window.

The integer program of a whole machine is out of reach beyond a thousand or so sorts of
joints. The domains just above the leaves are then walked in tree order, a window of
them at a time: every window has a program of its own, which makes as many replicas as
its share of the units asks for. Units that a window leaves free go on to the next one.
A window whose program finds nothing in its share of work is halved.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from placer.solve.count.deal import deal
from placer.solve.count.program import GOOD, solve_counts
from placer.solve.count.segments import ROUNDING, Piece

if TYPE_CHECKING:
    import numpy.typing as npt

    from placer.solve.count.segments import Segment, Stitching
    from placer.solve.run.budget import Budget

    IntArray = npt.NDArray[np.int64]

# Replicas' worth of free units that a window hands on to the next.
HANDED_ON = 2


@dataclass(eq=False)
class Windows:
    """Replicas stitched so far, and what the leaves still have room for.

    Parameters
    ----------
    problem : Stitching
    most_joints : int
        Sorts of joints times domains of a window: more take many seconds.
    seed : int
    budget : Budget
        Asked before every program.
    """

    problem: Stitching
    most_joints: int
    seed: int
    budget: Budget

    def __post_init__(self) -> None:
        problem = self.problem
        self.free = problem.capacity.copy()
        self.usable = problem.usable
        halves = problem.spare_halves
        self.halves = np.zeros_like(self.free) if halves is None else halves.copy()
        self.replicas: list[Segment] = []
        self.cut_short = False

    def stitch(self) -> bool:
        """Whether all replicas were stitched."""
        problem = self.problem
        order = _tree_order(problem)
        width = max(1, self.most_joints // len(problem.pairs()))
        windows = deque(np.array_split(order, -(-len(order) // width)))
        seen = np.zeros(len(self.free), dtype=bool)
        while windows and not self.budget.is_over():
            window = windows.popleft()
            new = np.isin(problem.parents[0], window)
            due = self._due(seen | new)
            leaves = np.flatnonzero(new | self._handed_on(seen))
            if self._extend(leaves, due - len(self.replicas)):
                seen |= new
            elif len(window) > 1:
                windows.extendleft(np.array_split(window, 2)[::-1])
            else:
                return False
        return not windows

    def _due(self, seen: npt.NDArray[np.bool_]) -> int:
        """Replicas that the leaves seen so far should have made."""
        usable, replicas = self.usable, self.problem.replicas
        if seen.all():
            return replicas
        share = usable[seen].sum() / max(1.0, usable.sum())
        return int(replicas * share + ROUNDING)

    def _handed_on(self, seen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """The last leaves with free units, as many as a few replicas need."""
        free = np.where(seen, self.free, 0)
        later = np.cumsum(free[::-1])[::-1] - free
        return (free > 0) & (later < HANDED_ON * self.problem.length)

    def _extend(self, leaves: IntArray, replicas: int) -> bool:
        """Stitch replicas out of the free units of some leaves."""
        if replicas <= 0:
            return True
        part = _restricted(self.problem, leaves, self.free, self.halves, replicas)
        counts = solve_counts(part, GOOD.within(self.budget, self.seed))
        if counts is None:
            return False
        self.cut_short |= counts.cut_short
        for segment in deal(part, counts):
            pieces = tuple(
                Piece(int(leaves[p.leaf]), p.length, int(leaves[p.twin]))
                for p in segment
            )
            self._take(pieces)
            self.replicas.append(pieces)
        return True

    def _take(self, segment: Segment) -> None:
        for leaf, length, twin in segment:
            if leaf == twin:
                self.free[leaf] -= length
            else:
                self.halves[[leaf, twin]] -= 1


def _tree_order(problem: Stitching) -> IntArray:
    """Domains of level 1, those of an outer domain side by side."""
    ancestors = [np.arange(int(problem.parents[0].max()) + 1)]
    for parent in problem.parents[1:]:
        ancestors.append(parent[ancestors[-1]])
    return np.lexsort(ancestors)


def _restricted(
    problem: Stitching,
    leaves: IntArray,
    free: IntArray,
    halves: IntArray,
    replicas: int,
) -> Stitching:
    """The problem of making some replicas out of the free units of some leaves."""
    parents, domains = [], leaves
    for parent in problem.parents:
        domains, inside = np.unique(parent[domains], return_inverse=True)
        parents.append(inside)
    return replace(
        problem,
        capacity=free[leaves],
        parents=parents,
        replicas=replicas,
        spare_halves=None if problem.spare_halves is None else halves[leaves],
    )
