"""Roles on nodes of their own, in a launch by nodes.

Where nodes are spare, stages, instances or roles begin on nodes of their own. What
those nodes send each other is divided down the tree, as what ranks do; or parts
that send nothing to others are packed whole into scale-up domains, as far as those
hold them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray, grouped
from placer.solve.construct.traffic.partition import partitioned_nodes
from placer.solve.problem.colocation import join
from placer.solve.problem.flows import bundled, flows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placer.job.model import Job
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent


def apart(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Roles begin on nodes of their own, and the nodes are divided down the tree."""
    machine, job = problem.machine, problem.job
    if problem.goal.name != "time" or job.launcher == "free" or not job.roles:
        return
    flows = flows_of(problem, np.arange(job.world_size))
    room = machine.gpus_of_node
    full = int(room.max())
    nodes = np.flatnonzero(room == full)  # runs may be on any of them
    capacity = np.where(room == full, 1, 0)
    tier = max(problem.model.fabric.scale_up_tier, 0)
    draw = np.random.default_rng(problem.seed)
    for ends in _ends(job):
        run = _runs(ends, full)
        count = int(run[-1]) + 1
        if count > len(nodes) or budget.is_over():
            continue
        between = bundled(run[flows.edges], flows.weight, count)
        label = np.zeros((len(machine.tiers), count), dtype=np.int64)
        label[:-1] = np.arange(count)
        held = partitioned_nodes(
            machine, capacity, label, between, draw, budget.is_over
        )
        part = np.unique(join(label[0], between.edges), return_inverse=True)[1]
        packed = nodes[_packed(part, machine.domain_of_node[tier][nodes])]
        for name, found in (("divided", held), ("packed", packed)):
            if found is not None:
                incumbent.offer(f"roles apart, {name}", machine.gpus_on(found[run]))


def _packed(part: IntArray, domain: IntArray) -> IntArray:
    """Place of each run: parts whole in the fullest domain that takes them, if any.

    Others go on in the emptiest. Shapes: R runs, N places.

    Parameters
    ----------
    part : ndarray, shape (R,)
    domain : ndarray, shape (N,)
        Of each place.
    """
    free = [list(places) for places in grouped(np.arange(len(domain)), domain)]
    found = np.empty(len(part), dtype=np.int64)
    for runs in sorted(grouped(np.arange(len(part)), part), key=len, reverse=True):
        left = runs.tolist()
        while left:
            takes = [places for places in free if len(places) >= len(left)]
            chosen = min(takes, key=len) if takes else max(free, key=len)
            for _ in range(min(len(left), len(chosen))):
                found[left.pop(0)] = chosen.pop(0)
    return found


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
