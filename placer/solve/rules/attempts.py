"""Machines and jobs on which constructions keep rules, and what mends the others.

Nodes are left out until those that are left hold no more than any count allows. A job
whose replicas are limited is tried with whole replicas first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, IntArray
from placer.solve.problem.rules import Count, Limits, obeys
from placer.solve.problem.submachine import Submachine
from placer.solve.rearrange.pins import PinnedRanks

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.problem.compiled import Problem
    from placer.topology.machine import Machine


class Attempt(NamedTuple):
    """A part of the machine, and the job without rules, perhaps with requirements."""

    inner: Submachine[Machine]
    job: Job


def attempts(problem: Problem, offered: BoolArray) -> Iterator[Attempt]:
    """Where to construct, first what keeps most rules by itself.

    ``offered`` says which nodes may be used; shape (N,).
    """
    machine, limits, plain = problem.machine, problem.limits, problem.without_rules
    jobs = [job for job in (_whole_replicas(problem), plain.job) if job]
    for job in jobs:
        tied = plain.on(machine, job)
        kept = without_idle(limits, offered, unit_of(tied), job is not plain.job)
        yield Attempt(Submachine.of(machine, kept), job)
    yield Attempt(Submachine.of(machine, offered), plain.job)


def mender(
    problem: Problem,
    attempt: Attempt,
    tried: Problem,
    offered: BoolArray,
    ends: Callable[[], bool],
) -> Callable[[IntArray], IntArray | None]:
    """What makes a placement of the attempt legal, or refuses it (None).

    ``tried`` is the problem of the attempt, a part of ``problem``; once ``ends`` says
    so, no more is mended.
    """
    inner, limits = attempt.inner, problem.limits

    def legal(gpu_of_rank: IntArray) -> bool:
        return obeys(tried.machine, tried.job, gpu_of_rank) and limits.numbers_hold(
            inner.node_in_whole(gpu_of_rank)
        )

    pinned = PinnedRanks(
        tried, Limits.of(tried.machine, problem.job), offered[inner.nodes], ends
    )
    return lambda gpu_of_rank: pinned.settle(gpu_of_rank, legal)


def unit_of(problem: Problem) -> int:
    """Ranks that stay together in a domain next to the nodes."""
    choices = problem.choices
    sizes = choices[0].uniform_sizes() if choices else None
    return sizes[1] if sizes is not None and len(sizes) > 1 else 1


def _whole_replicas(problem: Problem) -> Job | None:
    """The job without rules, its replicas whole in the innermost limited tier."""
    if not problem.limits.at_most:
        return None
    job = problem.without_rules.job
    tiers = [tier.name for tier in problem.machine.tiers]
    tier = problem.limits.at_most[0][0]
    require = dict(job.require)
    for axis in ("tp", "cp", "pp"):
        own = tiers.index(require[axis]) if axis in require else tier
        require[axis] = tiers[min(tier, own)]
    return replace(job, require=require)


def without_idle(
    limits: Limits, offered: BoolArray, unit: int, has_whole_replicas: bool
) -> BoolArray:
    """The ``offered`` nodes less those that counts leave idle.

    ``unit`` ranks that stay together say what a node is worth to its domain: nodes are
    left out where ranks would be left over. Where replicas are whole, so many of them
    have so many times their ranks.
    """
    keep = offered.copy()
    for count in limits.counts:
        if count.is_of_replicas and not has_whole_replicas:
            continue
        for box in range(len(count.most)):
            _leave_out(limits, keep, count, box, unit)
    return keep


def _leave_out(
    limits: Limits, keep: BoolArray, count: Count, box: int, unit: int
) -> None:
    """Take nodes of a box off the offer until the others are within its count.

    One after the other from the lowest domain above the nodes with the most ranks left
    over, pinned hosts last, nodes with the fewest GPUs and the slowest first.
    """
    topology, pinned = limits.topology, limits.pinned
    gpus, number = topology.gpus_of_node, count.number
    nodes = np.flatnonzero((count.box == box) & keep)
    ranks_each = len(number) // (int(number.max()) + 1)
    if count.by_rank:
        over = int(gpus[nodes].sum()) - int(count.most[box]) * ranks_each
    else:
        over = len(np.unique(number[nodes])) - int(count.most[box])
    row = topology.domain_of_node[min(1, len(topology.tiers) - 1)]
    factors = topology.bandwidth_factor[nodes], topology.speed_of_node[nodes]
    order = np.lexsort((*factors, gpus[nodes], pinned[nodes]))
    queue: dict[int, list[int]] = {}
    room: dict[int, int] = {}
    for node in nodes[order][::-1].tolist():
        queue.setdefault(int(row[node]), []).append(node)
        room[int(row[node])] = room.get(int(row[node]), 0) + int(gpus[node])
    while over > 0:
        leaf = min(
            (d for d in queue if queue[d]),
            key=lambda d: (bool(pinned[queue[d][-1]]), -(room[d] % unit), room[d], d),
        )
        node = queue[leaf].pop()
        keep[node] = False
        room[leaf] -= int(gpus[node])
        if not count.by_rank:
            over -= number[node] not in number[nodes[keep[nodes]]]
            continue
        over -= int(gpus[node])
        if over < 0 and ranks_each > 1:  # the replicas have ranks on it, too
            keep[node] = True
