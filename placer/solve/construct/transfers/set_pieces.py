"""Transfers between racks: closed sets cut into pieces that racks have nodes for.

All sets of a kind are cut in the same few ways (`set_ways`). A program counts how
many sets are cut in each way, and how many racks are divided in each way into places
for pieces (`component_pieces`). The shortest time for which it has a solution is found
by bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.solve.bounds.transfers.transfers import (
    Transfers,
    transfers_by_rank,
    transfers_of,
)
from placer.solve.construct.transfers.closed_sets import ClosedSets, ways_to_close
from placer.solve.construct.transfers.component_pieces import (
    divisions_into,
    in_places,
    shared_out,
)
from placer.solve.construct.transfers.loose_sets import loose_sets
from placer.solve.construct.transfers.set_ways import Way, Ways
from placer.solve.count.engine import Limits
from placer.solve.problem.needs import ROUNDING, needs_of
from placer.solve.tree.in_runs import fill_in_runs

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

# The domain of each rank of some closed sets.
Homes = Callable[[list[ClosedSets], IntArray, "Params", "Budget"], IntArray | None]


def set_pieces(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Closed sets whole or in a few pieces, on racks whose nodes are all as large.

    Cuts into many pieces take long to find, so all times are tried with few before.
    """
    racks = _Racks.of(problem)
    if racks is None:
        return
    first, high = racks.first(incumbent, budget), racks.last(incumbent)
    for pieces in problem.params.set_pieces:
        homes = partial(_homes, pieces)
        low = middle = first  # often all that the bound allows is possible
        while low < high and not budget.is_over():
            if racks.hold(middle, homes, incumbent, budget):
                high = middle
            else:
                low = middle + 1
            middle = (low + high) // 2


