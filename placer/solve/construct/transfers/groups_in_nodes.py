"""Groups of the user's own gathered in nodes, inside the racks that they were given.

Transfers say which ranks share a rack, and no more. Where hops inside a node are the
faster ones, ranks of a rack that are of one group then share nodes, as many as can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placer.job.model import Job
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent


def groups_in_nodes(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """The best placement so far, ranks of each domain above nodes seated anew."""
    machine, job, best = problem.machine, problem.job, incumbent.gpu_of_rank
    above = machine.node_tier + 1
    if best is None or job.traffic is None or problem.goal.name != "time":
        return
    if job.launcher != "free" or above >= len(machine.tiers):
        return
    if len(np.unique(problem.colocation.label[machine.node_tier])) < job.world_size:
        return  # rules say which ranks share a node
    domain_of_node = machine.domain_of_node[above]
    domain_of_rank = domain_of_node[machine.node_of_gpu[best]]
    group = _group_of_rank(job)
    if group is None:
        return
    node = np.empty(job.world_size, dtype=np.int64)
    for domain in np.unique(domain_of_rank):
        nodes = np.flatnonzero(domain_of_node == domain)
        ranks = np.flatnonzero(domain_of_rank == domain)
        node[ranks] = nodes[_seats(group[ranks], problem.capacity[nodes])]
    incumbent.offer("groups in nodes", machine.gpus_on(node))


def _groups(job: Job) -> Iterator[IntArray]:
    """Ranks of each group, those of the instances of roles as well."""
    for kind in job.groups:
        yield from (np.array(row) for row in kind.ranks)
    for role in job.roles:
        own = list(_groups(role.job))
        yield from (offset + row for offset in role.offsets for row in own)


def _group_of_rank(job: Job) -> IntArray | None:
    """The first group of each rank, its own where it has none; None without groups."""
    group, groups = np.arange(job.world_size), list(_groups(job))
    for index, row in reversed(list(enumerate(groups))):
        group[row] = job.world_size + index
    return group if groups else None


def _seats(group: IntArray, capacity: IntArray) -> IntArray:
    """A node for each rank: the largest groups first, each where it fits most closely.

    What fits no node whole fills the roomiest ones. Who has no group comes last.
    """
    free = capacity.astype(np.int64)
    own, size = np.unique(group, return_counts=True)
    seat = np.empty(len(group), dtype=np.int64)
    for index in np.argsort(-size, kind="stable"):
        left = np.flatnonzero(group == own[index])
        while len(left):
            fits = np.flatnonzero(free >= len(left))
            roomiest = int(free.argmax())
            node = int(fits[free[fits].argmin()]) if len(fits) else roomiest
            taken = left[: free[node]]
            seat[taken], left = node, left[free[node] :]
            free[node] -= len(taken)
    return seat
