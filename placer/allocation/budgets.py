"""Budgets that jobs share: what each job uses of them, and what that leaves.

A budget of the machine holds for all that runs on its hosts. So it is parted among the
jobs as nodes are: each has an allowance of every number that all together may exceed,
and a larger one is never worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from placer.base.arrays import BoolArray, IntArray
    from placer.base.budget import Budget
    from placer.job.model import Job
    from placer.topology.model import Topology

# A number for each limit.
Allowance = tuple[int, ...]


class Limit(NamedTuple):
    """One number of a budget that all jobs together must keep."""

    budget: Budget
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


def use_of(
    limits: Sequence[Limit], machine: Topology, job: Job, gpu_of_rank: IntArray
) -> Allowance:
    """What a placement uses of each limit."""
    nodes = machine.node_of_gpu[gpu_of_rank]
    return tuple(limit.use_of(job, nodes) for limit in limits)


def under(limits: Sequence[Limit], allowed: Allowance, job: Job) -> Job:
    """The job with its allowance as the budgets among its rules."""
    budgets = tuple(_budgets(limits, allowed, job))
    return replace(job, rules=replace(job.rules, budgets=budgets))


def _budgets(limits: Sequence[Limit], allowed: Allowance, job: Job) -> Iterator[Budget]:
    """A budget for each allowance that the job could exceed."""
    for limit, most in zip(limits, allowed, strict=True):
        if most >= limit.most_of(job):
            continue
        gpus, replicas = (None, most) if limit.of_replicas else (most, None)
        yield replace(limit.budget, gpus=gpus, replicas=replicas, watts=None)


def less(left: Allowance, used: Sequence[int]) -> Allowance:
    """What is left of an allowance."""
    return tuple(max(a - b, 0) for a, b in zip(left, used, strict=True))
