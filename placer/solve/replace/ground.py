"""The leaves of a machine after failures: who must leave them, and what that costs.

A *leaf* is a domain of the largest tier inside which all hops cost the same, so that
only the leaf of a rank matters. Ranks of a leaf that must move together are an *atom*,
made of *cells*: ranks that share a node.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.cost.hop_cost import HopCost
from placer.solve.improve.region import base_tier
from placer.solve.problem.colocation import join, parts_of
from placer.solve.problem.objective import HopCostObjective
from placer.solve.replace.before import before_of
from placer.solve.tree.capacity import whole_parts

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.plan import Plan
    from placer.solve.problem.compiled import Problem
    from placer.solve.replace.before import Before
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


class Edges(NamedTuple):
    """Edges of the job out of some ranks; three arrays of shape (E,)."""

    source: IntArray
    target: IntArray
    weight: FloatArray


@dataclass(frozen=True, eq=False)
class Ground:
    """A job on what is left of a machine.

    Attributes
    ----------
    topology : Topology
    job : Job
    hops : HopCost
        Of the job with the weights by which moves are judged.
    before : Before
    """

    topology: Topology
    job: Job
    hops: HopCost
    before: Before

    @cached_property
    def tier(self) -> int:
        """Tier of the leaves."""
        return base_tier(self.topology)

    @cached_property
    def home(self) -> IntArray:
        """Leaf that each rank was in; shape (R,)."""
        return np.array(self.before.domain[self.tier])

    @cached_property
    def parts(self) -> IntArray:
        """Ranks that the requirements tie together, by tier; shape (T, R)."""
        return parts_of(self.topology, self.job, 1).label

    @cached_property
    def cell(self) -> IntArray:
        """Ranks that share a node and stay together on it; shape (R,)."""
        if self.job.launcher != "free":
            return np.unique(self.before.domain[0], return_inverse=True)[1]
        return np.array(self.parts[0])

    @cached_property
    def struck(self) -> IntArray:
        """Leaves that lost ranks, ascending."""
        return np.unique(self.home[self.before.is_lost])

    @cached_property
    def residents(self) -> IntArray:
        """Ranks of the struck leaves, ascending."""
        return np.flatnonzero(np.isin(self.home, self.struck))

    @cached_property
    def domains_of_leaf(self) -> IntArray:
        """Domains around each leaf at each tier from its own; shape (T - t, leaves)."""
        rows = self.topology.domain_of_node
        first = np.unique(rows[self.tier], return_index=True)[1]
        return np.array(rows[self.tier :, first])

    @property
    def rise(self) -> float:
        """What an edge costs more, a unit of weight, once it leaves a leaf."""
        distance = self.hops.distance
        outside = distance[self.tier + 1 :]
        return float(outside.min() - distance[self.tier]) if len(outside) else 0.0

    def edges_of(self, ranks: IntArray) -> Edges:
        """The job's edges out of ``ranks``."""
        start, other, weight = self.hops.neighbours
        count = start[ranks + 1] - start[ranks]
        source = np.repeat(ranks, count)
        first = np.repeat(start[ranks] - (np.cumsum(count) - count), count)
        place = first + np.arange(len(source))
        return Edges(source, other[place], weight[place])

    def distances(self, first: IntArray, second: IntArray) -> FloatArray:
        """Distance before the failure between ranks; shape (any,)."""
        domain = self.before.domain[:-1]
        apart = (domain[:, first] != domain[:, second]).sum(axis=0)
        found: FloatArray = self.hops.distance[apart]
        return found

    def room_of_domains(self, tier: int) -> IntArray:
        """Ranks that each domain of a tier can hold in whole parts; shape (D,)."""
        topology, sizes = self.topology, []
        for label in self.parts[: tier + 1]:
            counts = np.unique(np.bincount(label))
            if len(counts) > 1:
                gpus = np.bincount(topology.domain_of_node[tier], topology.gpus_of_node)
                return gpus.astype(np.int64)
            sizes.append(int(counts[0]))
        sizes += [1] * (len(topology.tiers) - len(sizes))
        return whole_parts(topology, topology.gpus_of_node, sizes)[tier]

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

    def tied(self, limit: float, ranks: IntArray, cells: bool = False) -> IntArray:
        """Atom of each of ``ranks``; all others are by themselves; shape (R,).

        Parts are tied, and groups that no cut of less than ``limit`` divides; cells too
        if wanted. ``ranks`` are all those of some leaves.
        """
        atom = np.arange(len(self.home))
        for label in (*[self.cell] * cells, *self.parts[: self.tier + 1]):
            atom = _joined_in_row(atom, ranks, label, self.home)
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
            atom = join(atom, edges) if len(edges) else atom
        return atom

    def dearest_cut(self) -> float:
        """What it costs at least to divide a group of the axis dearest to divide."""
        cuts = [self._least_cut(axis.axis, axis.weight) for axis in self.hops.axes]
        return max(cuts, default=0.0)

    def _least_cut(self, axis: str, weight: float) -> float:
        """What it costs at least to divide a group that is in one leaf."""
        members = self.job.parallelism.size(axis)
        is_ring = axis not in ("pp", "ep") and members > 2
        edges = members - 1 if axis == "ep" else 2 if is_ring else 1
        return edges * weight * self.rise

    def _whole(self, axis: str, edges: IntArray) -> IntArray:
        """Edges of groups that are in one leaf as a whole."""
        members = self.job.parallelism.ranks_of_group[axis]
        inside = self.home[members]
        group = np.empty(len(self.home), dtype=np.int64)
        group[members] = np.arange(len(members))[:, None]
        is_whole = (inside == inside[:, :1]).all(axis=1)
        return np.array(edges[is_whole[group[edges[:, 0]]]])


def ground_of(problem: Problem, plan: Plan) -> Ground:
    """The job of a plan on what is left of its machine."""
    topology, job, goal = problem.machine, problem.job, problem.goal
    if isinstance(goal, HopCostObjective):
        hops = goal.hops
    else:
        hops = HopCost(topology, replace(job, weights=goal.weights))
    return Ground(topology, job, hops, before_of(plan, topology))


def _joined_in_row(
    atom: IntArray, ranks: IntArray, label: IntArray, home: IntArray
) -> IntArray:
    """Atoms after tying ``ranks`` of the same label and home together."""
    row = ranks[np.lexsort((ranks, label[ranks], home[ranks]))]
    same = (label[row[1:]] == label[row[:-1]]) & (home[row[1:]] == home[row[:-1]])
    pairs = np.stack((row[:-1], row[1:]), axis=1)[same]
    return join(atom, pairs) if len(pairs) else atom
