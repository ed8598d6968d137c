"""Pipelines cut into runs that lie in many domains, few in each, behind thin uplinks.

A domain holds so many copies of one run of stages. Each copy sends the messages of its
pipeline over the domain's uplink, beside the rings of all its stages' gradients. So few
copies and short runs are fast, and take many domains; every cut costs a message. Cuts
are tried in the order of what these three take together: by hand, runs of one stage
wait for half the rings that runs of two do, and have one message more to wait for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate
from operator import neg
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.solve.bounds.case import Case
from placer.solve.bounds.gradients.crossings import Crossings, times_of_hops
from placer.solve.bounds.network.limit import (
    Limit,
    gradient_groups,
    slow_sync,
    with_slow_stages,
)
from placer.solve.construct.stages.cut_patterns import Run, runs_of
from placer.solve.construct.stages.cut_stages import Stages
from placer.solve.problem.objective import TimeObjective
from placer.solve.run.solution import EXACT

if TYPE_CHECKING:
    from placer.arrays import IntArray
    from placer.cost.gradients import SyncTime
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
    most_s = incumbent.value
    if problem.params.asks_enough:  # nothing worse will do
        most_s = min(most_s, problem.params.enough_value * (1 + EXACT))
    known, capacity = problem.colocation, problem.capacity
    kinds = [Stages.of(model, known, capacity)]
    if problem.job.parallelism.cp > 1:
        kinds.append(Stages.of(model, known, capacity, parts_cp=True))
    found = [
        (way, stages)
        for stages in kinds
        if stages is not None and (stages.capacity > 0).any()
        for way in _ways(problem, stages, most_s, budget)
    ]
    found.sort(key=lambda one: one[0].seconds)
    for way, stages in found[: problem.params.spread_ways]:
        if budget.is_over() or way.seconds >= incumbent.value:
            return
        gpus = topology.gpus_on(stages.node_of_rank(_leaf_of_stage(way, stages)))
        incumbent.offer("runs of pipelines spread over domains", gpus)


def _ways(
    problem: Problem, stages: Stages, most_s: float, budget: Budget
) -> Iterator[Way]:
    """Ways that the domains have room for, and that may take less than ``most_s``."""
    case = Case.of(problem.model, problem.colocation, problem.params)
    step, fabric = case.step, case.network.fabric
    outer = fabric.scale_up_tier + 1
    size = step.model.volumes.pp_message
    message_s = case.network.message_from(outer, size)
    uplinks = fabric.uplink_capacity[outer][np.unique(_domains(problem, stages))]
    uplink, sent = float(uplinks.max()), stages.ranks.shape[2] * size
    nic = float(fabric.bandwidth[outer])
    last = stages.number - (problem.job.parallelism.vp == 1)  # sends to the first
    room = int(stages.capacity.max())
    other_s = step.model.fixed_s + sum(step.exposed_custom_s.values())
    groups = gradient_groups(problem.job)
    rings = stages.ranks.shape[2] // stages.members
    crossings = Crossings.of(step, message_s, problem.params.cut_sets)

    total, free = len(stages.ranks), int(size / nic * uplink / sent)

    @cache
    def sync(copies: int, length: int) -> SyncTime:
        """Data-parallel times of stages in so many copies of a run so long."""
        fewest = total // -(-total // copies)  # of domains that share them evenly
        limit = Limit(groups, fewest * stages.members, length * rings / uplink)
        return slow_sync(step.model, case.network, limit)

    def exposed_s(runs: Iterable[Run], copies: Iterable[int]) -> float:
        """What runs expose together."""
        slow = [
            (sync(number, run.length), stage % stages.number)
            for run, number in zip(runs, copies, strict=True)
            for stage in range(run.start, run.start + run.length)
        ]
        return with_slow_stages(step, slow).exposed_data_parallel_s

    @cache
    def exposed_by_run(run: Run) -> list[float]:
        """What a run exposes, from one copy to as many as there is room for."""
        most = min(room // run.length, total)
        found = [exposed_s([run], [number]) for number in range(1, most + 1)]
        # More copies drive more NICs.
        return list(accumulate(found, min))

    found: list[tuple[tuple[Run, ...], tuple[int, ...], float]] = []
    hops = []
    for cuts, seconds in zip(crossings.cuts, crossings.seconds, strict=True):
        runs = runs_of(cuts)
        if budget.is_over():
            return
        if len(runs) == 1 or max(run.length for run in runs) > room:
            continue
        exposed = [exposed_by_run(run) for run in runs]
        shortest_s = other_s + float(seconds)
        for copies in _numbers(runs, exposed, free, stages, most_s - shortest_s):
            waiting = np.maximum(copies, np.roll(copies, -1)) * sent / uplink
            hop = np.zeros(stages.number)
            hop[cuts] = message_s + np.maximum(waiting - size / nic, 0.0)
            found.append((runs, copies, exposed_s(runs, copies)))
            hops.append(hop)
    if not found:
        return
    table = np.array(hops)
    table[:, last:] = 0.0
    times = times_of_hops(step, table).tolist()
    for (runs, copies, exposed_together), seconds in zip(found, times, strict=True):
        yield Way(other_s + seconds + exposed_together, runs, copies)


def _numbers(
    runs: tuple[Run, ...],
    exposed: list[list[float]],
    free: int,
    stages: Stages,
    most_s: float,
) -> Iterator[tuple[int, ...]]:
    """Copies of each run in a domain, if none exposes ``most_s`` or more.

    As few as expose no more than some run does, as many as are ``free`` to send as if
    alone, and so many more that all runs find domains.
    """
    known = set()
    domains, total = int((stages.capacity > 0).sum()), len(stages.ranks)
    for most in sorted(set().union(*exposed)):
        if most >= most_s:
            return
        if any(of_run[-1] > most for of_run in exposed):
            continue
        copies = [
            max(bisect_left(of_run, -most, key=neg) + 1, min(free, len(of_run)))
            for of_run in exposed
        ]
        while sum(-(-total // number) for number in copies) > domains or not (
            _has_room(runs, tuple(copies), stages)
        ):
            open_runs = [at for at, one in enumerate(exposed) if copies[at] < len(one)]
            if not open_runs:
                break
            copies[min(open_runs, key=copies.__getitem__)] += 1
        else:
            if tuple(copies) not in known:
                known.add(tuple(copies))
                yield tuple(copies)


def _domains(problem: Problem, stages: Stages) -> IntArray:
    """Domains whose nodes may hold ranks."""
    tier = problem.model.fabric.scale_up_tier
    domains: IntArray = problem.machine.domain_of_node[tier][stages.room_of_node > 0]
    return domains


def _has_room(runs: tuple[Run, ...], copies: tuple[int, ...], stages: Stages) -> bool:
    """Whether there is a domain for each."""
    numbers, lengths = np.array(copies), np.array([run.length for run in runs])
    domains = -(-len(stages.ranks) // numbers)
    room = np.bincount(stages.capacity)
    need = np.bincount(numbers * lengths, domains, len(room))
    # So many domains with so much room, and so many that ask for as much.
    return bool((np.cumsum(room[::-1]) >= np.cumsum(need[::-1])).all())


def _leaf_of_stage(way: Way, stages: Stages) -> IntArray:
    """Leaf of every stage of every lane, the roomiest leaves first; (D C, P)."""
    leaves = iter(np.argsort(-stages.capacity, kind="stable").tolist())
    found = np.empty((len(stages.ranks), stages.number), dtype=np.int64)
    by_need = sorted(
        zip(way.runs, way.copies, strict=True),
        key=lambda one: -one[0].length * one[1],
    )
    for run, number in by_need:
        here = np.arange(run.start, run.start + run.length) % stages.number
        every = np.arange(len(stages.ranks))
        for some in np.array_split(every, -(-len(every) // number)):
            found[some[:, None], here] = next(leaves)
    return found
