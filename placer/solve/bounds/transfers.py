"""Ranks near their partners: the least time of transfers that domains have room for.

A time needs partners near (`partners`). A *component* is who has to do with each
other. Where each rank of ``X`` needs ``v`` of ``Y`` near and each of ``Y`` needs ``u``
of ``X``, a domain with ``x`` and ``y`` of them has all, or none, or

    u <= x <= |X| - u,     v <= y <= |Y| - v

Where only ``X`` has needs, a domain without all of ``X`` leaves ``v`` of ``Y`` to the
rest of it. All domains together hold all ranks, and domains are shared. A program
counts in each domain the components of a class that are there as a whole, those in
part, and the ranks of both sides. Every placement solves it, so if it has no solution
there is none. Needs change at some times only; bisection finds the first that may do.

By hand: three components of 4 senders and 34 receivers, and domains of 52, 36, 16, 16
and 12 ranks. Each sender needs 23 receivers near. Those of a component all lie in one
domain, as 34 receivers are not twice 23, and 27 ranks of three components do not fit
the two that have room for any.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, IntArray
from placer.base.rounding import EXACT
from placer.job.traffic import RankTraffic
from placer.solve.bounds import Proof
from placer.solve.bounds.case import best_of_problem
from placer.solve.bounds.ideal import IdealNetwork
from placer.solve.bounds.partners import Partners, most_together
from placer.solve.count import EngineLimits, Program, Term, solve
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import ENDLESS, Budget

ARGUMENT = (
    "ranks that their NIC would keep too long have partners near, which take room in "
    "scale-up domains"
)
SPANS = 8  # of time, each priced with the partners that it needs


def least_near_partners(
    problem: Problem, block: int, incumbent: float, budget: Budget = ENDLESS
) -> Proof | None:
    """Least step time that room for partners allows; None where nobody needs any.

    When a quarter of the budget is over it is that of times which nothing rules out.
    """
    traffic = problem.job.traffic
    if traffic is None:
        return None
    network = best_of_problem(problem, block)
    transfers = Transfers.of(network, traffic)
    if transfers is None:
        return None
    found = [incumbent]
    columns, share = problem.params.partner_columns, budget.share(4)
    for start, end in transfers.spans(columns, incumbent, share):
        limited = replace(network, transfers_s=start, crowd=transfers.crowd(end))
        found.append(problem.model.step_on(limited).step_time_s)
    return Proof(min(found), ARGUMENT)


class Need(NamedTuple):
    """Sets of a component that need partners; where these need them too, both."""

    # ranks and partners: who have the needs, and who meet them.
    ranks: int
    partners: int
    # needs and back: partners that a domain with one of the ranks has, and ranks that
    # one with a partner has: 0 where partners have no needs.
    needs: int
    back: int

    @property
    def can_be_parted(self) -> bool:
        """Whether two domains may have some of the ranks, and what these need."""
        return 2 * self.needs <= self.partners and 2 * (self.back or 1) <= self.ranks


@dataclass(frozen=True, eq=False)
class Transfers:
    """Both directions of all flows, and the room of scale-up domains."""

    directions: list[Partners]
    room: list[int]  # of each domain, the largest first

    @classmethod
    def of(cls, network: IdealNetwork, traffic: RankTraffic) -> Transfers | None:
        """The transfers; None where nobody needs a partner near."""
        ends = traffic.senders, traffic.receivers
        sent = traffic.size_bytes, traffic.pair_share
        both = [Partners.of(network, *pair, *sent) for pair in (ends, ends[::-1])]
        directions = [one for one in both if one is not None]
        if not directions:
            return None
        room = network.capacities[network.fabric.scale_up_tier]
        return cls(directions, sorted(room[room > 0].tolist(), reverse=True))

    def crowd(self, seconds: float) -> Callable[[IntArray, IntArray], IntArray]:
        """What `most_together` says where transfers take no longer."""
        crowds = [
            (one.needs(seconds)[one.label], one.component[one.label])
            for one in self.directions
        ]
        return partial(most_together, crowds)

    def spans(
        self, columns: int, placed_s: float, budget: Budget
    ) -> list[tuple[float, float]]:
        """Spans of time, s, one of which the transfers of a placement take.

        ``columns``: of a program, at most.
        A placement that takes ``placed_s`` keeps to the last of the times before, so
        later ones play no part. Needs are those of the end of a span.
        """
        levels = np.unique([0.0, *chain(*(one.levels for one in self.directions))])
        # Times that differ less are one, from the first of them to the end of all.
        grain = EXACT * float(levels.max()) or 1.0
        times, first = np.unique(grain * np.ceil(levels / grain), return_index=True)
        before = int(np.searchsorted(times, placed_s * (1 + EXACT) + grain, "right"))

        def may_be(index: int) -> bool:
            """Whether placements may keep to a time; False is certain."""
            needs = None if budget.is_over() else self.needs(float(times[index]))
            return budget.is_over() or (
                needs is not None and may_hold(needs, self.room, columns, budget)
            )

        least = bisect_left(range(before - 1), True, key=may_be)
        cuts = np.unique(np.linspace(least, before, SPANS + 1).astype(np.int64))
        return [
            (float(levels[first[start]]), float(times[end - 1]))
            for start, end in pairwise(cuts.tolist())
        ]

    def needs(self, seconds: float) -> list[Need] | None:
        """Who need partners near, to take no longer; None where NVLink is too slow.

        A component that lies in one domain sends everything over it.
        """
        found: dict[tuple[bytes, bytes], tuple[Need, BoolArray]] = {}
        together_s = np.max([one.together_s for one in self.directions], axis=0)
        for one in self.directions:
            needs = one.needs(seconds)
            for own in np.unique(one.component[needs > 0]):
                here = one.component == own
                needy, partners = here & (needs > 0), here & one.is_partner
                back = found.pop((partners.tobytes(), needy.tobytes()), None)
                need = Need(
                    int(one.members[needy].sum()),
                    int(one.members[partners].sum()),
                    int(needs[needy].min()),
                    back[0].needs if back else 0,
                )
                both = needy | partners
                longest = together_s[both[one.label]].max()
                is_late = longest > seconds * (1 + EXACT)
                if need.back and is_late and not need.can_be_parted:
                    return None
                found[needy.tobytes(), partners.tobytes()] = need, both
        # A rank of two of them would be counted twice.
        counted, apart = np.zeros(len(self.directions[0].members), bool), []
        for need, both in found.values():
            if not counted[both].any():
                counted |= both
                apart.append(need)
        return apart


def may_hold(
    needs: Sequence[Need], room: Sequence[int], columns: int, budget: Budget
) -> bool:
    """Whether domains of such room may hold all ranks; False is certain.

    They may when the program has more columns, or the engine or the budget ends first.
    """
    alike = Counter(needs)
    if not alike or 4 * len(alike) * len(room) > columns:
        return True
    program, sides = Program(), list[list[int]]()
    for need, number in alike.items():
        sides += _sides(program, need, number, room)
    for domain, most in enumerate(room):
        program.row([Term(side[domain]) for side in sides], most=most)
    answer = solve(program, EngineLimits(1, budget.seconds_left))
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
