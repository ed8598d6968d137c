"""Whether runs of ranks let gradient groups have as many members on a node as needed.

In a launch by nodes a node holds a run of ranks. A run *serves* if it has enough
members of each gradient group, or all, or none; prices (`priced_runs.py`) tell whether
nodes may hold runs that serve. Bisection finds the largest ``x`` for which no runs do.
What several stages expose adds up, so from there on what they have at the least is
tried in the order of the time that it exposes. Where sets lie whole in leaves, each
leaf is asked (`leaf_runs.py`). See docs/method.md, "What no placement avoids".

Shapes: R ranks, P stages, U units of ranks that share a node, L lengths of a run in
units.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import BoolArray, IntArray, row_of_number
from placer.solve.bounds.groups.leaf_runs import LeafRuns, fits
from placer.solve.bounds.groups.run_program import consecutive
from placer.solve.bounds.network.limit import (
    Limit,
    exposed_by_members,
    gradient_groups,
    slow_sync,
    with_slow_stages,
)

if TYPE_CHECKING:
    from placer.cost.gradients import SyncTime
    from placer.cost.step import Step
    from placer.solve.bounds.network.ideal import IdealNetwork

# Units, and ranks times squares of the longest run: larger jobs are left out.
MOST_UNITS, MOST_PAIRS = 1 << 14, 1 << 23
CHOICES = 64  # of members of each stage: after these the last one counts


@dataclass(frozen=True, eq=False)
class GradientRuns:
    """Gradient groups in a launch by nodes.

    Attributes
    ----------
    group_of_rank : ndarray, shape (R,)
    size, grain : int
        Members of a group, and consecutive ranks that share a node.
    gpus : ndarray, shape (N,)
        Of each scale-up domain, a host or an island that is counted in turn.
    leaves : tuple of LeafRuns
        Outer tiers whose domains hold sets of ranks whole.
    """

    group_of_rank: IntArray
    size: int
    grain: int
    gpus: IntArray
    leaves: tuple[LeafRuns, ...]

    @classmethod
    def of(cls, network: IdealNetwork, groups: IntArray) -> GradientRuns | None:
        """Of such groups; None where scale-up domains hold no runs, or cannot be left.

        Parameters
        ----------
        groups : ndarray, shape (g, n)
            Every rank once.
        """
        tier = network.fabric.scale_up_tier
        if not network.by_nodes or tier not in network.run_tiers:
            return None
        if not network.fabric.can_leave_scale_up:
            return None
        world, topology = groups.size, network.fabric.topology
        grain = consecutive(network.label[tier])
        gpus = np.bincount(topology.domain_of_gpu[tier])
        pairs = world * int(gpus.max()) ** 2
        if world // grain > MOST_UNITS or pairs > MOST_PAIRS or grain > gpus.max():
            return None
        leaves = tuple(LeafRuns.by_tier(topology, network.label, tier, grain))
        return cls(row_of_number(groups), int(groups.shape[1]), grain, gpus, leaves)

    def may_have(self, fewest: IntArray) -> bool:
        """Whether some runs have so many members of each group; False is certain.

        Parameters
        ----------
        fewest : ndarray, shape (g,)
            Of each group, on each node that does not have all of it.
        """
        return self._may_be(self._serves(fewest[self.group_of_rank]))

    def may_part(self, groups: IntArray) -> bool:
        """Whether no node may have members of all these groups; False is certain."""
        if len(groups) > self.gpus.max():
            return True
        rank, group = self._windows()
        found = []
        for end in range(self.grain, group.shape[1] + 1, self.grain):
            held = [(group[:, :end] == one).any(axis=1) for one in groups]
            found.append(~np.all(held, axis=0) & (rank[:, end - 1] < self.world))
        return self._may_be(np.stack(found, axis=1))

    @property
    def world(self) -> int:
        """Ranks of the job."""
        return len(self.group_of_rank)

    def _may_be(self, serves: BoolArray) -> bool:
        """Whether the nodes may hold runs that serve; False is certain."""
        may_fit = fits(self.gpus // self.grain, serves)
        return may_fit and all(leaves.may_hold(serves) for leaves in self.leaves)

    def _windows(self) -> tuple[IntArray, IntArray]:
        """Ranks of the longest run from each unit on, and their groups; (U, longest).

        Ranks past the end belong to group -1.
        """
        longest = int(self.gpus.max()) // self.grain * self.grain
        rank = np.arange(self.world)[:: self.grain, None] + np.arange(longest)
        group = np.where(rank < self.world, self.group_of_rank[rank % self.world], -1)
        return rank, group

    def _serves(self, fewest: IntArray) -> BoolArray:
        """Whether a run that begins at a unit is of use, by its length less 1; (U, L).

        Parameters
        ----------
        fewest : ndarray, shape (R,)
            Members of its group that a node needs for each rank.
        """
        rank, group = self._windows()
        needed = np.where(group < 0, 0, fewest[rank % self.world])
        found = []
        for end in range(self.grain, group.shape[1] + 1, self.grain):
            inside = group[:, :end]
            members = (inside[:, :, None] == inside[:, None, :]).sum(axis=2)
            enough = (members >= needed[:, :end]) | (members == self.size)
            found.append(enough.all(axis=1) & (rank[:, end - 1] < self.world))
        return np.stack(found, axis=1)


def exposed_in_runs(step: Step, network: IdealNetwork) -> float:
    """Least data-parallel time that runs of ranks expose, s.

    Parameters
    ----------
    step : Step
        On ``network``.
    """
    model = step.model
    groups, least = gradient_groups(model.job), step.exposed_data_parallel_s
    runs = GradientRuns.of(network, groups)
    if step.sync is None or runs is None:
        return least
    stage = model.job.parallelism.coordinates["pp"][groups[:, 0]]
    _, by_members = exposed_by_members(step, network, groups, int(runs.gpus.max()))

    def needed(seconds: float) -> IntArray:
        """Members of each stage with which it exposes less alone."""
        return np.asarray(1 + (by_members >= seconds).sum(axis=0))

    # Runs that expose less have so many; the last time that is refuted is a bound.
    known = np.unique(by_members[by_members > least])
    refuted = bisect_left(
        known, True, key=lambda seconds: runs.may_have(needed(seconds)[stage])
    )
    if not refuted:
        return least
    few = needed(float(known[refuted - 1])) - 1

    @cache
    def slow(members: int) -> SyncTime:
        return slow_sync(model, network, Limit(groups, members))

    def exposed_s(fewest: tuple[int, ...]) -> float:
        held = [(slow(n), s) for s, n in enumerate(fewest) if n < len(by_members)]
        return with_slow_stages(step, held).exposed_data_parallel_s

    # What several stages expose may add up, so one after the other has fewer.
    most = np.full(len(few), len(by_members))
    first = [np.where(row, few, most) for row in np.eye(len(few), dtype=bool)]
    begin = [tuple(one.tolist()) for one, n in zip(first, few, strict=True) if n > 0]
    return _least(
        begin, exposed_s, lambda fewest: runs.may_have(np.array(fewest)[stage])
    )


def _least(
    begin: list[tuple[int, ...]],
    exposed_s: Callable[[tuple[int, ...]], float],
    may_have: Callable[[tuple[int, ...]], bool],
) -> float:
    """Least time of members of each stage that runs may have, s.

    Parameters
    ----------
    begin : list of tuple of int
        Every choice that runs may have is one of these, or has fewer members.
    exposed_s : callable
        Time of a choice; fewer members take no less.
    may_have : callable
        Whether runs may have so many members of each stage.
    """
    waiting = [(exposed_s(fewest), fewest) for fewest in begin]
    heapify(waiting)
    seen, least = set(begin), 0.0
    for _ in range(CHOICES):
        least, fewest = heappop(waiting)
        if max(fewest) == 1 or may_have(fewest):
            break
        for at, members in enumerate(fewest):
            fewer = (*fewest[:at], members - 1, *fewest[at + 1 :])
            if members > 1 and fewer not in seen:
                seen.add(fewer)
                heappush(waiting, (exposed_s(fewer), fewer))
    return least
