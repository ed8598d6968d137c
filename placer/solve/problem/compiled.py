"""What is to be placed on what, at what cost: compiled once, read by every method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from placer.base.arrays import IntArray
from placer.base.errors import InputError
from placer.base.naming import named
from placer.cost.hop_cost import HopCost
from placer.cost.step import StepModel
from placer.job.even import is_even
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
from placer.solve.problem.params import Params
from placer.solve.problem.rules import Limits, obeys
from placer.solve.tree.domains import node_capacity
from placer.solve.tree.symmetry import Symmetry
from placer.topology.machine import Domains, Machine

T = TypeVar("T")


# For the order in which nestings are tried when the objective is time: what an edge of
# an axis is worth, a decade an axis, as exposed cost ranks them (tensor parallel
# collectives are waited for, data-parallel ones mostly hidden). Never part of a value
# or a bound.
TIME_WEIGHTS = {
    "tp": 4000.0,
    "cp": 400.0,
    "ep": 64.0,
    "pp": 40.0,
    "dp": 4.0,
    "edp": 4.0,
}


@dataclass(frozen=True, eq=False)
class Objective:
    """A cost of placements, to be minimised: predicted step time, s, or hop cost."""

    cost: StepModel | HopCost
    weights: Mapping[str, float]  # worth of an edge of each axis, to rank nestings

    @property
    def name(self) -> str:
        """``time`` or ``hop-cost``."""
        return "time" if isinstance(self.cost, StepModel) else "hop-cost"

    def value(self, gpu_of_rank: IntArray) -> float:
        """Step time of a placement, s, or its hop cost."""
        if isinstance(self.cost, HopCost):
            return self.cost.cost(gpu_of_rank)
        return self.cost.step(gpu_of_rank).step_time_s

    def traffic_s(self, gpu_of_rank: IntArray) -> float:
        """Seconds that all transfers of a step take, one after the other.

        To compare placements of equal value; 0 for hops, whose cost is such a sum.
        """
        if isinstance(self.cost, HopCost):
            return 0.0
        return self.cost.step(gpu_of_rank).traffic_s


def objective_of(topology: Domains, job: Job, name: str | None) -> Objective:
    """The objective called ``name``; by default time where the job says what time is.

    Raises `InputError` if the job lacks what the objective needs.
    """
    chosen = name or ("time" if job.has_time else "hop-cost")
    if chosen == "hop-cost":
        if not job.weights:
            raise InputError(
                "the hop-cost objective needs the job's weights",
                key="weights",
                hint="add, for example, weights: {tp: 4000, cp: 400, pp: 40, dp: 4}",
            )
        return Objective(HopCost(topology, job), job.weights)
    if not job.has_time:
        raise InputError(
            "the time objective needs a model, groups or traffic",
            key="model",
            hint="add a model with its compute time, or give "
            f"{named('objective', 'hop-cost')}",
        )
    return Objective(StepModel(topology, job), TIME_WEIGHTS)


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
        return cls(seen, job, goal, Limits(seen, job), seed)

    def on(self, machine: Domains, job: Job) -> Problem:
        """The problem of another machine or job."""
        seen = machine.by_island
        if seen is self.machine and job is self.job:
            return self
        goal = objective_of(seen, job, self.goal.name)
        limits = Limits(seen, job)
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
        if not isinstance(self.goal.cost, StepModel):
            raise TypeError("the objective is not time")
        return self.goal.cost

    @property
    def hops(self) -> HopCost:
        """What hops cost; for problems of hop cost."""
        if not isinstance(self.goal.cost, HopCost):
            raise TypeError("the objective is not hop cost")
        return self.goal.cost

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
        most = self.params.ranks_priced // self.job.world_size
        return max(1, min(self.params.fills, most))

    @cached_property
    def symmetry(self) -> Symmetry:
        """Which domains are alike, and what their exchange makes of a placement."""
        return Symmetry(self.machine)

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

    @property
    def has_own_traffic(self) -> bool:
        """Whether the job has groups or traffic of its own, or roles."""
        return bool(self.job.traffic or self.job.roles or self.job.groups)

    @property
    def is_in_parts(self) -> bool:
        """Whether groups must lie in equal parts."""
        return any(map(is_even, self.job.require))

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
        return self.limits.hold(self.machine.node_of_gpu[gpu_of_rank])
