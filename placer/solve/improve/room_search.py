"""Local search on step time over what nodes hold, where they have room to spare.

A launch by nodes is a row of *runs*: nodes, each with so many consecutive ranks. A run
goes to an unused node, two runs exchange their nodes, or some ranks of one node go to
another. Rows are annealed (`launch_walk.py`). See docs/method.md, section 8.3.

Shapes: R ranks, N nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import IntArray, equal_runs
from placer.solve.improve.launch_walk import offer_walked
from placer.solve.problem.axes import sizes_kept_whole

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

NAME = "room annealed"
TRIES = 20  # placements priced for each run, at most
MISSES = 20  # changes that are drawn for one that is priced


class Run(NamedTuple):
    """Consecutive ranks on one node."""

    node: int
    ranks: int


Row = tuple[Run, ...]


def room_annealed(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Use the room of the best placement's machine otherwise."""
    best, job = incumbent.gpu_of_rank, problem.job
    has_spare = problem.machine.num_gpus > job.world_size
    is_asked = problem.goal.name == "time" and job.launcher != "free" and has_spare
    if best is None or not is_asked:
        return
    row = runs_of(problem.machine.node_of_gpu[best])
    if len({run.node for run in row}) < len(row):
        return  # a host's GPUs are counted across its islands: no run has all of one
    search = _Search(problem)
    offer_walked(problem, incumbent, budget, NAME, search, row, TRIES * len(row))


def runs_of(node_of_rank: IntArray) -> Row:
    """The runs of a placement; a node that comes again has another one."""
    begins, lengths = equal_runs(node_of_rank)
    pairs = zip(node_of_rank[begins].tolist(), lengths.tolist(), strict=True)
    return tuple(Run(*pair) for pair in pairs)


class _Search:
    """Rows of runs on the nodes of a machine."""

    def __init__(self, problem: Problem) -> None:
        self.room: list[int] = problem.machine.gpus_of_node.tolist()
        # Ranks that go to another node together: whole groups, or any number.
        self.units = [*sizes_kept_whole(problem.job.parallelism), 1]
        self.rng = np.random.default_rng(problem.seed)

    def nodes(self, row: Row) -> IntArray:
        """Node of every rank."""
        return np.repeat(*np.array(row).T)

    def changed(self, row: Row) -> Row | None:
        """The row after some change; None where none was drawn."""
        for _ in range(MISSES):
            one = self._below(len(row))
            node = self._below(len(self.room))
            changed = self._with_ranks_moved(row, one, node)
            if changed != row:
                return changed
        return None

    def _with_ranks_moved(self, row: Row, one: int, node: int) -> Row:
        """The row when some or all ranks of a run go to a node, as far as it has room.

        If it has a run already, the two may also change places.
        """
        run, room = row[one], self.room[node]
        place = next((i for i, other in enumerate(row) if other.node == node), None)
        if place is None:
            moved = run.ranks if self._below(2) else self._some(min(run.ranks, room))
            if moved > room:
                return row
            rest = (Run(run.node, run.ranks - moved),) if moved < run.ranks else ()
            return (*row[:one], *rest, Run(node, moved), *row[one + 1 :])
        if place == one:
            return row
        other, runs = row[place], list(row)
        if self._below(2):
            if other.ranks > self.room[run.node] or run.ranks > room:
                return row
            runs[one], runs[place] = (
                Run(other.node, run.ranks),
                Run(run.node, other.ranks),
            )
        else:
            moved = self._some(min(run.ranks, room - other.ranks))
            runs[place] = Run(node, other.ranks + moved)
            runs[one] = Run(run.node, run.ranks - moved)
        return tuple(run for run in runs if run.ranks)

    def _some(self, most: int) -> int:
        """So many ranks at the most, in whole groups."""
        unit = self.units[self._below(len(self.units))]
        return unit * (1 + self._below(most // unit)) if most >= unit else 0

    def _below(self, limit: int) -> int:
        return int(self.rng.integers(limit))
