"""A machine after failures: where ranks were, who must leave, and what that costs.

A *base domain* is one of the largest tier inside which all hops cost the same, so only
the base domain of a rank matters. Ranks that leave it together or not at all are a
*move group*, made of *cells*: ranks that share a node.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray, row_of_number
from placer.cost.hop_cost import HopCost
from placer.solve.problem.colocation import colocation_of, join
from placer.solve.problem.objective import HopCostObjective
from placer.solve.tree.base import base_tier
from placer.solve.tree.capacity import whole_sets

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.previous import Previous, PreviousPlan
    from placer.solve.problem.compiled import Problem
    from placer.topology.machine import Machine


class Edges(NamedTuple):
    """Edges of the job out of some ranks; three arrays of shape (E,)."""

    source: IntArray
    target: IntArray
    weight: FloatArray


@dataclass(frozen=True, eq=False)
class RepairState:
    """A job on what is left of a machine."""

    problem: Problem
    before: Previous

    @property
    def topology(self) -> Machine:
        """What is left of the machine."""
        return self.problem.machine

    @property
    def job(self) -> Job:
        """The job, its ranks numbered as before."""
        return self.problem.job

    @cached_property
    def hops(self) -> HopCost:
        """The hop cost with the weights by which moves are judged."""
        goal = self.problem.goal
        if isinstance(goal, HopCostObjective):
            return goal.hops
        return HopCost(self.topology, replace(self.job, weights=goal.weights))

    @cached_property
    def tier(self) -> int:
        """Tier of the base domains."""
        return base_tier(self.topology)

    @cached_property
    def home(self) -> IntArray:
        """Base domain that each rank was in; shape (R,)."""
        return np.array(self.before.domain[self.tier])

    @cached_property
    def sets(self) -> IntArray:
        """Ranks that the requirements tie together, by tier; shape (T, R)."""
        return colocation_of(self.topology, self.job, 1).label

    @cached_property
    def cell(self) -> IntArray:
        """Ranks that share a node and stay together on it; shape (R,)."""
        if self.job.launcher != "free":
            return np.unique(self.before.domain[0], return_inverse=True)[1]
        return np.array(self.sets[0])

    @cached_property
    def affected(self) -> IntArray:
        """Base domains that lost ranks, ascending."""
        return np.unique(self.home[self.before.is_lost])

    @cached_property
    def residents(self) -> IntArray:
        """Ranks of the affected base domains, ascending."""
        return np.flatnonzero(np.isin(self.home, self.affected))

    @cached_property
    def domains_of_base(self) -> IntArray:
        """Domains around each base domain from its tier on; shape (T - t, D)."""
        rows = self.topology.domain_of_node
        first = np.unique(rows[self.tier], return_index=True)[1]
        return np.array(rows[self.tier :, first])

    @property
    def rise(self) -> float:
        """What an edge costs more, a unit of weight, once it leaves a base domain."""
        distance = self.hops.distance
        outside = distance[self.tier + 1 :]
        return float(outside.min() - distance[self.tier]) if len(outside) else 0.0

    def edges_of(self, ranks: IntArray) -> Edges:
        """The job's edges out of ``ranks``."""
        start, other, weight = self._neighbours
        count = start[ranks + 1] - start[ranks]
        source = np.repeat(ranks, count)
        first = np.repeat(start[ranks] - (np.cumsum(count) - count), count)
        place = first + np.arange(len(source))
        return Edges(source, other[place], weight[place])

    @cached_property
    def _neighbours(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Where the edges of each rank begin, their other ends and their weights."""
        axes = self.hops.axes
        edges = np.concatenate([a.edges for a in axes] or [np.empty((0, 2), np.int64)])
        weight = np.repeat([a.weight for a in axes], [len(a.edges) for a in axes])
        source = edges.T.ravel()
        by_source = np.argsort(source, kind="stable")
        degree = np.bincount(source, minlength=self.job.world_size)
        start = np.concatenate(([0], np.cumsum(degree)))
        return start, edges[:, ::-1].T.ravel()[by_source], np.tile(weight, 2)[by_source]

    def distances(self, first: IntArray, second: IntArray) -> FloatArray:
        """Distance before the failure between ranks; shape (any,)."""
        domain = self.before.domain[:-1]
        apart = (domain[:, first] != domain[:, second]).sum(axis=0)
        found: FloatArray = self.hops.distance[apart]
        return found

    def room_of_domains(self, tier: int) -> IntArray:
        """Ranks that each domain of a tier can hold in whole sets; shape (D,)."""
        topology, sizes = self.topology, []
        for label in self.sets[: tier + 1]:
            counts = np.unique(np.bincount(label))
            if len(counts) > 1:
                gpus = np.bincount(topology.domain_of_node[tier], topology.gpus_of_node)
                return gpus.astype(np.int64)
            sizes.append(int(counts[0]))
        sizes += [1] * (len(topology.tiers) - len(sizes))
        return whole_sets(topology, topology.gpus_of_node, sizes)[tier]

    def cost_before(self) -> float:
        """Hop cost before the failure."""
        total = 0.0
        for axis in self.hops.axes:
            first, second = axis.edges.T
            total += axis.weight * float(self.distances(first, second).sum())
        return total

    @cached_property
    def gains(self) -> FloatArray:
        """The most that each rank can save by coming nearer; shape (R,)."""
        nearest = float(self.hops.distance.min())
        found = np.zeros(len(self.home))
        for axis in self.hops.axes:
            first, second = axis.edges.T
            saved = axis.weight * (self.distances(first, second) - nearest)
            np.add.at(found, first, saved)
            np.add.at(found, second, saved)
        return found

    def tied(
        self,
        limit: float,
        ranks: IntArray,
        cells: bool = False,
        parts: Collection[str] = (),
    ) -> IntArray:
        """Move group of each of ``ranks``; all others are by themselves; shape (R,).

        Sets are tied, and groups that no cut of less than ``limit`` divides; cells too
        if wanted, and what a base domain has of a group of one of the axes ``parts``.
        ``ranks`` are all those of some base domains.
        """
        group = np.arange(len(self.home))
        members = self.job.parallelism.ranks_of_group
        tied = (row_of_number(members[axis]) for axis in parts)
        for label in (*[self.cell] * cells, *self.sets[: self.tier + 1], *tied):
            group = _joined_in_row(group, ranks, label, self.home)
        chosen = np.zeros(len(self.home), dtype=bool)
        chosen[ranks] = True
        for axis in self.hops.axes:
            if self._least_cut(axis.axis, axis.weight) <= limit:
                continue
            first, second = axis.edges.T
            inside = chosen[first] & (self.home[first] == self.home[second])
            edges = axis.edges[inside]
            if axis.weight * self.rise <= limit:
                edges = self._whole(axis.axis, edges)
            group = join(group, edges) if len(edges) else group
        return group

    def dearest_cut(self) -> float:
        """What it costs at least to divide a group of the axis dearest to divide."""
        cuts = [self._least_cut(axis.axis, axis.weight) for axis in self.hops.axes]
        return max(cuts, default=0.0)

    def _least_cut(self, axis: str, weight: float) -> float:
        """What it costs at least to divide a group that is in one base domain."""
        members = self.job.parallelism.size(axis)
        is_ring = axis not in ("pp", "ep") and members > 2
        edges = members - 1 if axis == "ep" else 2 if is_ring else 1
        return edges * weight * self.rise

    def _whole(self, axis: str, edges: IntArray) -> IntArray:
        """Edges of groups that are in one base domain as a whole."""
        members = self.job.parallelism.ranks_of_group[axis]
        inside = self.home[members]
        is_whole = (inside == inside[:, :1]).all(axis=1)
        return np.array(edges[is_whole[row_of_number(members)[edges[:, 0]]]])


def repair_state(problem: Problem, previous: PreviousPlan) -> RepairState:
    """The job of a plan on what is left of its machine."""
    return RepairState(problem, previous.seats(problem.job))


def _joined_in_row(
    group: IntArray, ranks: IntArray, label: IntArray, home: IntArray
) -> IntArray:
    """Move groups after tying ``ranks`` of the same label and home together."""
    row = ranks[np.lexsort((ranks, label[ranks], home[ranks]))]
    same = (label[row[1:]] == label[row[:-1]]) & (home[row[1:]] == home[row[:-1]])
    pairs = np.stack((row[:-1], row[1:]), axis=1)[same]
    return join(group, pairs) if len(pairs) else group
