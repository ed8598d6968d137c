"""A case of the bound on the step time: what is supposed of all its placements.

**GPUs of unequal speed.** The stages of all replicas, sorted by the speed of their
slowest GPU, are at best as fast as the fastest GPUs, sorted and cut into as many
pieces: the j fastest of them hold j times as many GPUs as one does. So of the stages no
faster than some speed one replica has its share, rounded up, and its pipeline is at
best as with those few in their best places and all others at full speed. By hand: two
replicas of two stages on one GPU each, one of the four half as fast. One replica has
one slow stage, or more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.schedule import pipeline_times
from placer.cost.step import Step, StepModel
from placer.solve.bounds import Proof
from placer.solve.bounds.ideal import IdealNetwork, fastest_stages
from placer.solve.bounds.limits import (
    Limit,
    added_by_stage,
    sets_of,
    slow_pipelines_s,
)
from placer.solve.problem.colocation import Colocation, colocation_of
from placer.solve.problem.compiled import Problem
from placer.solve.problem.params import Params
from placer.solve.run.budget import ENDLESS, Budget
from placer.solve.tree.domains import node_capacity


@dataclass(frozen=True, eq=False)
class Case:
    """Placements whose ranks stay together as a network says."""

    step: Step  # on the network: no placement of the case has a shorter one
    network: IdealNetwork
    params: Params

    @classmethod
    def of(
        cls,
        model: StepModel,
        colocation: Colocation,
        params: Params,
        label: IntArray,
    ) -> Case:
        """Those that tie the ranks of a colocation as ``label`` does."""
        network = best_network(model, colocation, label)
        return cls(model.step_on(network), network, params)

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


def slowest_stages(
    problem: Problem, block: int, _incumbent: float, _budget: Budget = ENDLESS
) -> Proof | None:
    """The least step time of all placements; None where all GPUs are as fast."""
    axes, topology = problem.job.parallelism, problem.machine
    stages = axes.dp * axes.pp
    speed = fastest_stages(topology, stages, axes.world_size // stages)
    if len(speed) < stages or (speed == speed[0]).all():
        return None
    step = problem.model.step_on(best_of_problem(problem, block))
    bare = step.step_time_s - step.pipeline_s(step.axes)
    seconds, slow = max(_least(step, speed))
    argument = (
        f"some stage works at {slow:.3g} of the usual speed, on the fastest GPUs there "
        "are, every tp, cp, ep and pp group at its nearest tier"
    )
    return Proof(bare + seconds, argument)


def _least(step: Step, speed: FloatArray) -> Iterator[tuple[float, float]]:
    """(least seconds of the slowest pipeline, speed) for each speed."""
    job = step.model.job
    axes, added = job.parallelism, added_by_stage(step)
    for slow in np.unique(speed[speed < speed[0]]).tolist():
        number = -(-int((speed <= slow).sum()) // axes.dp)
        while (places := sets_of(step, axes.pp, number)) is None:
            number -= 1
        slowness = np.tile(step.slowness[:1], (len(places), 1))
        slowness[np.arange(len(places))[:, None], places] = 1 / slow
        forward, backward, hop = (np.tile(one, (len(places), 1)) for one in added)
        rows = step.model.patterns(forward, backward, hop, slowness)
        seconds = pipeline_times(rows, job.micro_batches, axes.vp, job.overlap.pp)
        yield float(seconds.min()), slow
