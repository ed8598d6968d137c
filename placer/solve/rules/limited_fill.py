"""Replicas shared out so that no domain takes more of them than it may.

Replicas one after the other: a domain that begins ``o`` ranks into a replica of ``S``
can take up to ``k S - o`` more. What it has beyond that is lost, so the order of the
domains matters: the next one is the smallest that ends a replica, or, when no domain
does, the largest (best fit). It is chosen among the next few in tree order, then among
more, which trades nearness for room.

Or pipelines cut alike, and what each piece has of all replicas shared out evenly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.tree.capacity import whole_sets
from placer.solve.tree.fill import fill_domains, share_down, tree_order

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.incumbent import Candidate

# Domains among which the next one is chosen, a fill for each; 1 is tree order.
WINDOWS = (1, 4, 16, 64, 256)


def limited_fills(
    problem: Problem, at_most: tuple[tuple[int, int], ...]
) -> Iterator[Candidate]:
    """(name, GPU of every rank) of replicas laid along the tree within the first limit.

    ``at_most`` holds (tier, replicas), innermost tier first.
    """
    topology, job, colocation = problem.machine, problem.job, problem.colocation
    sizes = colocation.uniform_sizes()
    if sizes is None or not at_most:
        return
    sequence, together = _replica_major(job, max(colocation.block, 1))
    replica = together * (job.world_size // job.parallelism.dp)
    tier, most = at_most[0][0], at_most[0][1] // together * replica
    takes = whole_sets(topology, problem.capacity, sizes[: tier + 1])
    room, order = takes[tier], tree_order(topology)
    row = topology.domain_of_node[tier][order]
    for window in WINDOWS:
        amounts, turn = np.zeros_like(room), np.full(len(room), len(room))
        left = job.world_size
        waiting = [domain for domain in dict.fromkeys(row.tolist()) if room[domain]]
        while left and waiting and most:
            into = (job.world_size - left) % replica  # of the replica that is begun
            domain = _best_fit(waiting[:window], room, most - into)
            waiting.remove(domain)
            taken = min(int(room[domain]), most - into, left)
            amounts[domain] = taken // sizes[tier] * sizes[tier]
            left -= int(amounts[domain])
            turn[domain] = len(room) - len(waiting)
        if left:
            continue
        of_node = share_down(topology, takes, amounts)
        laid = order[np.argsort(turn[row], kind="stable")]
        node_of_rank = np.empty(job.world_size, dtype=np.int64)
        node_of_rank[sequence] = np.repeat(laid, of_node[laid])
        yield f"replicas in order, windows of {window}", topology.gpus_on(node_of_rank)


def even_cuts(
    problem: Problem, at_most: tuple[tuple[int, int], ...]
) -> Iterator[Candidate]:
    """(name, GPU of every rank) of replicas cut alike, shared out evenly.

    All pipelines are cut at the same stages. The members of gradient groups lie side by
    side on as few domains for each piece as may hold all replicas, as many on each as
    can be: of seven replicas with two context ranks, two a rack, 4, 4, 3 and 3.
    """
    sizes = problem.colocation.uniform_sizes()
    if sizes is None or len(at_most) != 1:
        return
    ((tier, most),) = at_most
    topology, axes = problem.machine, problem.job.parallelism
    takes = whole_sets(topology, problem.capacity, sizes[: tier + 1])
    domains = np.argsort(-takes[tier], kind="stable")[: int((takes[tier] > 0).sum())]
    members = axes.dp * axes.cp
    at = axes.coordinates
    member = at["dp"] * axes.cp + at["cp"]
    fewest = -(-axes.dp // most)
    for pieces in range(1, min(axes.pp, len(domains) // fewest) + 1):
        if axes.pp % pieces:
            continue
        piece = at["pp"] * pieces // axes.pp
        for share in range(fewest, len(domains) // pieces + 1):
            parts = np.array_split(np.arange(members), share)
            part = np.repeat(np.arange(share), [len(one) for one in parts])
            domain_of_rank = domains[piece * share + part[member]]
            counts = np.bincount(domain_of_rank, minlength=len(takes[tier]))
            if (counts > takes[tier]).any():
                continue
            sequence = np.lexsort((np.arange(len(member)), at["pp"], member))
            node = fill_domains(topology, takes, domain_of_rank, sequence)
            yield f"pipelines in {pieces} pieces, shared out", topology.gpus_on(node)
            break


def _replica_major(job: Job, block: int) -> tuple[IntArray, int]:
    """Ranks replica after replica, whole blocks at a time; replicas a block touches."""
    first = np.arange(0, job.world_size, block)
    at = job.parallelism.coordinates
    together = len(np.unique(at["dp"][:block]))
    team = at["dp"][first] // together
    order = np.lexsort((first, at["tp"][first], at["cp"][first], at["pp"][first], team))
    return (first[order][:, None] + np.arange(block)).ravel(), together


def _best_fit(domains: list[int], room: IntArray, most: int) -> int:
    """The smallest domain that has room for ``most`` ranks, else the largest."""
    enough = [domain for domain in domains if room[domain] >= most]
    if enough:
        return min(enough, key=lambda domain: room[domain])
    return max(domains, key=lambda domain: room[domain])
