"""Transfers laid along a line: components one after the other, cut where domains end.

Who sends and who receives alternates along a component, so that every piece of it has
of both. A small piece has few partners near and sets the time, so of many orders of the
domains those are taken whose smallest piece is the largest. They differ in how many
ranks each domain holds, which matters to groups that lie across components.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.construct.traffic.communicators import among_alike
from placer.solve.construct.transfers.component_pieces import Cutting
from placer.solve.problem.colocation import join

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent


def component_line(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Ranks of each component of the traffic in turn, by domains in a good order."""
    machine, traffic = problem.machine, problem.job.traffic
    sizes = problem.colocation.uniform_sizes()
    if problem.goal.name != "time" or traffic is None or sizes is None:
        return
    if len(machine.tiers) < 2:
        return
    label, size = problem.colocation.label[-2], sizes[-2]
    domain = machine.domain_of_node[-2]
    room = np.bincount(domain, problem.capacity).astype(np.int64) // size
    line, lengths = _line(label, traffic.senders, traffic.receivers)
    if len(lengths) == 1 and np.isin(traffic.senders, traffic.receivers).all():
        return  # no components to lay one after the other, and nobody only sends
    best, cut = _cuts(problem, room, lengths, budget)
    homes = [("components in a line", home) for home in cut]
    several = len(lengths) > 1  # one is cut by what domains hold, in any order
    if several and (lengths == lengths[0]).all() and not budget.is_over():
        cutting = Cutting(room, len(lengths), int(lengths[0]))
        pieces = cutting.largest_pieces(int(best * lengths[0]), problem.params)
        if pieces is not None:
            domains = np.tile(np.arange(len(room)), len(lengths))
            home = np.repeat(domains, pieces.ravel())
            homes.append(("components in large pieces", home))
    for name, home in homes:
        if budget.is_over():
            return
        domain_of_set = np.empty(len(line), dtype=np.int64)
        domain_of_set[line] = home
        node = _nodes(problem, domain, domain_of_set[label])
        incumbent.offer(name, machine.gpus_on(node))


def _cuts(
    problem: Problem, room: IntArray, lengths: IntArray, budget: Budget
) -> tuple[float, list[IntArray]]:
    """(the smallest piece, as a share, domains along the line) where it is largest."""
    rng = np.random.default_rng(problem.seed)
    best, cut = -1.0, dict[tuple[int, ...], IntArray]()
    for _ in range(problem.params.line_orders):
        if budget.is_over():
            break
        order = rng.permutation(len(room))
        takes = _takes(room[order], int(lengths.sum()), rng)
        smallest = _smallest_piece(takes, lengths)
        if smallest > best:
            best, cut = smallest, {}
        if smallest == best and len(cut) < problem.fills_priced:
            held = takes[np.argsort(order)]
            cut.setdefault(tuple(held.tolist()), np.repeat(order, takes))
    return best, list(cut.values())


def _line(
    label: IntArray, senders: IntArray, receivers: IntArray
) -> tuple[IntArray, IntArray]:
    """(sets, component by component; sets of each component).

    Those who send are spread evenly among the others of their component.
    """
    pairs = np.unique(np.stack((label[senders], label[receivers]), axis=1), axis=0)
    component = join(np.arange(int(label.max()) + 1), pairs)
    sends = np.zeros(len(component), dtype=np.int64)
    sends[pairs[:, 0]] = 1
    place, count = among_alike(component * 2 + sends)
    share = (place + 0.5) / count
    lengths = np.unique(component, return_counts=True)[1]
    return np.lexsort((sends, share, component)), lengths


def _takes(room: IntArray, total: int, rng: np.random.Generator) -> IntArray:
    """Sets that each domain takes; those that are not needed, the smallest, take none.

    What is spare besides is left free in a domain by chance.
    """
    spare = int(room.sum()) - total
    takes = room.copy()
    for index in np.argsort(room, kind="stable"):
        if room[index] > spare:
            break
        spare -= int(room[index])
        takes[index] = 0
    while spare > 0:
        index = int(rng.choice(np.flatnonzero(takes)))
        less = int(rng.integers(1, min(spare, int(takes[index])) + 1))
        takes[index] -= less
        spare -= less
    return takes


def _smallest_piece(takes: IntArray, lengths: IntArray) -> float:
    """Smallest piece that a domain has, as a share of its component."""
    ends = np.cumsum(lengths)
    cuts = np.union1d(np.cumsum(takes), ends)
    pieces = np.diff(cuts, prepend=0)
    of = np.searchsorted(ends, cuts)
    return float((pieces / lengths[of])[pieces > 0].min())


def _nodes(problem: Problem, domain: IntArray, domain_of_rank: IntArray) -> IntArray:
    """The node of each rank: those of its domain filled in turn, sets kept whole."""
    label = problem.colocation.label
    ranks = np.lexsort((np.arange(len(domain_of_rank)), *label[:-1], domain_of_rank))
    node_of_rank = np.empty(len(ranks), dtype=np.int64)
    seats = np.repeat(np.arange(len(domain)), problem.capacity)
    seats = seats[np.argsort(domain[seats], kind="stable")]
    held = domain_of_rank[ranks]
    first = np.searchsorted(domain[seats], held)
    place = np.arange(len(ranks)) - np.searchsorted(held, held)
    node_of_rank[ranks] = seats[first + place]
    return node_of_rank
