"""A case of the bound on the step time: what is supposed of all its placements."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from placer.base.arrays import IntArray
from placer.cost.step import Step, StepModel
from placer.solve.bounds.network.ideal import IdealNetwork
from placer.solve.bounds.network.limit import Limit, slow_pipelines_s
from placer.solve.problem.colocation import Colocation, colocation_of
from placer.solve.problem.compiled import Problem
from placer.solve.problem.params import Params
from placer.solve.tree.domains import node_capacity


@dataclass(frozen=True, eq=False)
class Case:
    """Placements whose ranks stay together as a network says."""

    step: Step  # on the network: no placement of the case has a shorter one
    network: IdealNetwork
    params: Params = field(default_factory=Params)

    @classmethod
    def of(
        cls,
        model: StepModel,
        colocation: Colocation,
        params: Params | None = None,
        label: IntArray | None = None,
    ) -> Case:
        """All placements of a colocation, or those that tie ranks as ``label`` does."""
        network = best_network(model, colocation, label)
        return cls(model.step_on(network), network, params or Params())

    @cached_property
    def room(self) -> IntArray:
        """Ranks that each scale-up domain may hold; single GPUs where there is none."""
        tier, topology = self.network.fabric.scale_up_tier, self.network.fabric.topology
        if tier < 0:
            return np.ones(1, dtype=np.int64)
        capacity = self.network.capacity_of_node
        return np.bincount(topology.domain_of_node[tier], capacity).astype(np.int64)

    def members(self, axis: str) -> IntArray:
        """Groups of an axis; shape (g, n)."""
        return self.step.model.job.parallelism.ranks_of_group[axis]

    def cut_s(self, axis: str) -> float:
        """Least time of the slowest pipeline where a group of an axis is cut, s.

        It has half of its members in some domain at the most, and so many NICs.
        """
        members = self.members(axis)
        half, tier = max(1, members.shape[1] // 2), self.network.fabric.scale_up_tier
        limited = self.network.with_limits(Limit(members, half, far=tier))
        slow = self.step.model.step_on(limited).stage_times[axis]
        return float(slow_pipelines_s(self.step, axis, slow).min())


def best_of_problem(problem: Problem, block: int | None = None) -> IdealNetwork:
    """The best network for every placement of a problem.

    ``block``: consecutive ranks of a node; by default those that the launch forces.
    """
    block = problem.forced_block if block is None else block
    colocation = colocation_of(problem.machine, problem.job, block)
    return best_network(problem.model, colocation)


def best_network(
    model: StepModel, colocation: Colocation, label: IntArray | None = None
) -> IdealNetwork:
    """The best network for ranks that stay together as a colocation says.

    ``label`` ((T, R)): set of each rank, where more than the colocation ties is
    supposed.
    """
    label = colocation.label if label is None else label
    block = colocation.block
    capacity = node_capacity(model.topology, block)
    network = IdealNetwork(model.fabric, label, capacity, block == 0, block != 1)
    at_most = model.job.rules.at_most
    if not at_most:
        return network
    # A domain lies in one of each tier further out, which may hold so many.
    most = [float(at_most.get(tier.name, np.inf)) for tier in model.topology.tiers]
    most = np.minimum.accumulate(most[::-1])[::-1].tolist()
    replica = model.job.parallelism.coordinates["dp"]
    return replace(network, replica=replica, most_replicas=tuple(most))


def step_on_best_links(problem: Problem, block: int) -> float:
    """The step time if every group had the best links that it may have anywhere, s.

    No placement has a shorter step; the bounds say more and take longer.
    """
    return problem.model.step_on(best_of_problem(problem, block)).step_time_s
