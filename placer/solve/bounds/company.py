"""The bound of ranks that want company: sets that may share a scale-up domain.

In a placement whose traffic takes no longer than T, the ranks S of any scale-up domain
are *fast company*: of each of them, what goes to ranks outside S, or comes from there,
takes its NIC no longer than T. So if some rank is in no fast company of as many ranks
as a domain holds, no placement takes T.

The search for company is a tree: of a rank whose NIC would be too slow with the company
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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.links import weighted_counts
from placer.solve.bounds import Proof
from placer.solve.bounds.case import best_of_problem
from placer.solve.run.budget import ENDLESS

if TYPE_CHECKING:
    from placer.job.traffic import RankTraffic
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget

ARGUMENT = (
    "of the ranks of a scale-up domain one keeps its NIC busy so long, with those "
    "outside"
)
ROUNDING = 1e-12
# Ranks, the busiest first, for which trees are grown; neighbours looked at in all
# trees, and trees, at the least, that share this work.
RANKS = 32
WORK = 500_000
TREES = 32
# Times differ by so much at the least, relative to them.
FINEST = 1e-6
# How much nearer the next time is after one that may do.
NEARER = 8


class _Port(NamedTuple):
    """What a rank sends, or receives."""

    alone: float  # s: with all others outside its domain
    # s: how much less with each other rank in it, the most first.
    gains: dict[int, float]


def least_in_company(
    problem: Problem, block: int, _incumbent: float, budget: Budget = ENDLESS
) -> Proof | None:
    """Least step time that the traffic of some rank and its company allows.

    None without traffic. When the budget ends, what is left open counts as company.
    """
    model, traffic = problem.model, problem.job.traffic
    if traffic is None or not model.fabric.can_leave_scale_up:
        return None
    network = best_of_problem(problem, block)
    companies = _Companies.of(network, traffic)
    least = 0.0
    for rank in companies.busiest[:RANKS].tolist():
        least = companies.least_around(rank, least, budget)
    network = replace(network, transfers_s=least * (1 - ROUNDING))
    return Proof(model.step_on(network).step_time_s, ARGUMENT)


@dataclass(eq=False)
class _Companies:
    """Ranks that may be in one scale-up domain."""

    room: int  # ranks of the largest scale-up domain
    work_left: int  # neighbours that all trees may still look at
    # sent and received: (start of each rank, the other end, its gain, seconds alone),
    # by rank.
    sent: tuple[IntArray, IntArray, FloatArray, FloatArray]
    received: tuple[IntArray, IntArray, FloatArray, FloatArray]
    _ports: dict[int, tuple[_Port, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, network: IdealNetwork, traffic: RankTraffic) -> _Companies:
        """Those of a job's traffic on a machine."""
        ends = traffic.senders, traffic.receivers
        sent = _rows(network, *ends, traffic.size_bytes)
        received = _rows(network, *ends[::-1], traffic.size_bytes)
        room = int(network.capacities[network.fabric.scale_up_tier].max())
        return cls(room, WORK, sent, received)

    @property
    def alone(self) -> FloatArray:
        """Seconds of each rank without company; shape (R,)."""
        return np.maximum(self.sent[3], self.received[3])

    @property
    def busiest(self) -> IntArray:
        """Ranks, the busiest without company first; shape (R,)."""
        return np.argsort(-self.alone, kind="stable")

    def least_around(self, rank: int, seconds: float, budget: Budget) -> float:
        """The least time in which a rank may have company, or what is known.

        Times ever further on are tried, and nearer ones after one that may do.
        """
        growth = FINEST
        while True:
            tree = _Tree(self, seconds * (1 + growth))
            if not (budget.is_over() or tree.finds_company(rank) or tree.is_cut):
                seconds, growth = tree.next_s, 2 * growth
            elif growth > FINEST:
                growth = max(FINEST, growth / NEARER)
            else:
                return seconds

    def ports_of(self, rank: int) -> tuple[_Port, ...]:
        """What a rank sends and receives, once where it is the same."""
        known = self._ports.get(rank)
        if known is None:
            ports = []
            for start, others, gains, alone in (self.sent, self.received):
                own = slice(start[rank], start[rank + 1])
                order = np.lexsort((-others[own], -gains[own]))
                ends, gain = others[own][order].tolist(), gains[own][order].tolist()
                port = _Port(float(alone[rank]), dict(zip(ends, gain, strict=True)))
                if port not in ports:
                    ports.append(port)
            known = self._ports[rank] = tuple(ports)
        return known


class _Tree:
    """The search for fast company of a rank, for one time.

    ``next_s`` (s): for no time below there is company that was not found; infinite at
    first. ``is_cut``: whether there was more to look at.
    """

    def __init__(self, companies: _Companies, seconds: float) -> None:
        self._companies = companies
        self._work = min(companies.work_left, WORK // TREES)
        most = float(companies.alone.max(initial=0.0))
        self._limit = seconds + ROUNDING * (seconds + most)
        self.next_s, self.is_cut = inf, self._work <= 0

    def finds_company(self, rank: int) -> bool:
        """Whether a rank has any; where the tree is cut there may be more."""
        open_: list[tuple[tuple[int, ...], frozenset[int]]] = [((rank,), frozenset())]
        while open_ and not self.is_cut:
            inside, outside = open_.pop()
            other, is_fast = self._joins_next(inside, outside)
            if is_fast:
                return True
            if other is not None:
                open_.append((inside, outside | {other}))
                open_.append(((*inside, other), outside))
        return False

    def _joins_next(
        self, inside: tuple[int, ...], outside: frozenset[int]
    ) -> tuple[int | None, bool]:
        """Whom to decide on next, if anybody may join; whether all are fast.

        A heavy neighbour of one who has the least choice.
        """
        limit, slots = self._limit, self._companies.room - len(inside)
        wanted, newcomers, least, next_ = 0, Counter[int](), inf, (inf, 0, 0)
        looked = 0
        for member in inside:
            for alone, gains in self._companies.ports_of(member):
                looked += len(gains)
                busy = alone - sum(gains.get(one, 0.0) for one in inside)
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
                    return None, False
                least = min(least, before)
                wanted += needed
                newcomers.update(open_)
                next_ = min(next_, (len(open_) - needed, -needed, open_[0]))
        self._spend(looked)
        if not wanted:
            return None, True
        if sum(times for _, times in newcomers.most_common(slots)) < wanted:
            self.next_s = min(self.next_s, least)
            return None, False
        return next_[2], False

    def _spend(self, looked: int) -> None:
        self._companies.work_left -= looked
        self._work -= looked
        self.is_cut = self._work <= 0


def _rows(
    network: IdealNetwork, ranks: IntArray, others: IntArray, size: FloatArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Where the row of each rank starts; the other end and the gain of each entry.

    The last array has the seconds of each rank with all others outside its domain.
    """
    fabric, count = network.fabric, network.label.shape[1]
    outer = fabric.scale_up_tier + 1
    keys, which, messages = np.unique(
        ranks * count + others, return_inverse=True, return_counts=True
    )
    sent = np.bincount(which, size, len(keys)) / float(fabric.bandwidth[outer:].max())
    near = messages * float(fabric.latency.min())
    far = np.maximum(sent + messages * float(fabric.latency[outer:].min()), near)
    start = np.searchsorted(keys // count, np.arange(count + 1))
    alone = weighted_counts(keys // count, far, count)
    return start, keys % count, far - near, alone
