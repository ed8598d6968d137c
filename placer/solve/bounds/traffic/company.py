"""The bound that ranks set who all want the same company in one scale-up domain.

In a placement whose traffic takes no longer than T, the ranks S of any scale-up domain
are *fast company*: of each of them, what goes to ranks outside S, or comes from there,
takes its NIC no longer than T. A domain holds ``c`` ranks, so if some rank is in no
fast company of c ranks or fewer, no placement takes T. In a stencil on nodes of four
some rank of any four has two neighbours elsewhere, though any single one could have
three of its own near.

The search for company is a tree: of a rank whose NIC would be too slow with the company
so far, a neighbour either joins or stays outside for good. Branches end where

* such a rank needs more neighbours than there is room for, and
* all such ranks need more in sum than so many newcomers can be neighbours of.

A tree with nothing found is a proof for that rank and T, whatever other ranks do. What
is left open where a tree grows too large counts as company. Shapes: R ranks, F flows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.cost.links import weighted_counts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placer.job.model import RankTraffic
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

ROUNDING = 1e-12
# Trees, at the least, that share the work.
TREES = 32
NOBODY, NEVER = -1, 1 << 40

# Ranks that are in the company, and that are not.
_Branch = tuple[frozenset[int], frozenset[int]]


class _Port(NamedTuple):
    """What a rank sends, or receives.

    Attributes
    ----------
    alone : float, s
        With all others outside its domain.
    gains : dict of int to float, s
        How much less with each other rank in it.
    """

    alone: float
    gains: dict[int, float]


def least_in_company(
    network: IdealNetwork, traffic: RankTraffic, params: Params, budget: Budget
) -> float:
    """Least seconds that the traffic of some rank and its company allows.

    Parameters
    ----------
    network : IdealNetwork
        The best one for every placement.
    traffic : RankTraffic
    params : Params
    budget : Budget
        When it ends, what is left open counts as company.
    """
    if not network.fabric.can_leave_scale_up:
        return 0.0
    companies = _Companies.of(network, traffic, params.company_work)
    return companies.least_seconds(params.company_ranks, budget)


@dataclass(eq=False)
class _Companies:
    """Ranks that may be in one scale-up domain.

    Attributes
    ----------
    room : int
        Ranks of the largest scale-up domain.
    work_left, most_work : int
        Neighbours that all trees look at.
    sent, received : tuple of ndarray
        (start of each rank, the other end, its gain, seconds alone), by rank.
    """

    room: int
    work_left: int
    most_work: int
    sent: tuple[IntArray, IntArray, FloatArray, FloatArray]
    received: tuple[IntArray, IntArray, FloatArray, FloatArray]
    _ports: dict[int, tuple[_Port, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, network: IdealNetwork, traffic: RankTraffic, work: int) -> _Companies:
        """Those of a job's traffic on a machine."""
        ends = traffic.senders, traffic.receivers
        sent = _rows(network, *ends, traffic.size_bytes)
        received = _rows(network, *ends[::-1], traffic.size_bytes)
        room = int(network.capacities[network.fabric.scale_up_tier].max())
        return cls(room, work, work, sent, received)

    def least_seconds(self, most_ranks: int, budget: Budget) -> float:
        """Seconds below which the traffic of no placement is, of a few busy ranks."""
        alone = np.maximum(self.sent[3], self.received[3])
        least = 0.0
        for rank in np.argsort(-alone, kind="stable")[:most_ranks].tolist():
            high = float(alone[rank])
            if budget.is_over():
                break
            if high <= least or not self._is_slow(rank, least):
                continue
            low = least
            while high - low > ROUNDING * high and not budget.is_over():
                middle = (low + high) / 2
                if self._is_slow(rank, middle):
                    low = middle
                else:
                    high = middle
            least = low
        return least

    def _is_slow(self, rank: int, seconds: float) -> bool:
        """Whether the rank is surely in no company as fast as that."""
        limit = seconds * (1 + ROUNDING)
        left = min(self.work_left, self.most_work // TREES)
        self.work_left -= left
        open_: list[_Branch] = [(frozenset((rank,)), frozenset())]
        is_found = False
        while open_ and left > 0 and not is_found:
            branch = open_.pop()
            left -= sum(len(port.gains) for port in self._ports_in(branch))
            other = self._joins_next(branch, limit)
            is_found = other == NOBODY
            if other is not None and not is_found:
                inside, outside = branch
                open_.append((inside, outside | {other}))
                open_.append((inside | {other}, outside))
        self.work_left += max(left, 0)
        return not open_ and not is_found

    def _joins_next(self, branch: _Branch, limit: float) -> int | None:
        """Whom to decide on next; `NOBODY` where all are fast, None where none can be.

        A heavy neighbour of one who needs most.
        """
        inside, outside = branch
        slots = self.room - len(inside)
        asked, newcomers, next_ = 0, Counter[int](), (0, 0.0, NOBODY)
        for port in self._ports_in(branch):
            missing = port.alone - limit
            missing -= sum(gain for one, gain in port.gains.items() if one in inside)
            if missing <= 0:
                continue
            known = inside | outside
            others = [(g, one) for one, g in port.gains.items() if one not in known]
            needed = _fewest(sorted(others, reverse=True), missing)
            if needed > slots:
                return None
            asked += needed
            newcomers.update(one for _, one in others)
            next_ = max(next_, (needed, *max(others)))
        served = sum(times for _, times in newcomers.most_common(slots))
        return next_[2] if served >= asked else None

    def _ports_in(self, branch: _Branch) -> Iterator[_Port]:
        """Ports of those inside."""
        return (port for rank in branch[0] for port in self._ports_of(rank))

    def _ports_of(self, rank: int) -> tuple[_Port, ...]:
        """What a rank sends and receives, if anything."""
        known = self._ports.get(rank)
        if known is None:
            known = tuple(
                _Port(
                    float(alone[rank]),
                    dict(
                        zip(
                            others[start[rank] : start[rank + 1]].tolist(),
                            gains[start[rank] : start[rank + 1]].tolist(),
                            strict=True,
                        )
                    ),
                )
                for start, others, gains, alone in (self.sent, self.received)
            )
            self._ports[rank] = known
        return known


def _fewest(gains: list[tuple[float, int]], missing: float) -> int:
    """Fewest of the gains, largest first, that are enough; very many if none are."""
    for count, (gain, _) in enumerate(gains, 1):
        missing -= gain
        if missing <= 0:
            return count
    return NEVER


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
