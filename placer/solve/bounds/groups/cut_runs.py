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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, gcd, lcm
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term
from placer.solve.problem.launch import run_tiers

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]

MOST = 4096  # places of a block times lengths of a run: larger programs are left out
ROUNDING = 1e-6


@dataclass(frozen=True)
class CutRuns:
    """Groups in a launch by nodes.

    Attributes
    ----------
    nodes : tuple of pairs of int
        GPUs of a node, and how many nodes have so many; the smallest first.
    size, ranks : int
        Ranks of a group, and of all groups.
    work : float
        Of one program, in CP-SAT's deterministic seconds.
    apart : int
        From one rank of a group to the next.
    grain : int
        Consecutive ranks that share a node.
    """

    nodes: tuple[tuple[int, int], ...]
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
        tier: int,
    ) -> CutRuns | None:
        """Of groups that fill blocks; None for others, and for other launches.

        Parameters
        ----------
        topology : Topology
        job : Job
        members : ndarray, shape (g, n)
            Every rank once.
        label : ndarray, shape (R,)
            Set of each rank that shares a domain of the tier.
        work : float
        tier : int
            Whose domains are the nodes: hosts, or islands that are counted in turn.
        """
        size, world = members.shape[1], job.world_size
        if job.launcher == "free" or tier not in run_tiers(topology) or size < 2:
            return None
        gpus = np.bincount(topology.domain_of_gpu[tier])
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
        return cls(by_size(gpus), size, world, work, apart, grain)

    @property
    def longest(self) -> int:
        """Ranks of the longest run."""
        return self.nodes[-1][0]

    @property
    def is_alone(self) -> bool:
        """Whether no run has two ranks of a group."""
        return self.apart >= self.longest

    def fewest_cut(self, part: int) -> int:
        """Groups that have a part of fewer ranks than this, at the least."""
        # Where no node has so many ranks, no group has a part that large.
        if part > 1 and (self.is_alone or part > self.longest):
            return self.ranks // self.size
        return 0 if self.is_alone else _fewest_cut(self, part)

    def fewest_edges(self, *, closed: bool) -> int:
        """Edges of these rings, or chains, that are cut at the least."""
        ring = Ring(self, 1.0, closed=closed)
        if self.is_alone:
            return ring.all_edges
        edges = least_weight([ring], self.work)
        return max(0, ceil(edges - ROUNDING))

    def price(
        self, begin: int, length: int, cut: Callable[[IntArray, IntArray], int]
    ) -> int:
        """What a run cuts where it ends, by its place and length."""
        block = self.size * self.apart
        begin %= block
        end = (begin + length) % block
        first = begin if begin + length < block else 0
        return cut(self._before[first], self._before[end]) if end else 0

    @cached_property
    def _before(self) -> IntArray:
        """Ranks of each group of a block before each place; shape (n s, s)."""
        place = np.arange(self.size * self.apart)[:, None]
        return np.asarray(-(-(place - np.arange(self.apart)) // self.apart))


# Runs of ranks are alike in many choices of degrees, and in all cases of a bound.
@lru_cache(maxsize=1024)
def _fewest_cut(runs: CutRuns, part: int) -> int:
    """Groups that have a part of fewer ranks than this, at the least."""

    def cut(begin: IntArray, end: IntArray) -> int:
        least = np.minimum(end, runs.size - end)
        return int(((begin == 0) & (least > 0) & (least < part)).sum())

    def price(begin: int, length: int) -> int:
        return runs.price(begin, length, cut)

    least = _least_sum(runs, runs.size * runs.apart, runs.grain, price, runs.work)
    return max(0, ceil(least - ROUNDING))


class Ring(NamedTuple):
    """Rings, or chains, of groups of ranks.

    Attributes
    ----------
    runs : CutRuns
    weight : float
        Of an edge.
    closed : bool
    """

    runs: CutRuns
    weight: float
    closed: bool

    @property
    def _is_ring(self) -> bool:
        return self.closed and self.runs.size > 2

    @property
    def all_edges(self) -> int:
        """Edges of all groups."""
        size = self.runs.size
        return self.runs.ranks // size * (size if self._is_ring else size - 1)

    def edges(self, begin: int, length: int) -> int:
        """Edges that a run cuts, by its place and length."""

        def cut(before: IntArray, end: IntArray) -> int:
            ends = (before < end) & (end < self.runs.size)
            twice = ends & (before == 0) & self._is_ring
            return int(ends.sum() + twice.sum())

        return self.runs.price(begin, length, cut)


def least_weight(rings: Sequence[Ring], work: float) -> float:
    """Weight of the edges that are cut at the least.

    All axes together, as the same runs cut the groups of each. By hand: tp 2 and cp 4
    on nodes of 7 GPUs. Runs of six cut no pair, and three blocks of eight in four; runs
    of seven and one cut fewer of these, and every second pair at an end.

    Parameters
    ----------
    rings : sequence of Ring
        Of which a run may have two ranks.
    work : float
        Of one program, in CP-SAT's deterministic seconds.
    """
    period = lcm(*(ring.runs.size * ring.runs.apart for ring in rings))
    grain = gcd(*(ring.runs.grain for ring in rings))
    runs, longest = rings[0].runs, rings[0].runs.longest
    if len(rings) > 1 and period // grain * (longest // grain) > MOST:
        return sum(least_weight([ring], work) for ring in rings)

    def price(begin: int, length: int) -> float:
        return sum(ring.weight * ring.edges(begin, length) for ring in rings)

    return _least_sum(runs, period, grain, price, work)


def _least_sum(
    runs: CutRuns,
    period: int,
    grain: int,
    price: Callable[[int, int], float],
    work: float,
) -> float:
    """Least sum of the prices of runs, which repeat after a period; 0 for none."""
    whole = sum(number * (room // period) for room, number in runs.nodes)
    if runs.ranks % period == 0 and runs.ranks <= whole * period:
        return 0.0  # runs of whole periods cut nothing
    program = Program()
    held: list[Term] = []
    through: dict[int, list[Term]] = defaultdict(list)
    for room, number in runs.nodes:
        columns = []
        for begin in range(0, period, grain):
            for length in range(grain, room + 1, grain):
                column = program.column(number, price(begin, length))
                columns.append(Term(column))
                held.append(Term(column, length))
                through[begin].append(Term(column, -1))
                through[(begin + length) % period].append(Term(column))
        program.row(columns, most=number)
    for terms in through.values():
        program.row(terms, 0, 0)
    program.row(held, runs.ranks, runs.ranks)
    answer = solve(program, Limits(work))
    if answer.is_proved and answer.counts is None:
        return 0  # the ranks do not fit: others say so
    return max(0.0, answer.bound)


def by_size(gpus: IntArray) -> tuple[tuple[int, int], ...]:
    """How many nodes have how many GPUs, from the GPUs of each."""
    sizes, numbers = np.unique(gpus, return_counts=True)
    return tuple(zip(sizes.tolist(), numbers.tolist(), strict=True))
