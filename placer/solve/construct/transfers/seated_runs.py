"""Transfers between racks: the few ranks with needs first, each with the best nodes.

Ranks with needs are cut into runs of the same length. Racks are given runs that have
the same partners, as many as leave so many nodes beside them, the most with which all
runs have a rack. These nodes take the runs that hold most of the partners.

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

from placer.arrays import IntArray
from placer.solve.bounds.transfers.transfers import transfers_of
from placer.solve.problem.needs import ROUNDING
from placer.solve.tree.in_runs import fill_in_runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from placer.solve.problem.compiled import Problem
    from placer.solve.problem.needs import Kind
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

Key = tuple[int, ...]  # kinds that the ranks of a run have


def seated_runs(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Runs of every length, on racks whose nodes are all as large."""
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
    domain = machine.domain_of_node[tier]
    nodes = np.bincount(domain[is_used], minlength=int(domain.max()) + 1)
    before = np.inf
    while incumbent.value < before and not budget.is_over():
        before = incumbent.value
        # Who has needs at the last time before is who must be better off.
        last = int(np.searchsorted(transfers.times, before * (1 - ROUNDING))) - 1
        kinds = transfers.kinds(float(transfers.times[last])) if last >= 0 else []
        for length in range(1, block + 1):
            home = _homes(kinds, nodes, block, length)
            node = None if home is None else fill_in_runs(domain, room, home)
            if node is not None:
                gpu_of_rank = machine.gpus_on(node)
                incumbent.offer("few ranks with partners near", gpu_of_rank)


def _homes(
    kinds: Sequence[Kind], nodes: IntArray, block: int, length: int
) -> IntArray | None:
    """Domain of each rank, where domains have so many nodes.

    None if they do not do, or if those with needs are none or more than half.
    """
    if not kinds:
        return None
    needy = np.array([kind.ranks for kind in kinds])
    partners = np.array([kind.partners for kind in kinds])
    has_needs = np.logical_or.reduce(needy)
    runs, rest = _runs(has_needs, length), _runs(~has_needs, block)
    if 2 * np.count_nonzero(has_needs) > len(has_needs):
        return None
    if len(runs) + len(rest) > nodes.sum():
        return None
    alike: defaultdict[Key, list[IntArray]] = defaultdict(list)
    for run in runs:
        own = np.flatnonzero(needy[:, run].any(axis=1))
        alike[tuple(own.tolist())].append(run)
    numbers = {key: len(of) for key, of in alike.items()}
    tried = (_seats(numbers, nodes, n) for n in range(int(nodes.max()) - 1, 0, -1))
    seats = next(filter(None, tried), None)
    if seats is None:
        return None
    held = np.array([partners[:, run].sum(axis=1) for run in rest])
    domain_of_rank = np.full(needy.shape[1], -1, dtype=np.int64)
    left, is_free = nodes.copy(), np.ones(len(rest), dtype=bool)
    for home, key, number in seats:
        left[home] -= number
        for _ in range(number):
            domain_of_rank[alike[key].pop()] = home
        for near in _nearest(held[:, key], is_free, int(left[home])):
            domain_of_rank[rest[near]] = home
            is_free[near] = False
            left[home] -= 1
    others = np.repeat(np.arange(len(left)), left).tolist()
    for number, home in zip(np.flatnonzero(is_free).tolist(), others, strict=False):
        domain_of_rank[rest[number]] = home
    return domain_of_rank


def _seats(
    numbers: Mapping[Key, int], nodes: IntArray, beside: int
) -> list[tuple[int, Key, int]] | None:
    """A domain for runs of each kind, with so many nodes beside them; None if none is.

    Each domain has runs of one kind, the largest those of which most are left.
    """
    left, found = dict(numbers), []
    for home in np.argsort(-nodes, kind="stable").tolist():
        key = max(left, key=lambda one: left[one])
        number = min(left[key], int(nodes[home]) - beside)
        if number <= 0:
            break
        found.append((home, key, number))
        left[key] -= number
    return None if any(left.values()) else found


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
