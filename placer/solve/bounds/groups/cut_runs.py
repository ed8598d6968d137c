"""How many groups are cut where every node holds one run of ranks.

Groups of n ranks, s apart, fill *blocks* of ``n s`` consecutive ranks. `run_program`
counts runs by their place in a block. A run that ends inside a block is the end of a
part of each group that it has ranks of, but for those that end with it; groups with a
first part that is too small, or leaves too little, count where that part ends. Where
sets of ranks lie whole in leaves, the program is asked for each leaf and number of
sets, and the cheapest way to share them out counts. See docs/method.md, "What runs
cut".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import repeat
from math import ceil, inf
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.bounds.groups.leaf_runs import LeafRuns
from placer.solve.bounds.groups.run_program import consecutive, run_program
from placer.solve.count.engine import Limits, solve
from placer.solve.problem.launch import run_tiers

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.machine import Machine

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
    leaves : tuple of LeafRuns
        Outer tiers whose domains hold sets of whole blocks.
    """

    nodes: tuple[tuple[int, int], ...]
    size: int
    ranks: int
    work: float
    apart: int = 1
    grain: int = 1
    leaves: tuple[LeafRuns, ...] = ()

    @classmethod
    def of(
        cls,
        topology: Machine,
        job: Job,
        members: IntArray,
        label: IntArray,
        work: float,
        tier: int,
    ) -> CutRuns | None:
        """Of groups that fill blocks; None for others, and for other launches.

        Parameters
        ----------
        members : ndarray, shape (g, n)
            Every rank once.
        label : ndarray, shape (T, R)
            Set of each rank that shares a domain of each tier.
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
        grain = consecutive(label[tier])
        grain = grain if size * apart % grain == 0 else 1
        counts = size * apart // grain * (int(gpus.max()) // grain)
        if counts > MOST and apart < gpus.max():
            return None
        leaves = tuple(
            leaf
            for leaf in LeafRuns.by_tier(topology, label, tier, grain=1)
            if leaf.size % (size * apart) == 0
        )
        return cls(by_size(gpus), size, world, work, apart, grain, leaves)

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
        if self.is_alone:
            return 0
        alone = replace(self, leaves=())
        found = [_fewest_cut(alone, part)]
        found += [alone._in_leaves(leaves, part) for leaves in self.leaves]
        # Where ranks do not fit others say so.
        return int(max(cut for cut in (0.0, *found) if cut < inf))

    def _in_leaves(self, leaves: LeafRuns, part: int) -> float:
        """The same where each set lies in a leaf; inf where sets do not fit."""
        sets = self.ranks // leaves.size
        least = np.full(sets + 1, inf)
        least[0] = 0.0
        for gpus, number in leaves.leaves:
            nodes = by_size(np.array(gpus))
            cut = [0.0]
            while len(cut) <= sets and cut[-1] < inf:
                held = replace(self, nodes=nodes, ranks=leaves.size * len(cut))
                cut.append(_fewest_cut(held, part))
            for _ in repeat(None, number):
                before, least = least, least.copy()
                for some, more in enumerate(cut[1:], 1):
                    np.minimum(least[some:], before[:-some] + more, out=least[some:])
        return float(least[sets])


# Runs of ranks are alike in many choices of degrees, and in all cases of a bound.
@lru_cache(maxsize=1024)
def _fewest_cut(runs: CutRuns, part: int) -> float:
    """Groups that have a part of fewer ranks than this; inf where ranks do not fit."""
    if runs.ranks > sum(number * room for room, number in runs.nodes):
        return inf
    block, grain = runs.size * runs.apart, runs.grain
    whole = sum(number * (room // block) for room, number in runs.nodes)
    if runs.ranks % block == 0 and runs.ranks <= whole * block:
        return 0  # runs of whole blocks cut nothing
    # Ranks of each group of a block before each place.
    place = np.arange(block)[:, None]
    before = -(-(place - np.arange(runs.apart)) // runs.apart)
    rooms, nodes = np.array(runs.nodes).T
    cost = np.full((len(rooms), block, runs.longest), np.inf)
    for begin in range(0, block, grain):
        for length in range(grain, runs.longest + 1, grain):
            end = before[(begin + length) % block]
            is_first = before[begin if begin + length < block else 0] == 0
            least = np.minimum(end, runs.size - end)
            cut = is_first & (least > 0) & (least < part)
            cost[rooms >= length, begin, length - 1] = cut.sum()
    answer = solve(run_program(cost, nodes, runs.ranks)[0], Limits(runs.work))
    if answer.is_proved and answer.counts is None:
        return inf
    return max(0, ceil(answer.bound - ROUNDING))


def by_size(gpus: IntArray) -> tuple[tuple[int, int], ...]:
    """How many nodes have how many GPUs, from the GPUs of each."""
    sizes, numbers = np.unique(gpus, return_counts=True)
    return tuple(zip(sizes.tolist(), numbers.tolist(), strict=True))
