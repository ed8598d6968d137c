"""What several jobs share: uplinks that they load, and budgets of the machine.

Steps of different jobs are not in time with each other. So a job takes from an uplink
its mean rate: the bytes of a step over the seconds of a step alone, of the busier
direction. The others share what it leaves, but each gets at least an equal part: flows
that meet on a link part it fairly (max-min; Bertsekas and Gallager, *Data Networks*,
6.5). Where no tier is oversubscribed, an uplink carries all that its GPUs can send, and
jobs on different GPUs do not meet.

A budget of the machine holds for all that runs on its hosts. So it is parted among the
jobs as nodes are: each has an allowance of every number that all together may exceed,
and a larger one is never worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.base.budget import HostBudget
from placer.cost.links import total_load
from placer.cost.step import StepModel
from placer.job.model import Job
from placer.placement.placement import Placement
from placer.topology.model import Topology

if TYPE_CHECKING:
    from placer.allocate.offers import Offer

# Each domain's uplink by tier: the share of it that a job takes.
Use = tuple["FloatArray", ...]


def meet(machine: Topology) -> bool:
    """Whether jobs on different nodes can be in each other's way."""
    return any(tier.oversubscription > 1 for tier in machine.tiers)


def use_of(machine: Topology, job: Job, placement: Placement) -> Use:
    """Share of every uplink that a job takes, by tier; each of shape (domains,)."""
    model = StepModel(machine, job)
    step = model.step(placement.gpu_of_rank)
    load = total_load(step.traffic().values())
    seconds = step.step_time_s
    fabric, inner = model.fabric, len(model.fabric.topology.tiers) - len(machine.tiers)
    shares = [np.zeros(len(names)) for names in machine.domain_names]
    if load is None or seconds <= 0:
        return tuple(shares)
    for tier in range(1, len(machine.tiers)):
        at = tier + inner
        if at in fabric.scale_out_tiers:
            sent = np.maximum(load["up", at], load["down", at])
            busy = sent / fabric.uplink_capacity[at]
            shares[tier - 1] = np.minimum(busy / seconds, 1.0)
    return tuple(shares)


def left_by(others: Sequence[Use]) -> Use | None:
    """Share of every uplink that these jobs leave to one more; None for all of it."""
    if not others:
        return None
    left = []
    for uses in zip(*others, strict=True):
        taken = np.sum(uses, axis=0)
        fair = 1 / (1 + np.sum([use > 0 for use in uses], axis=0))
        left.append(np.maximum(1 - taken, fair))
    return tuple(left)


class Uses:
    """What the offers of one machine take of its uplinks, each worked out once."""

    def __init__(self, machine: Topology, always: Sequence[Use] = ()) -> None:
        self._machine, self._always = machine, [*always]
        self.meet = meet(machine)
        self._known: dict[int, tuple[Offer, Use]] = {}

    @property
    def kept(self) -> Use | None:
        """What jobs that stay leave to one more; None for all of it."""
        return left_by(self._always) if self.meet else None

    def shares(self, offers: Sequence[Offer]) -> list[Use | None]:
        """What all others leave to each of these offers."""
        if not self.meet:
            return [None] * len(offers)
        uses = [self._of(offer) for offer in offers]
        return [
            left_by([*self._always, *uses[:i], *uses[i + 1 :]])
            for i in range(len(offers))
        ]

    def _of(self, offer: Offer) -> Use:
        known = self._known.get(id(offer))
        if known is None:
            placement = offer.solution.placement
            known = offer, use_of(self._machine, offer.job, placement)
            self._known[id(offer)] = known
        return known[1]


# A number for each limit.
Allowance = tuple[int, ...]


class Limit(NamedTuple):
    """One number of a budget that all jobs together must keep."""

    budget: HostBudget
    inside: BoolArray  # (N,): the nodes that count
    of_replicas: bool  # whether replicas are counted, or GPUs with ranks
    most: int  # what the jobs to be placed may use of it

    def most_of(self, job: Job) -> int:
        """What a job can use at the most, wherever it is."""
        return job.parallelism.dp if self.of_replicas else job.world_size

    def use_of(self, job: Job, node_of_rank: IntArray) -> int:
        """What a job uses on these nodes."""
        there = self.inside[node_of_rank]
        if not self.of_replicas:
            return int(there.sum())
        return len(np.unique(job.parallelism.coordinates["dp"][there]))


def limits_of(
    machine: Topology, jobs: Sequence[Job], kept: Sequence[tuple[Job, IntArray]]
) -> tuple[Limit, ...]:
    """The limits that jobs could exceed together, less what those that stay use.

    ``jobs``: those to be placed. ``kept``: those that stay, and the node of each of
    their ranks, (R,).
    """
    found = []
    for budget in machine.budgets:
        inside = np.array([name in budget.names for name in machine.node_names])
        room = int(machine.gpus_of_node[inside].sum())
        for of_replicas in (False, True):
            most = budget.replicas if of_replicas else budget.most_gpus
            if most is None:
                continue
            limit = Limit(budget, inside, of_replicas, most)
            most -= sum(limit.use_of(job, nodes) for job, nodes in kept)
            if most < min(sum(limit.most_of(job) for job in jobs), room):
                found.append(limit._replace(most=max(most, 0)))
    return tuple(found)


def limits_used(
    limits: Sequence[Limit], machine: Topology, job: Job, gpu_of_rank: IntArray
) -> Allowance:
    """What a placement uses of each limit."""
    nodes = machine.node_of_gpu[gpu_of_rank]
    return tuple(limit.use_of(job, nodes) for limit in limits)


def under(limits: Sequence[Limit], allowed: Allowance, job: Job) -> Job:
    """The job with its allowance as the budgets among its rules."""
    budgets = tuple(_budgets(limits, allowed, job))
    return replace(job, rules=replace(job.rules, budgets=budgets))


def _budgets(
    limits: Sequence[Limit], allowed: Allowance, job: Job
) -> Iterator[HostBudget]:
    """A budget for each allowance that the job could exceed."""
    for limit, most in zip(limits, allowed, strict=True):
        if most >= limit.most_of(job):
            continue
        gpus, replicas = (None, most) if limit.of_replicas else (most, None)
        yield replace(limit.budget, gpus=gpus, replicas=replicas, watts=None)


def less(left: Allowance, used: Sequence[int]) -> Allowance:
    """What is left of an allowance."""
    return tuple(max(a - b, 0) for a, b in zip(left, used, strict=True))
