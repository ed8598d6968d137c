"""Ranks near their partners: the least time of transfers that domains have room for.

A time of the transfers asks for partners near (`partners`). A domain that holds any of
those with needs holds as many partners too, and leaves enough for the others: where
each rank of ``X`` needs ``v`` of ``Y`` near and each of ``Y`` needs ``u`` of ``X``, a
domain with ``x`` and ``y`` of them has all, or none, or

    u <= x <= |X| - u,     v <= y <= |Y| - v

Where only ``X`` has needs, a domain without all of ``X`` leaves ``v`` of ``Y`` to the
rest of it. All domains together hold all ranks, and domains are shared: what one
component takes is not there for others. A program counts in each domain the components
of a class that are there as a whole, those in part, and the ranks of both sides. Every
placement solves it, so if it has no solution there is none. Needs change at some times
only, so bisection over these finds the first one that is possible. Partners that must
be near also crowd others out (`Near`): a step is priced for every time from then on.

By hand: three components of 4 senders and 34 receivers, and domains of 52, 36, 16, 16
and 12 ranks. Each sender needs 23 receivers near. Those of a component all lie in one
domain, as 34 receivers are not twice 23, and 27 ranks of three components do not fit
the two that have room for any.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, FloatArray
from placer.solve.bounds import Proof
from placer.solve.bounds.network.best import best_of_problem
from placer.solve.bounds.network.limit import Near
from placer.solve.bounds.partners import ROUNDING, Partners
from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term
from placer.solve.run.budget import ENDLESS

if TYPE_CHECKING:
    from placer.job.traffic import RankTraffic
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget

# Columns of one program, at most, and its work.
MOST_COLUMNS = 2_000
WORK = 0.5
# Times that are told apart, each priced with the partners that it asks for.
LEVELS = 8


def least_beside_partners(
    problem: Problem, block: int, incumbent: float, budget: Budget = ENDLESS
) -> Proof | None:
    """Least step time of all times that transfers may take; None without traffic.

    When the budget ends it is that of times which nothing rules out.
    """
    traffic = problem.job.traffic
    if traffic is None:
        return None
    network, found = best_of_problem(problem, block), [0.0]
    for way in one_way(traffic):
        transfers = Transfers.of(network, way)
        if transfers is not None:
            steps = (
                problem.model.step_on(replace(network, near=near)).step_time_s
                for near in transfers.levels(incumbent, budget)
            )
            found.append(min(incumbent, *steps))
    argument = (
        "ranks that their NIC would keep too long have partners near, which take room "
        "in scale-up domains"
    )
    return Proof(max(found), argument)


def one_way(traffic: RankTraffic) -> list[RankTraffic]:
    """The traffic, where a rank both sends and receives also each way by itself.

    All of it says nothing of a rank that has partners and is one; a part of the flows
    never takes longer than all.
    """
    if not np.isin(traffic.senders, traffic.receivers).any():
        return [traffic]
    up = traffic.senders < traffic.receivers
    return [traffic, *(_part(traffic, way) for way in (up, ~up) if way.any())]


def _part(traffic: RankTraffic, kept: BoolArray) -> RankTraffic:
    return replace(
        traffic,
        senders=traffic.senders[kept],
        receivers=traffic.receivers[kept],
        size_bytes=traffic.size_bytes[kept],
    )


class Need(NamedTuple):
    """Sets of a component that need partners; where these need them too, both.

    Attributes
    ----------
    ranks, partners : int
        Who have the needs, and who meet them.
    needs, back : int
        Partners that a domain with one of the ranks has, and ranks that one with a
        partner has: 0 where partners have no needs.
    """

    ranks: int
    partners: int
    needs: int
    back: int

    @property
    def can_be_parted(self) -> bool:
        """Whether two domains may have some of the ranks, and what these need."""
        return 2 * self.needs <= self.partners and 2 * (self.back or 1) <= self.ranks


@dataclass(frozen=True, eq=False)
class Transfers:
    """Both directions of all flows, and the room of scale-up domains.

    Attributes
    ----------
    room : list of int, ranks
        Of each domain, the largest first.
    """

    directions: list[Partners]
    room: list[int]

    @classmethod
    def of(cls, network: IdealNetwork, traffic: RankTraffic) -> Transfers | None:
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
        room = network.capacities[network.fabric.scale_up_tier]
        return cls(directions, sorted(room[room > 0].tolist(), reverse=True))

    @cached_property
    def times(self) -> FloatArray:
        """Times, s, at which needs change, from the shortest one on."""
        return np.unique(np.concatenate([one.levels for one in self.directions]))

    def levels(self, most_s: float, budget: Budget = ENDLESS) -> list[Near]:
        """What transfers of any time must keep to, the shortest first.

        Parameters
        ----------
        most_s : float, s
            Of a placement: longer ones do not matter.
        budget : Budget
            Times that it leaves no time to rule out are levels too.
        """
        times, low = self.times, self.least(most_s, budget)
        last = max(int(np.searchsorted(times, most_s)), low)
        cuts = np.unique(np.linspace(low, last, LEVELS + 1).astype(np.int64)).tolist()
        return [
            self.kept_near(float(times[start]), float(times[end - 1]))
            for start, end in pairwise(cuts if last > low else [low, low + 1])
        ]

    def kept_near(self, seconds: float, until: float) -> Near:
        """What holds for at least ``seconds`` that ``until`` still allows."""
        crowds = (
            (one.needs(until)[one.label], one.component[one.label])
            for one in self.directions
        )
        return Near(seconds, tuple(crowds))

    def least(self, placed_s: float = inf, budget: Budget = ENDLESS) -> int:
        """Which of these times is the first that placements may keep to.

        A placement that takes ``placed_s`` keeps to the last of the times before. When
        a quarter of the budget is over it is one that is not after it, later than all
        that were ruled out: the search for placements needs time too.
        """
        budget = budget.share(4)
        before = int(np.searchsorted(self.times, placed_s * (1 + ROUNDING), "right"))
        found = range(max(before - 1, 0))
        return bisect_left(found, True, key=partial(self.may_keep_to, budget=budget))

    def may_keep_to(self, index: int, budget: Budget = ENDLESS) -> bool:
        """Whether placements may keep to one of the times; False is certain.

        They may when the budget ends before an answer.
        """
        if budget.is_over():
            return True
        needs = self.needs(float(self.times[index]))
        return needs is not None and may_hold(needs, self.room, budget)

    def needs(self, seconds: float) -> list[Need] | None:
        """Who need partners near, to take no longer; None where NVLink is too slow.

        A component that lies in one domain sends everything over it.
        """
        found: dict[tuple[bytes, bytes], tuple[Need, BoolArray]] = {}
        allowed = seconds * (1 + ROUNDING)
        near_s = np.max([one.near_s for one in self.directions], axis=0)
        for one in self.directions:
            needs, is_partner = one.needs(seconds), np.isin(one.sets, one.partners)
            for own in np.unique(one.component[needs > 0]):
                here = one.component == own
                needy, partners = here & (needs > 0), here & is_partner
                back = found.pop((partners.tobytes(), needy.tobytes()), None)
                need = Need(
                    int(one.members[needy].sum()),
                    int(one.members[partners].sum()),
                    int(needs[needy].min()),
                    back[0].needs if back else 0,
                )
                both = needy | partners
                together = near_s[both[one.label]].max()
                if need.back and not need.can_be_parted and together > allowed:
                    return None
                found[needy.tobytes(), partners.tobytes()] = need, both
        # A rank of two of them would be counted twice.
        counted, apart = np.zeros_like(self.directions[0].sets), []
        for need, both in found.values():
            if not counted[both].any():
                counted[both] = 1
                apart.append(need)
        return apart


def may_hold(
    needs: Sequence[Need], room: Sequence[int], budget: Budget = ENDLESS
) -> bool:
    """Whether domains of such room may hold all ranks; False is certain.

    They may when the program is too large, or its work or the budget ends first.
    """
    alike = Counter(needs)
    if not alike or 4 * len(alike) * len(room) > MOST_COLUMNS:
        return True
    program, held = Program(), list[list[int]]()
    for need, number in alike.items():
        held += _sides(program, need, number, room)
    for domain, most in enumerate(room):
        program.row([Term(side[domain]) for side in held], most=most)
    answer = solve(program, Limits(WORK, budget.seconds_left))
    return answer.counts is not None or not answer.is_proved


def _sides(
    program: Program, need: Need, number: int, room: Sequence[int]
) -> list[list[int]]:
    """Columns of the ranks of either side in each domain, of so many alike needs.

    Each is met by a domain wholly, in part or not at all.
    """
    ranks, partners, needs, back = need
    least, parts = back or 1, number * need.can_be_parted
    found: list[list[int]] = [
        [program.column(min(number * size, most)) for most in room]
        for size in (ranks, partners)
    ]
    wholes = []
    for one, other in zip(*found, strict=True):
        whole, part = program.column(number), program.column(parts)
        wholes.append(Term(whole))
        program.row([Term(whole), Term(part)], most=number)
        lie = partial(_lie, program, whole, part)
        lie(one, ranks, least, least=0)
        lie(one, ranks, ranks - least, most=0)
        if back:
            lie(other, partners, needs, least=0)
            lie(other, partners, partners - needs, most=0)
        else:
            lie(other, needs, needs, least=0)
            lie(other, needs, 0, most=number * (partners - needs))
    program.row(wholes, most=number)
    for side, size in zip(found, (ranks, partners), strict=True):
        program.row(map(Term, side), number * size, number * size)
    return found


def _lie(
    program: Program,
    whole: int,
    part: int,
    side: int,
    of_whole: int,
    of_part: int,
    **limit: float,
) -> None:
    """What a domain has of a side, beyond so many of each component there."""
    terms = [Term(side), Term(whole, -of_whole), Term(part, -of_part)]
    program.row(terms, **limit)
