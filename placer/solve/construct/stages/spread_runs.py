"""Pipelines cut into runs that lie in many domains, few in each, behind thin uplinks.

A domain holds so many copies of one run of stages. Each copy sends the messages of its
pipeline over the domain's uplink, beside the rings of all its stages' gradients. So few
copies and short runs are fast, and take many domains; every cut costs a message. Cuts
are tried in the order of what these three take together: by hand, runs of one stage
wait for half the rings that runs of two do, and have one message more to wait for.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.solve.bounds.case import Case
from placer.solve.bounds.gradients.crossings import Crossings
from placer.solve.bounds.network.limit import (
    Limit,
    exposed_by_stage,
    gradient_groups,
)
from placer.solve.construct.stages.cut_patterns import Run, runs_of
from placer.solve.construct.stages.cut_stages import Stages
from placer.solve.problem.objective import TimeObjective

if TYPE_CHECKING:
    from placer.arrays import FloatArray, IntArray
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent


class Way(NamedTuple):
    """Runs of every replica, and copies of each in a domain.

    Attributes
    ----------
    seconds : float, s
        The step, by an estimate.
    """

    seconds: float
    runs: tuple[Run, ...]
    copies: tuple[int, ...]


def spread_runs(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Runs of pipelines in so many domains that thin uplinks are not full."""
    if not isinstance(problem.goal, TimeObjective):
        return
    model, topology = problem.model, problem.machine
    if problem.job.model is None or problem.job.parallelism.pp == 1:
        return
    if not model.fabric.has_thin_leaves:
        return
    stages = Stages.of(model, problem.colocation, problem.capacity)
    if stages is None or not (stages.capacity > 0).any():
        return
    ways = sorted(_ways(problem, stages, budget), key=lambda way: way.seconds)
    for way in ways[: problem.params.spread_ways]:
        if budget.is_over() or way.seconds >= incumbent.value:
            return
        gpus = topology.gpus_on(stages.node_of_rank(_leaf_of_stage(way, stages)))
        incumbent.offer("runs of pipelines spread over domains", gpus)


def _ways(problem: Problem, stages: Stages, budget: Budget) -> Iterator[Way]:
    """Ways that the domains have room for."""
    case = Case.of(problem.model, problem.colocation, problem.params)
    step, fabric = case.step, case.network.fabric
    outer = fabric.scale_up_tier + 1
    size = step.model.volumes.pp_message
    message_s = case.network.message_from(outer, size)
    uplinks = fabric.uplink_capacity[outer][np.unique(_domains(problem, stages))]
    uplink, sent = float(uplinks.max()), stages.ranks.shape[2] * size
    room = int(stages.capacity.max())
    other_s = step.model.fixed_s + sum(step.exposed_custom_s.values())
    groups = gradient_groups(problem.job)
    rings = stages.ranks.shape[2] // stages.members

    @cache
    def exposed_s(number: int, length: int) -> FloatArray:
        """What so many copies of a run so long expose, by its slowest stage; (P,)."""
        limit = Limit(groups, number * stages.members, length * rings / uplink)
        return np.array(exposed_by_stage(step, case.network, limit))

    for copies in range(1, min(room, stages.replicas) + 1):
        if budget.is_over():
            return
        waiting = copies * sent / uplink - size / fabric.bandwidth[outer]
        crossings = Crossings.of(
            step, message_s + max(float(waiting), 0.0), problem.params.cut_sets
        )
        for cuts, seconds in zip(crossings.cuts, crossings.seconds, strict=True):
            runs = runs_of(cuts)
            held = tuple(min(copies, room // run.length) for run in runs)
            if len(runs) == 1 or min(held) == 0 or not _has_room(runs, held, stages):
                continue
            slowest = 0.0
            for run, number in zip(runs, held, strict=True):
                here = np.arange(run.start, run.start + run.length) % stages.number
                exposed = exposed_s(number, run.length)
                slowest = max(slowest, float(exposed[here].max()))
            yield Way(other_s + float(seconds) + slowest, runs, held)


def _domains(problem: Problem, stages: Stages) -> IntArray:
    """Domains whose nodes may hold ranks."""
    tier = problem.model.fabric.scale_up_tier
    domains: IntArray = problem.machine.domain_of_node[tier][stages.room_of_node > 0]
    return domains


def _has_room(runs: tuple[Run, ...], copies: tuple[int, ...], stages: Stages) -> bool:
    """Whether there is a domain for each."""
    numbers, lengths = np.array(copies), np.array([run.length for run in runs])
    domains = -(-stages.replicas // numbers)
    room = np.bincount(stages.capacity)
    need = np.bincount(numbers * lengths, domains, len(room))
    # So many domains with so much room, and so many that ask for as much.
    return bool((np.cumsum(room[::-1]) >= np.cumsum(need[::-1])).all())


def _leaf_of_stage(way: Way, stages: Stages) -> IntArray:
    """Leaf of every stage of every replica, the roomiest leaves first; (D, P)."""
    leaves = iter(np.argsort(-stages.capacity, kind="stable").tolist())
    found = np.empty((stages.replicas, stages.number), dtype=np.int64)
    by_need = sorted(
        zip(way.runs, way.copies, strict=True),
        key=lambda one: -one[0].length * one[1],
    )
    for run, number in by_need:
        here = np.arange(run.start, run.start + run.length) % stages.number
        for first in range(0, stages.replicas, number):
            found[first : first + number, here] = next(leaves)
    return found