def loose_pieces(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """A few closed sets rank by rank, for times that the bound does not rule out."""
    racks = _Racks.of(problem)
    bounds = None if racks is None else transfers_of(problem)
    if racks is None or bounds is None:
        return
    for index in range(racks.last(incumbent) - 1, -1, -1):
        seconds = float(racks.times[index])
        same = int(np.searchsorted(bounds.times, seconds, side="right")) - 1
        if budget.is_over() or same < 0 or not bounds.may_keep_to(same, budget):
            return
        if not racks.hold(index, _loose_homes, incumbent, budget):
            return


class _Racks(NamedTuple):
    """What closed sets are laid on."""

    problem: Problem
    transfers: list[Transfers]
    domain: IntArray
    nodes: IntArray

    @classmethod
    def of(cls, problem: Problem) -> _Racks | None:
        """Those of a launch by nodes that are all as large; None for any other."""
        if problem.goal.name != "time" or problem.job.launcher == "free":
            return None
        machine, tier = problem.machine, problem.model.fabric.scale_up_tier
        room = problem.capacity
        is_used = room > 0
        if tier < 1 or machine.node_tier > 0 or (room[is_used] < room.max()).any():
            return None
        transfers = problem.once(transfers_by_rank)
        if not transfers:
            return None
        domain = machine.domain_of_node[tier]
        nodes = np.bincount(domain[is_used], minlength=int(domain.max()) + 1)
        return cls(problem, transfers, domain, nodes)

    @property
    def times(self) -> FloatArray:
        """Times, s, at which needs change, and a little more."""
        times = np.concatenate([one.times for one in self.transfers])
        return np.asarray(np.unique(times) * (1 + ROUNDING))

    def first(self, incumbent: Incumbent, budget: Budget) -> int:
        """The first time that the bound does not rule out."""
        bounds = transfers_of(self.problem)
        if bounds is None:
            return 0
        least = bounds.times[bounds.least(incumbent.value, budget=budget)]
        return int(np.searchsorted(self.times, least))

    def last(self, incumbent: Incumbent) -> int:
        """The first time that is no shorter, or that at which nobody needs others."""
        return min(
            len(self.times) - 1, int(np.searchsorted(self.times, incumbent.value))
        )

    def hold(
        self, index: int, homes: Homes, incumbent: Incumbent, budget: Budget
    ) -> bool:
        """Whether a placement is found that keeps to a time; it is offered."""
        problem, room = self.problem, self.problem.capacity
        seconds = float(self.times[index])
        needs = needs_of([kind for of in self.transfers for kind in of.kinds(seconds)])
        for sets in ways_to_close(needs, problem.job.world_size, int(room.max())):
            home = homes(sets, self.nodes, problem.params, budget)
            node = None if home is None else fill_in_runs(self.domain, room, home)
            if node is not None:
                gpu_of_rank = problem.machine.gpus_on(node)
                incumbent.offer("closed sets in pieces", gpu_of_rank)
                return True
        return False


def _homes(
    pieces: int,
    sets: list[ClosedSets],
    nodes: IntArray,
    params: Params,
    budget: Budget,
) -> IntArray | None:
    """Domain of each rank, where domains have so many nodes; None if none is found.

    Sets are in so many pieces at the most.
    """
    needy = [one for one in sets if one.needs]
    if max((one.ranks.shape[1] for one in needy), default=0) > params.set_places:
        return None
    domain_of_rank = np.full(sum(one.ranks.size for one in sets), -1, dtype=np.int64)
    others = [node for one in sets if not one.needs for node in one.ranks]
    most = int(nodes.sum()) - len(others)
    ways = [Ways(one, params).up_to(pieces, budget) for one in needy]
    dealt = _dealt(needy, ways, nodes, most, params, budget)
    if dealt is None:
        return None
    left = nodes.copy()
    for size, ranks, home in dealt.pieces:
        domain_of_rank[ranks] = home
        left[home] -= size
    return _beside(domain_of_rank, [*dealt.over, *others], left)


def _loose_homes(
    sets: list[ClosedSets], nodes: IntArray, params: Params, budget: Budget
) -> IntArray | None:
    """The same, where all sets with needs are alike, with a few of them in any way."""
    needy = [one for one in sets if one.needs]
    if len(needy) != 1:
        return None
    found = loose_sets(needy[0], nodes, params, budget)
    if found is None:
        return None
    domain_of_rank = np.full(sum(one.ranks.size for one in sets), -1, dtype=np.int64)
    domain_of_rank[found.ranks] = found.home
    others = [node for one in sets if not one.needs for node in one.ranks]
    return _beside(domain_of_rank, others, nodes - found.nodes)


def _beside(
    domain_of_rank: IntArray, others: list[IntArray], left: IntArray
) -> IntArray | None:
    """Also the ranks of other nodes, where so many are left; None where too few are."""
    free = np.repeat(np.arange(len(left)), left)
    if len(free) < len(others):
        return None
    for ranks, home in zip(others, free.tolist(), strict=False):
        domain_of_rank[ranks] = home
    return domain_of_rank


class _Dealt(NamedTuple):
    """All sets in pieces.

    Attributes
    ----------
    pieces : list of (int, ndarray, int)
        Nodes, ranks and domain of each.
    over : list of ndarray
        Ranks of each node that is left over.
    """

    pieces: list[tuple[int, IntArray, int]]
    over: list[IntArray]


def _dealt(
    sets: list[ClosedSets],
    ways: list[list[Way]],
    nodes: IntArray,
    most: int,
    params: Params,
    budget: Budget,
) -> _Dealt | None:
    """The pieces, on ``most`` nodes in all; None if none are found."""
    sizes = sorted({size for own in ways for way in own for size in way.nodes})
    rooms, domains = np.unique(nodes, return_counts=True)
    divided = [
        list(islice(divisions_into(room, sizes), params.piece_ways))
        for room in rooms.tolist()
    ]
    if sum(map(len, divided)) >= params.piece_ways:
        return None
    found = shared_out(
        [
            (len(one.ranks), [way.nodes for way in own])
            for one, own in zip(sets, ways, strict=True)
        ],
        list(zip(rooms.tolist(), domains.tolist(), divided, strict=True)),
        Limits(params.piece_nodes, budget.seconds_left, engine="highs"),
        most,
        [[way.over for way in own] for own in ways],
    )
    if found is None:
        return None
    pieces, over = [], []
    for one, own, cut in zip(sets, ways, found.cut, strict=True):
        for ranks, number in zip(one.ranks, cut, strict=True):
            way = own[number]
            held = (ranks[way.piece == piece] for piece in range(len(way.nodes)))
            pieces += list(zip(way.nodes, held, strict=True))
            over += _nodes_of(ranks[way.piece < 0], one.block)
    places = in_places(pieces, found.places, nodes)
    return _Dealt([(*piece, domain) for piece, domain in places], over)


def _nodes_of(ranks: IntArray, block: int) -> list[IntArray]:
    """Ranks of each node, where every run of consecutive ones has nodes of its own."""
    runs = np.split(ranks, np.flatnonzero(np.diff(ranks) > 1) + 1)
    begins = (range(0, len(run), block) for run in runs)
    return [
        run[begin : begin + block]
        for run, of in zip(runs, begins, strict=True)
        for begin in of
    ]
