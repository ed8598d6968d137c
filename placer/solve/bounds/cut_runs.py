"""How many groups of consecutive ranks are cut where every node holds one run of ranks.

Groups of n lie end to end. The run of a node begins at some rank of a group, its place
``a``, and with r ranks the next one begins at ``(a + r) mod n``: from 0 the runs of all
nodes lead back to 0. A run that ends at place 0 cuts no group; any other cuts one, anew
unless it began inside the same group. A program counts runs by place, length and GPUs
of their node:

``least sum of cuts``,  ``as many runs lead to a place as begin there``,
``sum r x = ranks``,  ``no more runs than nodes of each size``

It leaves out that runs must follow each other, so none cuts less. A ring of n > 2 in k
parts has k cut edges, so the first cut of a group counts two, each other one. By hand:
groups of 6 on nodes of 8 are cut at 8 and 16 of 24 ranks, twice for four groups.
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

MOST = 1024  # ranks of a group times those of a node: larger programs are left out


@dataclass(frozen=True, eq=False)
class CutRuns:
    """Groups of consecutive ranks in a launch by nodes.

    Attributes
    ----------
    gpus : ndarray, shape (N,)
        Of each node.
    size, ranks : int
        Ranks of a group, and of all groups.
    work : float
        Of one program, in CP-SAT's deterministic seconds.
    """

    gpus: IntArray
    size: int
    ranks: int
    work: float

    @classmethod
    def of(
        cls, topology: Topology, job: Job, members: IntArray, work: float
    ) -> CutRuns | None:
        """Of groups that are consecutive ranks; None for others, and other launches.

        None also where nodes have islands, which a launch may count in turn.

        Parameters
        ----------
        topology : Topology
        job : Job
        members : ndarray, shape (g, n)
            Every rank once.
        work : float
        """
        size, gpus = members.shape[1], topology.gpus_of_node
        if job.launcher == "free" or topology.node_tier or gpus.max() * size > MOST:
            return None
        in_order = np.sort(members, axis=1)
        in_order = in_order[np.argsort(in_order[:, 0])]
        if not np.array_equal(in_order.ravel(), np.arange(job.world_size)):
            return None
        return cls(gpus, size, job.world_size, work)

    def fewest_cut(self, part: int) -> int:
        """Groups that have a part of fewer ranks than this, at the least."""

        def price(end: int, is_first: bool) -> int:
            return int(is_first and min(end, self.size - end) < part)

        return self._least(price)

    def fewest_edges(self) -> int:
        """Edges of the rings of these groups that are cut, at the least."""
        return self._least(lambda _, is_first: 2 if is_first and self.size > 2 else 1)

    def _least(self, price: Callable[[int, bool], int]) -> int:
        """Least price of all cuts, by their place and whether a group has none yet."""
        program = Program()
        held: list[Term] = []
        through: dict[int, list[Term]] = defaultdict(list)
        rooms, numbers = np.unique(self.gpus, return_counts=True)
        for room, number in zip(rooms.tolist(), numbers.tolist(), strict=True):
            runs = []
            for begin in range(self.size):
                for length in range(1, room + 1):
                    end = begin + length
                    is_first = begin == 0 or end > self.size
                    cut = price(end % self.size, is_first) if end % self.size else 0
                    runs.append(Term(program.column(number, cut)))
                    held.append(Term(runs[-1].column, length))
                    through[begin].append(Term(runs[-1].column, -1))
                    through[end % self.size].append(Term(runs[-1].column))
            program.row(runs, most=number)
        for terms in through.values():
            program.row(terms, 0, 0)
        program.row(held, self.ranks, self.ranks)
        answer = solve(program, Limits(self.work))
        if answer.is_proved and answer.counts is None:
            return 0  # the ranks do not fit: others say so
        return max(0, ceil(answer.bound - 1e-6))
