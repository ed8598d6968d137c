"""The bound of a rank's neighbours: sets that may share a scale-up domain.

In a placement whose traffic takes no longer than T, the ranks S of any scale-up domain
are a *fast set*: of each of them, what goes to ranks outside S, or comes from there,
takes its NIC no longer than T. So if some rank is in no fast set of as many ranks as a
domain holds, no placement takes T.

The search for a fast set is a tree: of a rank whose NIC would be too slow with the set
so far, a neighbour either joins or stays outside for good. Branches end where

* such a rank needs more neighbours than there is room for, and
* all such ranks need more in sum than so many newcomers can be neighbours of.

Each branch that ends knows the least time for which it would go on; the least of these
is the next to try.

By hand: a grid on nodes of four. With three of its four neighbours a rank has one
elsewhere, but each of the three has three. Of a square each has two, and no four ranks
do better. Shapes: R ranks, F flows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

import numpy as np

from placer.base.arrays import FloatArray
from placer.base.rounding import EXACT
from placer.cost.links import weighted_counts
from placer.job.traffic import RankTraffic
from placer.solve.bounds import WORK, Proof
from placer.solve.bounds.case import best_of_problem
from placer.solve.bounds.ideal import IdealNetwork
from placer.solve.bounds.partners import Pairs
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import ENDLESS, Budget

ARGUMENT = (
    "of the ranks of a scale-up domain one keeps its NIC busy so long, with those "
    "outside"
)
# Ranks, the busiest first, around which sets are grown. They share the work.
RANKS = 32


class _Port(NamedTuple):
    """What a rank sends, or receives."""

    alone: float  # s: with all others outside its domain
    # s: how much less with each other rank in it, the most first.
    gains: dict[int, float]


def least_with_neighbours(
    problem: Problem, block: int, _incumbent: float, budget: Budget = ENDLESS
) -> Proof | None:
    """Least step time that the traffic of some rank and its neighbours allows.

    None without traffic. When the budget ends, what is left open counts as a fast set.
    """
    model, traffic = problem.model, problem.job.traffic
    if traffic is None or not model.fabric.can_leave_scale_up:
        return None
    network = best_of_problem(problem, block)
    neighbours = _Neighbours.of(network, traffic)
    least = 0.0
    for rank in np.argsort(-neighbours.alone, kind="stable")[:RANKS].tolist():
        least = neighbours.least_around(rank, least, budget)
    network = replace(network, transfers_s=least)
    return Proof(model.step_on(network).step_time_s, ARGUMENT)


@dataclass(eq=False)
class _Neighbours:
    """Ranks that send to each other, and may be in one scale-up domain."""

    room: int  # ranks of the largest scale-up domain
    ways: list[Pairs]  # what is sent, and what is received
    alone: FloatArray  # (R,), s: of each rank with all others outside its domain
    work_left: int = WORK  # what all trees may still look at
    _ports: dict[int, tuple[_Port, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, network: IdealNetwork, traffic: RankTraffic) -> _Neighbours:
        """Those of a job's traffic on a machine."""
        ends, size = (traffic.senders, traffic.receivers), traffic.size_bytes
        room = int(network.capacities[network.fabric.scale_up_tier].max())
        ways = [Pairs.of(network, *pair, size) for pair in (ends, ends[::-1])]
        ranks = network.label.shape[1]
        alone = [weighted_counts(one.rank, one.far_s, ranks) for one in ways]
        return cls(room, ways, np.maximum(*alone))

    def least_around(self, rank: int, seconds: float, budget: Budget) -> float:
        """The least time in which a rank may be in a fast set, or what is known.

        No less than ``seconds``, where it is looked for first.
        """
        least, most, tried = seconds, float(self.alone[rank]), seconds
        while least < most * (1 - EXACT):
            tree = _Tree(self, tried)
            takes_s = 0.0 if budget.is_over() else tree.seconds_of_set(rank)
            if takes_s < inf or tree.is_cut:
                most = min(tried, takes_s)
            else:
                least = tree.next_s
            tried = (least + most) / 2
        return least

    def ports_of(self, rank: int) -> tuple[_Port, ...]:
        """What a rank sends and receives, once where it is the same."""
        if rank not in self._ports:
            ports: list[_Port] = []
            for pairs in self.ways:
                own = slice(*np.searchsorted(pairs.rank, (rank, rank + 1)))
                ends, gain = pairs.other[own], (pairs.far_s - pairs.near_s)[own]
                order = np.lexsort((-ends, -gain))
                gains = zip(ends[order].tolist(), gain[order].tolist(), strict=True)
                port = _Port(float(pairs.far_s[own].sum()), dict(gains))
                if port not in ports:
                    ports.append(port)
            self._ports[rank] = tuple(ports)
        return self._ports[rank]


class _Tree:
    """The search for a fast set of a rank, for one time.

    ``next_s`` (s): for no time below there is a set that was not found; infinite at
    first. ``is_cut``: whether there was more to look at.
    """

    def __init__(self, neighbours: _Neighbours, seconds: float) -> None:
        self._neighbours = neighbours
        self._work = min(neighbours.work_left, WORK // RANKS)
        most = float(neighbours.alone.max(initial=0.0))
        self._limit = seconds + EXACT * (seconds + most)
        self.next_s, self.is_cut = inf, self._work <= 0

    def seconds_of_set(self, rank: int) -> float:
        """Time of some fast set with a rank, s; infinite where none is found."""
        open_: list[tuple[tuple[int, ...], frozenset[int]]] = [((rank,), frozenset())]
        while open_ and not self.is_cut:
            inside, outside = open_.pop()
            other, seconds = self._joins_next(inside, outside)
            if seconds < inf:
                return seconds
            if other is not None:
                open_.append((inside, outside | {other}))
                open_.append(((*inside, other), outside))
        return inf

    def _joins_next(
        self, inside: tuple[int, ...], outside: frozenset[int]
    ) -> tuple[int | None, float]:
        """Whom to decide on next, if anybody may join; time of all if that is fast.

        A heavy neighbour of one who has the least choice.
        """
        limit, slots = self._limit, self._neighbours.room - len(inside)
        wanted, newcomers, least, next_ = 0, Counter[int](), inf, (inf, 0, 0)
        looked, busiest = 0, 0.0
        for member in inside:
            for alone, gains in self._neighbours.ports_of(member):
                looked += len(gains) * len(inside)
                busy = alone - sum(gains.get(one, 0.0) for one in inside)
                busiest = max(busiest, busy)
                if busy <= limit:
                    continue
                open_ = [
                    one for one in gains if one not in inside and one not in outside
                ]
                needed, before = 0, busy
                while busy > limit and needed < min(slots, len(open_)):
                    before = busy
                    busy -= gains[open_[needed]]
                    needed += 1
                if busy > limit:
                    self.next_s = min(self.next_s, busy)
                    self._spend(looked)
                    return None, inf
                least = min(least, before)
                wanted += needed
                newcomers.update(open_)
                next_ = min(next_, (len(open_) - needed, -needed, open_[0]))
        self._spend(looked)
        if not wanted:
            return None, busiest
        if sum(times for _, times in newcomers.most_common(slots)) < wanted:
            self.next_s = min(self.next_s, least)
            return None, inf
        return next_[2], inf

    def _spend(self, looked: int) -> None:
        self._neighbours.work_left -= looked
        self._work -= looked
        self.is_cut = self._work <= 0
