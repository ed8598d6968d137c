"""What is to be placed on what, at what cost: compiled once, read by every method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from placer.base.arrays import IntArray
from placer.cost.hop_cost import HopCost
from placer.cost.step import StepModel
from placer.job.model import Job
from placer.job.rules import Rules
from placer.solve.problem.colocation import (
    Colocation,
    check_requirements,
    colocation_of,
)
from placer.solve.problem.launch import (
    counts_by_island,
    feasible_colocations,
    forced_block,
    islands_are_alike,
)
from placer.solve.problem.objective import (
    HopCostObjective,
    Objective,
    TimeObjective,
    objective_of,
)
from placer.solve.problem.params import Params
from placer.solve.problem.rules import Limits, obeys
from placer.solve.tree.capacity import node_capacity
from placer.topology.machine import Domains, Machine

T = TypeVar("T")

# Placements of one construction that are priced, and ranks of all of them together:
# pricing takes time in proportion to the ranks.
FILLS_PRICED, RANKS_PRICED = 64, 2_000_000


@dataclass(frozen=True, eq=False)
class Problem:
    """A job to be placed on a machine."""

    # Its nodes in launch order; where nodes have islands, its islands (`by_island`).
    machine: Machine
    job: Job
    goal: Objective
    limits: Limits  # the job's rules about hosts and failures, in the machine's indices
    seed: int = 0
    params: Params = field(default_factory=Params)
    # Whether the nodes were put in the order of their names, and listed otherwise.
    by_name: bool = False
    _made: dict[Callable[[Problem], Any], Any] = field(
        default_factory=dict, init=False, repr=False
    )

    @classmethod
    def of(
        cls, machine: Domains, job: Job, objective: str | None = None, seed: int = 0
    ) -> Problem:
        """The problem with the objective called so; by default what the job is for.

        Raises `InputError` if a requirement names a tier that the machine lacks, or the
        job lacks what the objective needs.
        """
        seen = machine.by_island
        check_requirements(seen, job)
        goal = objective_of(seen, job, objective)
        return cls(seen, job, goal, Limits.of(seen, job), seed)

    def on(self, machine: Domains, job: Job) -> Problem:
        """The problem of another machine or job."""
        seen = machine.by_island
        if seen is self.machine and job is self.job:
            return self
        goal = objective_of(seen, job, self.goal.name)
        limits = Limits.of(seen, job)
        return replace(self, machine=seen, job=job, goal=goal, limits=limits)

    def with_params(self, **changes: Any) -> Problem:
        """The problem, searched with some other `Params`."""
        return replace(self, params=replace(self.params, **changes))

    def searched_anew(self, seed: int, **changes: Any) -> Problem:
        """The problem for another local search; what is compiled is kept."""
        return self._like(seed=seed, params=replace(self.params, **changes))

    def avoiding(self, most_used: int | None) -> Problem:
        """The problem with so many hosts to avoid that may be used, None for any."""
        limits = replace(self.limits, most_avoided=most_used)
        return self._like(limits=limits)

    def _like(self, **fields: Any) -> Problem:
        """The problem with other fields, on which nothing that is compiled stands."""
        found = replace(self, **fields)
        compiled = vars(self).keys() - vars(found).keys()
        vars(found).update({name: vars(self)[name] for name in compiled})
        return found

    def once(self, make: Callable[[Problem], T]) -> T:
        """What is made of this problem, made the first time that it is wanted.

        For rooms above this one: two bounds may go on from the same cuts.
        """
        if make not in self._made:
            self._made[make] = make(self)
        found: T = self._made[make]
        return found

    @property
    def model(self) -> StepModel:
        """What a step costs; for problems of time."""
        if not isinstance(self.goal, TimeObjective):
            raise TypeError("the objective is not time")
        return self.goal.model

    @property
    def hops(self) -> HopCost:
        """What hops cost; for problems of hop cost."""
        if not isinstance(self.goal, HopCostObjective):
            raise TypeError("the objective is not hop cost")
        return self.goal.hops

    @cached_property
    def choices(self) -> list[Colocation]:
        """What stays together under each way to launch that fits, the best first."""
        return feasible_colocations(self.machine, self.job)

    @cached_property
    def colocation(self) -> Colocation:
        """What stays together: the best choice, or single ranks where none fits."""
        return (
            self.choices[0]
            if self.choices
            else colocation_of(self.machine, self.job, 1)
        )

    @cached_property
    def capacity(self) -> IntArray:
        """Ranks that each node may hold; shape (N,)."""
        return node_capacity(self.machine, self.colocation.block)

    @property
    def fills_priced(self) -> int:
        """How many placements of one construction are priced in full."""
        return max(1, min(FILLS_PRICED, RANKS_PRICED // self.job.world_size))

    @cached_property
    def forced_block(self) -> int:
        """Consecutive ranks that every node must hold, 0 when nodes may differ."""
        return forced_block(self.machine, self.job)

    @cached_property
    def without_rules(self) -> Problem:
        """The problem without rules about hosts and failures."""
        return self.on(self.machine, replace(self.job, rules=Rules()))

    @cached_property
    def nodes_decide(self) -> bool:
        """Whether the nodes of the ranks decide what a placement costs and may be.

        Not where the GPUs of a node differ (rails), or a launch counts those of a host:
        in another order than island by island, or over islands of different sizes, of
        which then the order matters too.
        """
        rails = any(tier.rails for tier in self.machine.tiers)
        if self.goal.name == "time" and rails:
            return False
        if self.job.launcher == "free" or not self.machine.node_tier:
            return True
        return counts_by_island(self.machine) and islands_are_alike(self.machine)

    def avoided(self, gpu_of_rank: IntArray) -> int:
        """How many of the hosts to avoid a placement uses."""
        return self.limits.avoided_used(self.machine.node_of_gpu[gpu_of_rank])

    def allows(self, gpu_of_rank: IntArray) -> bool:
        """Whether a placement of the machine's own GPUs keeps every hard rule.

        Hosts to avoid are not hard. The independent checker (`placement.check`) judges
        every result again with its own code.
        """
        if not obeys(self.machine, self.job, gpu_of_rank):
            return False
        if np.bincount(gpu_of_rank).max() > 1:
            return False
        node_of_rank = self.machine.node_of_gpu[gpu_of_rank]
        limits = self.limits
        return limits.pins_hold(node_of_rank) and limits.numbers_hold(node_of_rank)
