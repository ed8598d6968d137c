"""How many groups are cut where every node holds one run of ranks.

Groups of n ranks, s apart, fill *blocks* of ``n s`` consecutive ranks. The run of a
node begins at some rank of a block, its place ``a``, and with r ranks the next one
begins at ``(a + r) mod n s``: from 0 the runs of all nodes lead back to 0. A run that
ends inside a block is the end of a part of each group that it has ranks of, but for
those that end with it. A program counts runs by place, length and GPUs of their node:

``least sum of what runs cut``,  ``as many runs lead to a place as begin there``,
``sum r x = ranks``,  ``no more runs than nodes of each size``

It leaves out that runs must follow each other, so none cuts less. A ring of n > 2 in k
parts has k cut edges: one for each part but the last, and one more for the first. By
hand: groups of 6 on nodes of 8 are cut at 8 and 16 of 24 ranks, twice for four groups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]

MOST = 4096  # places of a block times lengths of a run: larger programs are left out


@dataclass(frozen=True, eq=False)
class CutRuns:
    """Groups in a launch by nodes.

    Attributes
    ----------
    gpus : ndarray, shape (N,)
        Of each node.
    size, ranks : int
        Ranks of a group, and of all groups.
    work : float
        Of one program, in CP-SAT's deterministic seconds.
    apart : int
        From one rank of a group to the next.
    grain : int
        Consecutive ranks that share a node.
    """

    gpus: IntArray
    size: int
    ranks: int
    work: float
    apart: int = 1
    grain: int = 1

    @classmethod
    def of(
        cls,
        topology: Topology,
        job: Job,
        members: IntArray,
        label: IntArray,
        work: float,
    ) -> CutRuns | None:
        """Of groups that fill blocks; None for others, and for other launches.

        None also where nodes have islands, which a launch may count in turn.

        Parameters
        ----------
        topology : Topology
        job : Job
        members : ndarray, shape (g, n)
            Every rank once.
        label : ndarray, shape (R,)
            Set of each rank that shares a node.
        work : float
        """
        size, gpus, world = members.shape[1], topology.gpus_of_node, job.world_size
        if job.launcher == "free" or topology.node_tier or size < 2:
            return None
        rows = np.sort(members, axis=1)
        rows = rows[np.argsort(rows[:, 0])]
        apart = int(rows[0, 1] - rows[0, 0])
        in_blocks = np.arange(world).reshape(-1, size, apart).transpose(0, 2, 1)
        if not np.array_equal(rows, in_blocks.reshape(-1, size)):
            return None
        grain = world // (int(label.max()) + 1)
        is_run = world % grain == 0 and (label == np.arange(world) // grain).all()
        grain = grain if is_run and size * apart % grain == 0 else 1
        counts = size * apart // grain * (int(gpus.max()) // grain)
        if counts > MOST and apart < gpus.max():
            return None
        return cls(gpus, size, world, work, apart, grain)

    @property
    def is_alone(self) -> bool:
        """Whether no run has two ranks of a group."""
        return bool(self.apart >= self.gpus.max())

    def fewest_cut(self, part: int) -> int:
        """Groups that have a part of fewer ranks than this, at the least."""
        if self.is_alone:
            return self.ranks // self.size if part > 1 else 0

        def cut(begin: IntArray, end: IntArray) -> int:
            least = np.minimum(end, self.size - end)
            return int(((begin == 0) & (least > 0) & (least < part)).sum())

        return self._least(cut)

    def fewest_edges(self, *, closed: bool) -> int:
        """Edges of these rings, or chains, that are cut at the least."""
        is_ring = closed and self.size > 2
        if self.is_alone:
            edges = self.size if is_ring else self.size - 1
            return self.ranks // self.size * edges

        def cut(begin: IntArray, end: IntArray) -> int:
            ends = (begin < end) & (end < self.size)
            twice = ends & (begin == 0) & is_ring
            return int(ends.sum() + twice.sum())

        return self._least(cut)

    def _least(self, cut: Callable[[IntArray, IntArray], int]) -> int:
        """Least sum of what runs cut.

        That is asked by ranks of each group in a block before a run, and before its
        end.
        """
        program = Program()
        held: list[Term] = []
        through: dict[int, list[Term]] = defaultdict(list)
        grain, block = self.grain, self.size * self.apart
        before = -(-(np.arange(block)[:, None] - np.arange(self.apart)) // self.apart)
        rooms, numbers = np.unique(self.gpus, return_counts=True)
        for room, number in zip(rooms.tolist(), numbers.tolist(), strict=True):
            runs = []
            for begin in range(0, block, grain):
                for length in range(grain, room + 1, grain):
                    end = (begin + length) % block
                    first = begin if begin + length < block else 0
                    price = cut(before[first], before[end]) if end else 0
                    runs.append(Term(program.column(number, price)))
                    held.append(Term(runs[-1].column, length))
                    through[begin].append(Term(runs[-1].column, -1))
                    through[end].append(Term(runs[-1].column))
            program.row(runs, most=number)
        for terms in through.values():
            program.row(terms, 0, 0)
        program.row(held, self.ranks, self.ranks)
        answer = solve(program, Limits(self.work))
        if answer.is_proved and answer.counts is None:
            return 0  # the ranks do not fit: others say so
        return max(0, ceil(answer.bound - 1e-6))
