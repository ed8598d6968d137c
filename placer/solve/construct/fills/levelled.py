"""Domains that hold as equal shares of the job as their room lets them.

Between domains, a ring of all ranks has as many network cards as the domain with the
fewest of them gives: 13 and 12 ranks are better than 15 and 10, and 5, 4 and 4 are far
better than 6, 6 and 1. Shapes: R ranks, D domains.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray, by_appearance
from placer.job.axes import REPLICA_MAJOR_ORDER
from placer.solve.tree.base import linked_tier
from placer.solve.tree.capacity import whole_sets
from placer.solve.tree.fill import fill_domains, fullest_first

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent

# How many more domains than must be are tried.
MORE = 2


def levelled(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Equal shares on the fewest domains, and on a few more."""
    if problem.goal.name == "time":
        incumbent.offer_all(islice(levelled_fills(problem), problem.fills_priced))


def levelled_fills(problem: Problem) -> Iterator[Candidate]:
    """(name, GPU of every rank) of each way, whole replicas in a domain first."""
    machine, job, axes = problem.machine, problem.job, problem.job.parallelism
    sizes = problem.colocation.uniform_sizes()
    if sizes is None:
        return
    last = len(machine.tiers) - 1
    replica = axes.world_size // axes.dp
    of_experts = lcm(axes.tp * axes.cp, axes.etp * axes.ep) * axes.pp
    members = axes.dp * axes.cp
    blocks = members // job.data_parallel.shard_members(members, members)
    orders = dict.fromkeys((axes.order, REPLICA_MAJOR_ORDER))
    # Ranks in the order in which they are laid out.
    sequences = [np.argsort(axes.numbers_in(order)) for order in orders]
    nodes = fullest_first(machine, problem.capacity)
    for tier in range(linked_tier(machine), last):
        along = machine.domain_of_node[tier][nodes]
        domains = by_appearance(along)[0]
        name = machine.tiers[tier].name
        for grain in dict.fromkeys((replica, int(sizes[tier]), of_experts)):
            if grain % sizes[tier] or axes.world_size % (blocks * grain):
                continue
            units = [*sizes[:tier], *[grain] * (last + 1 - tier)]
            takes = whole_sets(machine, problem.capacity, units)[: tier + 1]
            room = takes[tier][domains] // grain
            for share in _shares(room, axes.world_size // grain, blocks):
                held = np.repeat(np.tile(domains, len(share)), share.ravel() * grain)
                used = np.count_nonzero(share.any(axis=0))
                told = f"equal shares of {used} domains of {name}"
                for sequence in sequences:
                    domain = np.empty_like(held)
                    domain[sequence] = held
                    node_of_rank = fill_domains(machine, takes, domain, sequence)
                    yield told, machine.gpus_on(node_of_rank)


def _shares(room: IntArray, units: int, blocks: int) -> Iterator[IntArray]:
    """Units of each domain on the fewest of those with most room, then on more; (G, D).

    Nothing where one domain holds them all, or all are full. Where units are of several
    shard groups, in as many rows, there is one way.
    """
    if blocks > 1:
        yield from islice(_by_blocks(room, units // blocks, blocks), 1)
        return
    largest = np.argsort(-room, kind="stable")
    fewest = int(np.searchsorted(np.cumsum(room[largest]), units)) + 1
    if fewest == 1 or fewest > len(room):
        return
    for count in range(fewest, min(fewest + MORE, len(room)) + 1):
        share = np.zeros_like(room)
        share[largest[:count]] = level(room[largest[:count]], units)
        yield share[None]


def _by_blocks(room: IntArray, units: int, blocks: int) -> Iterator[IntArray]:
    """Units of each block in each domain, the least share as large as can be; (G, D).

    Blocks take those with most room left, or these and those with least by turns.
    """
    for least in range(min(units // 2, int(room.max())), 0, -1):
        for is_mixed in (False, True):
            left, shares = room.copy(), np.zeros((blocks, len(room)), dtype=np.int64)
            for share in shares:
                order = np.argsort(-left, kind="stable")
                order = order[left[order] >= least]
                if is_mixed:
                    ends = np.stack((order, order[::-1]), axis=1).ravel()
                    order = ends[: len(order)]
                count = int(np.searchsorted(np.cumsum(left[order]), units)) + 1
                if count > len(order) or count * least > units:
                    break
                share[order[:count]] = least
                for domain in order[:count].tolist():
                    share[domain] += min(left[domain] - least, units - share.sum())
                left -= share
            else:
                yield shares


def level(room: IntArray, units: int) -> IntArray:
    """Units of each domain: the least share as large as can be, then the next; (D,).

    Those with less room than the others' share are full. Together they must hold all.
    """
    share = np.zeros_like(room)
    left = units
    for number, domain in enumerate(np.argsort(room, kind="stable").tolist()):
        share[domain] = min(int(room[domain]), left // (len(room) - number))
        left -= int(share[domain])
    return share
