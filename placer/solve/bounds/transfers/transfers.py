"""Transfers as a whole: the times that they may take, and what each then asks for.

A time is possible where domains may hold all ranks with the partners that they need for
it near (`partners`, `side_counts`). The needs change at some times
only, so bisection over these finds the first one. A part of the messages never takes
longer than all, so each way is looked at by itself as well, and the heaviest are.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.solve.bounds.network.best_network import best_of_problem
from placer.solve.bounds.network.near import Crowd, Near
from placer.solve.bounds.transfers.partners import Partners
from placer.solve.bounds.transfers.side_counts import SideCounts
from placer.solve.problem.needs import ROUNDING, Kind, needs_of
from placer.solve.run.budget import ENDLESS

if TYPE_CHECKING:
    from placer.job.model import RankTraffic
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.compiled import Problem
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget


@dataclass(frozen=True, eq=False)
class Transfers:
    """Both directions of all flows, and the domains that ranks are placed on.

    Attributes
    ----------
    sides : SideCounts
        What domains hold of components.
    """

    directions: list[Partners]
    sides: SideCounts
    # Whether placements may keep to each of the times that were asked for.
    _known: dict[int, bool] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls, network: IdealNetwork, traffic: RankTraffic, params: Params
    ) -> Transfers | None:
        """The transfers; None where nobody needs a partner near."""
        both = (
            (traffic.senders, traffic.receivers),
            (traffic.receivers, traffic.senders),
        )
        sent = traffic.size_bytes, traffic.pair_share
        found = (Partners.of(network, *ends, *sent) for ends in both)
        directions = [one for one in found if one is not None]
        if not directions:
            return None
        return cls(directions, SideCounts.of(network, params))

    @cached_property
    def times(self) -> FloatArray:
        """Times, s, at which needs change, from the shortest one on."""
        return np.unique(np.concatenate([one.levels for one in self.directions]))

    def least(
        self, placed_s: float = inf, first: int = 0, budget: Budget = ENDLESS
    ) -> int:
        """Which of these times is the first that placements may keep to.

        A placement that takes ``placed_s`` keeps to the last of the times before; none
        keeps to one before the ``first``. When a quarter of the budget is over it is
        one that is not after it, later than all that were ruled out: the search for
        placements, which asks again, needs time too.
        """
        budget = budget.share(4)
        before = int(np.searchsorted(self.times, placed_s * (1 + ROUNDING), "right"))
        found = range(first, max(before - 1, first))
        return first + bisect_left(
            found, True, key=partial(self.may_keep_to, budget=budget)
        )

    def may_keep_to(self, index: int, budget: Budget = ENDLESS) -> bool:
        """Whether placements may keep to one of the times; False is certain.

        They may when the budget ends before an answer, which then stays open.
        """
        if index in self._known:
            return self._known[index]
        fit = budget.is_over() or self._fit(float(self.times[index]), budget)
        if not (fit and budget.is_over()):
            self._known[index] = fit
        return fit

    def kinds(self, seconds: float) -> list[Kind]:
        """Ranks of each component that need partners near, to take no longer."""
        found = []
        for one in self.directions:
            needs, component = one.needs(seconds), one.component
            is_partner = np.isin(np.arange(len(needs)), one.partners)
            for own in np.unique(component[needs > 0]):
                needy = (component == own) & (needs > 0)
                partners = (component == own) & is_partner
                least = int(needs[needy].min())
                found.append(Kind(needy[one.label], partners[one.label], least))
        return found

    def _fit(self, seconds: float, budget: Budget) -> bool:
        """Whether domains may hold all ranks so that transfers take no longer."""
        kinds = self.kinds(seconds)
        near_s = np.max([one.near_s for one in self.directions], axis=0)
        allowed = seconds * (1 + ROUNDING)
        for need in needs_of(kinds):
            # A component that lies in one domain sends everything over NVLink.
            own = np.concatenate(need[:2])
            if need.back and not need.can_be_parted and near_s[own].max() > allowed:
                return False
        return self.sides.may_hold(kinds, budget)


def transfers_of(problem: Problem) -> Transfers | None:
    """Who needs partners near; None where nobody does."""
    found = transfers_each_way(problem, problem.forced_block)
    return found[0] if found else None


def transfers_each_way(problem: Problem, block: int) -> list[Transfers | None]:
    """All transfers of a problem, then parts of them; empty without traffic.

    Bound and constructions ask for them, so they are worked out once for every number
    of ranks that nodes hold together.
    """
    known = problem.once(_of_blocks)
    if block not in known:
        network, traffic = best_of_problem(problem, block), problem.job.traffic
        ways = [] if traffic is None else [*one_way(traffic), heaviest(traffic)]
        known[block] = [
            Transfers.of(network, way, problem.params)
            for way in ways
            if way is not None
        ]
    return known[block]


def _of_blocks(_problem: Problem) -> dict[int, list[Transfers | None]]:
    """What is known by the number of ranks that nodes hold together: nothing yet."""
    return {}


def one_way(traffic: RankTraffic) -> list[RankTraffic]:
    """The traffic, where a rank both sends and receives also each way by itself.

    All of it says nothing of a rank that has partners and is one; a part of the flows
    never takes longer than all.
    """
    if not np.isin(traffic.senders, traffic.receivers).any():
        return [traffic]
    up = traffic.senders < traffic.receivers
    return [traffic, *(_part(traffic, way) for way in (up, ~up) if way.any())]


def heaviest(traffic: RankTraffic) -> RankTraffic | None:
    """The messages above the widest gap between sizes; None where all are alike."""
    sizes = np.unique(traffic.size_bytes[traffic.size_bytes > 0])
    wider = sizes[1:] / sizes[:-1]
    if not len(wider) or wider.max() < 1 + ROUNDING:
        return None
    least = sizes[1:][int(wider.argmax())]
    return _part(traffic, traffic.size_bytes >= least)


def _part(traffic: RankTraffic, kept: BoolArray) -> RankTraffic:
    return replace(
        traffic,
        senders=traffic.senders[kept],
        receivers=traffic.receivers[kept],
        size_bytes=traffic.size_bytes[kept],
    )


def near_levels(
    transfers: Transfers,
    most_s: float,
    levels: int,
    first: int = 0,
    budget: Budget = ENDLESS,
) -> list[Near]:
    """What transfers of any time must keep to, the shortest first.

    Parameters
    ----------
    most_s : float, s
        Of a placement: longer ones do not matter.
    levels : int
        To tell apart: what is needed at the end of each holds in all of it.
    first : int
        No placement keeps to a time before this one.
    budget : Budget
        Times that it leaves no time to rule out are levels too.
    """
    times, low = transfers.times, transfers.least(most_s, first, budget)
    last = max(int(np.searchsorted(times, most_s)), low)
    cuts = np.linspace(low, last, levels + 1)
    cuts = np.unique(cuts.astype(np.int64)).tolist()
    return [
        kept_near(transfers.directions, float(times[start]), float(times[end - 1]))
        for start, end in pairwise(cuts if last > low else [low, low + 1])
    ]


def kept_near(directions: list[Partners], seconds: float, until: float) -> Near:
    """What holds for transfers of at least ``seconds`` that ``until`` still allows."""
    crowds = (
        Crowd(
            one.needs(until)[one.label],
            one.component[one.label],
            _asked(one, directions, until)[one.label],
        )
        for one in directions
    )
    return Near(seconds, tuple(crowds))


def _asked(one: Partners, directions: list[Partners], seconds: float) -> IntArray:
    """Ranks that each partner in the component of a set needs near; shape (S,).

    Those are neither partners nor of another component: a partner that others need as
    well has no needs of its own, and components are the same both ways.
    """
    others = [other for other in directions if other is not one]
    alike = [o for o in others if np.array_equal(o.component, one.component)]
    if not alike:
        return np.zeros_like(one.component)
    needs = alike[0].needs(seconds)
    least = np.full(int(one.component.max()) + 1, needs.max())
    np.minimum.at(least, one.component[one.partners], needs[one.partners])
    return np.asarray(least[one.component])
