"""Roles on nodes of their own, which any launcher can start.

Where nodes are spare, stages, instances or roles begin on nodes of their own. Sets of
nodes that send nothing to others are packed into scale-up domains (`closed_sets`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np

from placer.base.arrays import IntArray, grouped
from placer.job.model import Job
from placer.solve.construct.traffic.closed_sets import ClosedSets
from placer.solve.problem.compiled import Problem
from placer.solve.problem.flows import flows_of
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent

# Shares of a closed set that its pieces have at the least, each tried.
LEAST = (0.5, 0.43, 0.36, 0.25)


def apart(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Roles begin on nodes of their own, and closed sets of nodes are packed."""
    machine, job = problem.machine, problem.job
    if problem.goal.name != "time" or not job.roles:
        return
    flows = flows_of(problem, np.arange(job.world_size))
    room = machine.gpus_of_node
    full = int(room.max())
    nodes = np.flatnonzero(room == full)  # runs may be on any of them
    domain = machine.domain_of_node[max(problem.model.fabric.scale_up_tier, 0)][nodes]
    role = np.repeat(np.arange(len(job.roles)), [of.world_size for of in job.roles])
    packed: list[IntArray] = []
    for ends in _ends(job):
        run = _runs(ends, full)
        if run[-1] >= len(nodes) or any(np.array_equal(run, one) for one in packed):
            continue
        packed.append(run)
        sets = ClosedSets(run, role, flows.edges)
        for least, parts in product(LEAST, (True, False)):
            if budget.is_over():
                return
            free = grouped(nodes, domain)
            node = np.empty(len(run), dtype=np.int64)
            rooms = np.array([len(places) for places in free])
            for ranks, home in sets.packed(rooms, least, parts=parts):
                for own in grouped(ranks, run[ranks]):
                    node[own], free[home] = free[home][0], free[home][1:]
            incumbent.offer("roles apart, packed", machine.gpus_on(node))


def _ends(job: Job) -> Iterator[list[int]]:
    """Ranks after which a node ends: of stages, of instances, or of roles."""
    roles, instances, stages = [0], [0], [0]
    for role in job.roles:
        size, pp = role.job.world_size, role.job.parallelism.pp
        roles.append(role.first_rank + role.world_size)
        instances += [first + size for first in role.offsets]
        stages += [
            first + size * p // pp for first in role.offsets for p in range(1, pp + 1)
        ]
    yield from (stages, instances, roles)


def _runs(ends: list[int], full: int) -> IntArray:
    """Run of each rank: nodes filled, and begun anew after each end; shape (R,)."""
    found, first = [], 0
    for begin, end in pairwise(ends):
        own = np.arange(end - begin) // full
        found.append(first + own)
        first += int(own[-1]) + 1
    return np.concatenate(found)
