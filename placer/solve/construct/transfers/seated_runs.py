"""Transfers between racks: the few ranks with needs first, each with the best nodes.

Where a few ranks send to very many, a rack holds a small part of those, and which part
is a matter of the rank's company: of a node of four consecutive receivers each of four
senders may have one, or two senders two. So runs of so many ranks with needs, the same
length for all, are seated in a rack each, or those with the same partners together. The
nodes beside them take the runs that hold most of their partners.

By hand: 0 to 3 send to every fourth pair of ranks from 4 on, racks of five nodes of
four. All four on a node have a partner each on the other four nodes, 4 in all. 0 and 1
alone have two on every second node, and the rack takes only these: 8. Shapes: R ranks,
W runs without needs, K kinds.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.placement.placement import Placement
from placer.solve.bounds.transfers.transfers import transfers_of
from placer.solve.tree.in_runs import fill_in_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.solve.bounds.transfers.run_sorts import Kind
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

IntArray = npt.NDArray[np.int64]


def seated_runs(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Runs of every length, together and apart, on racks of nodes that are as large."""
    if problem.goal.name != "time" or problem.job.launcher == "free":
        return
    machine, tier = problem.machine, problem.model.fabric.scale_up_tier
    room = problem.capacity
    block, is_used = int(room.max()), room > 0
    if tier <= machine.node_tier or (room[is_used] < block).any():
        return
    transfers = transfers_of(problem)
    if transfers is None:
        return
    kinds = transfers.kinds(float(transfers.times[transfers.least(incumbent.value)]))
    domain = machine.domain_of_node[tier]
    nodes = np.bincount(domain[is_used], minlength=int(domain.max()) + 1)
    needy = sum(int(kind.ranks.sum()) for kind in kinds)
    if not kinds or needy > len(np.flatnonzero(nodes)) * block:
        return
    for length in range(1, block + 1):
        for together in (True, False):
            if budget.is_over():
                return
            home = _homes(kinds, nodes, block, length, together=together)
            node = None if home is None else fill_in_runs(domain, room, home)
            if node is not None:
                gpu_of_rank = Placement.on_nodes(machine, node).gpu_of_rank
                incumbent.offer("few ranks with partners near", gpu_of_rank)


def _homes(
    kinds: Sequence[Kind], nodes: IntArray, block: int, length: int, *, together: bool
) -> IntArray | None:
    """Domain of each rank, where domains have so many nodes; None if they do not do."""
    has_needs = np.any([kind.ranks for kind in kinds], axis=0)
    runs = _runs(has_needs, length)
    rest = _runs(~has_needs, block)
    if len(runs) + len(rest) > nodes.sum():
        return None
    seats: defaultdict[tuple[int, ...], list[IntArray]] = defaultdict(list)
    for number, run in enumerate(runs):
        own = tuple(k for k, kind in enumerate(kinds) if kind.ranks[run].any())
        seats[own if together else (*own, -1 - number)].append(run)
    by_size = np.argsort(-nodes, kind="stable").tolist()
    if len(seats) > np.count_nonzero(nodes):
        return None
    held = np.array([[kind.partners[run].sum() for kind in kinds] for run in rest])
    domain_of_rank = np.full(len(has_needs), -1, dtype=np.int64)
    left, is_free = nodes.copy(), np.ones(len(rest), dtype=bool)
    for home, (key, own_runs) in zip(by_size, seats.items(), strict=False):
        left[home] -= len(own_runs)
        if left[home] < 0:
            return None
        domain_of_rank[np.concatenate(own_runs)] = home
        near = held[:, [kind for kind in key if kind >= 0]]
        for number in _nearest(near, is_free, int(left[home])):
            domain_of_rank[rest[number]] = home
            is_free[number] = False
            left[home] -= 1
    others = np.repeat(by_size, left[by_size]).tolist()
    for number, home in zip(np.flatnonzero(is_free).tolist(), others, strict=False):
        domain_of_rank[rest[number]] = home
    return domain_of_rank


def _runs(chosen: npt.NDArray[np.bool_], length: int) -> list[IntArray]:
    """Chosen ranks in runs of consecutive ones, no longer than ``length``."""
    ranks = np.flatnonzero(chosen)
    stretches = np.split(ranks, np.flatnonzero(np.diff(ranks) > 1) + 1)
    return [
        stretch[begin : begin + length]
        for stretch in stretches
        for begin in range(0, len(stretch), length)
    ]


def _nearest(held: IntArray, is_free: npt.NDArray[np.bool_], count: int) -> list[int]:
    """So many free runs that hold most partners, of the kind with fewest first.

    ``held``, of shape (W, K), says how many partners of each kind a run holds.
    """
    free, has = is_free.copy(), np.zeros(held.shape[1], dtype=np.int64)
    found: list[int] = []
    while len(found) < count and free.any():
        fewest = has == has.min()
        worth = held[:, fewest].sum(axis=1) * (held.sum() + 1) + held.sum(axis=1)
        number = int(np.argmax(np.where(free, worth, -1)))
        if not held[number].any():
            break
        found.append(number)
        has += held[number]
        free[number] = False
    return found
