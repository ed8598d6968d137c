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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.tree.capacity import whole_sets
from placer.solve.tree.fill import fill_domains, share_down, tree_order

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.incumbent import Candidate
    from placer.topology.machine import Machine

# Domains among which the next one is chosen, a fill for each; 1 is tree order.
WINDOWS = (1, 4, 16, 64, 256)


class _Limit(NamedTuple):
    """Ranks of whole replicas that a domain of a tier may touch, and of one replica."""

    tier: int
    ranks: int
    replica: int


def limited_fills(
    problem: Problem, at_most: tuple[tuple[int, int], ...]
) -> Iterator[Candidate]:
    """(name, GPU of every rank) of replicas laid along the tree within the limits.

    ``at_most`` holds (tier, replicas), innermost tier first. Where an outer tier is
    limited too, domains are taken in tree order only.
    """
    topology, job, colocation = problem.machine, problem.job, problem.colocation
    sizes = colocation.uniform_sizes()
    if sizes is None or not at_most:
        return
    sequence, together = _replica_major(job, max(colocation.block, 1))
    replica = together * (job.world_size // job.parallelism.dp)
    limits = [
        _Limit(tier, number // together * replica, replica) for tier, number in at_most
    ]
    if not all(limit.ranks for limit in limits):
        return
    takes = whole_sets(topology, problem.capacity, sizes)
    tier = limits[0].tier
    room = takes[tier]
    for window in WINDOWS if len(limits) == 1 else (1,):
        shares = _shares(topology, room, limits, sizes[tier], window)
        amounts, turn = _dealt(shares, len(room), job.world_size)
        if amounts.sum() < job.world_size:
            continue
        of_node = share_down(topology, takes[: tier + 1], amounts)
        order = tree_order(topology)
        row = topology.domain_of_node[tier][order]
        order = order[np.argsort(turn[row], kind="stable")]
        node_of_rank = np.empty(job.world_size, dtype=np.int64)
        node_of_rank[sequence] = np.repeat(order, of_node[order])
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
    takes = whole_sets(topology, problem.capacity, sizes)[: tier + 1]
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
            held = np.bincount(domain_of_rank, minlength=len(takes[tier]))
            if (held > takes[tier]).any():
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


def _shares(
    topology: Machine,
    room: IntArray,
    limits: list[_Limit],
    unit: int,
    window: int,
) -> Iterator[tuple[int, int]]:
    """(domain, ranks it takes) of the innermost limited tier, without end of ranks."""
    row = topology.domain_of_node[limits[0].tier]
    order = tree_order(topology)
    domains, first = np.unique(row[order], return_index=True)
    node_of_domain = dict(zip(domains.tolist(), order[first].tolist(), strict=True))
    waiting = [d for d in domains[np.argsort(first)].tolist() if room[d]]
    begun: dict[tuple[int, int], int] = {}
    done = 0
    while waiting:
        replica = limits[0].replica
        start = done // replica * replica
        end = start + limits[0].ranks
        domain = _best_fit(waiting[:window], room, end - done)
        waiting.remove(domain)
        for tier, ranks, _ in limits[1:]:
            outer = (tier, int(topology.domain_of_node[tier, node_of_domain[domain]]))
            end = min(end, begun.setdefault(outer, start) + ranks)
        taken = max(min(int(room[domain]), end - done) // unit * unit, 0)
        done += taken
        yield domain, taken


def _best_fit(domains: list[int], room: IntArray, most: int) -> int:
    """The smallest domain that has room for ``most`` ranks, else the largest."""
    enough = [domain for domain in domains if room[domain] >= most]
    if enough:
        return min(enough, key=lambda domain: room[domain])
    return max(domains, key=lambda domain: room[domain])


def _dealt(
    shares: Iterator[tuple[int, int]], domains: int, world: int
) -> tuple[IntArray, IntArray]:
    """Ranks of each domain until all are dealt out, and each domain's turn."""
    amounts = np.zeros(domains, dtype=np.int64)
    turn = np.full(domains, domains, dtype=np.int64)
    left = world
    for position, (domain, taken) in enumerate(shares):
        amounts[domain], turn[domain] = min(taken, left), position
        left -= int(amounts[domain])
        if not left:
            break
    return amounts, turn
