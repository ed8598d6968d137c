"""Ranks of both sides of components that scale-up domains hold: a count.

A domain that holds any of those with needs holds as many partners too, and leaves
enough for the others: where each rank of ``X`` needs ``v`` of ``Y`` near and each of
``Y`` needs ``u`` of ``X``, a domain with ``x`` and ``y`` of them has all, or none, or

    u <= x <= |X| - u,     v <= y <= |Y| - v

Where only ``X`` has needs, a domain without all of ``X`` leaves ``v`` of ``Y`` to the
rest of it. All domains together hold all ranks, and domains are shared: what one
component takes is not there for others. A program counts in each domain the components
of a class that are there as a whole, those in part, and the ranks of both sides. Every
placement solves it, so if it has no solution there is none. Alike components make a
class; where there are few each is also one by itself.

A node of a launch by nodes holds one run of consecutive ranks, and so no more of some
ranks than any run as long has. Where all of one side are before all of the other, only
one node holds ranks of both, so sides are weighed: what a run has of either at the most
is a node.

By hand: three components of 4 senders and 34 receivers, and domains of 52, 36, 16, 16
and 12 ranks. Each sender needs 23 receivers near. Those of a component all lie in one
domain, as 34 receivers are not twice 23, and 27 ranks of three components do not fit
the two that have room for any. Ranks 0 to 5 and 6 to 11 are pairs that need each other,
on two racks of three nodes of two. A run of two has one even rank, of either side. So a
rack has three of them, one of the racks four where a node holds ranks 5 and 6: one pair
and two, and there are three. But the odd ranks' pairs then are one and one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import gcd
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.count.engine import Answer, Limits, solve
from placer.solve.count.model import Program, Term
from placer.solve.problem.needs import Kind, Need, needs_of
from placer.solve.run.budget import ENDLESS
from placer.solve.tree.capacity import rooms_of_hosts

if TYPE_CHECKING:
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

Class = list[Need]  # of the same sizes


class _Limit(NamedTuple):
    """What nodes say of some classes.

    Attributes
    ----------
    classes : list of int
    weights : list of int
        Of a rank of either side.
    most : list of int
        That each domain may hold at the most.
    more : int
        In the domain of the one node that holds ranks of both sides.
    """

    classes: list[int]
    weights: list[int]
    most: list[int]
    more: int


@dataclass(frozen=True, eq=False)
class SideCounts:
    """What domains hold of both sides.

    Attributes
    ----------
    room : list of int, ranks
        Of each domain, the largest first.
    hosts : list of tuple of int, ranks
        Of each of them, its hosts' in a launch by nodes; else empty.
    params : Params
    """

    room: list[int]
    hosts: list[tuple[int, ...]]
    params: Params

    @classmethod
    def of(cls, network: IdealNetwork, params: Params) -> SideCounts:
        """The scale-up domains of a network."""
        tier, topology = network.fabric.scale_up_tier, network.fabric.topology
        room = network.capacities[tier]
        largest = np.argsort(-room, kind="stable")[: np.count_nonzero(room)].tolist()
        hosts = []
        if network.in_runs and tier > topology.node_tier:
            hosts = rooms_of_hosts(topology, network.capacity_of_node, tier)
            hosts = [hosts[domain] for domain in largest]
        return cls(room[largest].tolist(), hosts, params)

    def may_hold(self, kinds: Sequence[Kind], budget: Budget = ENDLESS) -> bool:
        """Whether the domains may hold all ranks; False is certain.

        They may when the program is too large, or its work or the budget ends first.
        """
        needs = needs_of(kinds)
        alike: defaultdict[tuple[int, ...], Class] = defaultdict(list)
        for need in needs:
            alike[*need.sizes, self._place(need)].append(need)
        for classes in ([*alike.values()], [[need] for need in needs]):
            answer = self._answer(classes, budget)
            if answer is not None and answer.counts is None and answer.is_proved:
                return False
        return True

    def held(
        self, kinds: Sequence[Kind], budget: Budget
    ) -> list[tuple[IntArray, IntArray]] | None:
        """What the domains may hold of both sides; None if nothing is found.

        Returns
        -------
        list of (ndarray, ndarray)
            Ranks, and the domain of each.
        """
        needs = needs_of(kinds)
        answer = self._answer([[need] for need in needs], budget)
        if answer is None or answer.counts is None:
            return None
        sides = [side for need in needs for side in need[:2]]
        counts = np.array(answer.counts[: len(sides) * len(self.room)])
        held = counts.reshape(len(sides), len(self.room))
        domains = np.arange(len(self.room))
        return [
            (side, np.repeat(domains, of)) for side, of in zip(sides, held, strict=True)
        ]

    def _place(self, need: Need) -> int:
        """Where in a node the first rank would be, were all nodes full."""
        return int(np.concatenate(need[:2]).min()) % self._longest

    @property
    def _longest(self) -> int:
        """Ranks of the longest run on a host."""
        return max((hosts[0] for hosts in self.hosts), default=1)

    def _answer(self, classes: Sequence[Class], budget: Budget) -> Answer | None:
        """That of the program; None where it is none or too large."""
        sides = [side for of in classes for need in of for side in need[:2]]
        ranks = np.concatenate([np.empty(0, dtype=np.int64), *sides])
        # A rank of two components would be counted twice.
        if not classes or len(np.unique(ranks)) < len(ranks):
            return None
        if 4 * len(classes) * len(self.room) > self.params.side_columns:
            return None
        limits = Limits(self.params.side_count_work, budget.seconds_left)
        return solve(self._program(classes), limits)

    def _program(self, classes: Sequence[Class]) -> Program:
        """First the ranks of each side in each domain."""
        program, room = Program(), self.room
        held = [
            [program.column(min(len(of) * size, most)) for most in room]
            for of in classes
            for size in of[0].sizes[:2]
        ]
        for of, ones, others in zip(classes, held[::2], held[1::2], strict=True):
            _state(program, of, ones, others)
        for domain, most in enumerate(room):
            program.row([Term(side[domain]) for side in held], most=most)
        between = [program.column(1) for _ in room]
        program.row(map(Term, between), most=1)
        for limit in self._limits(classes):
            for domain, most in enumerate(limit.most):
                terms = [
                    Term(held[2 * number + side][domain], weight)
                    for number in limit.classes
                    for side, weight in enumerate(limit.weights)
                ]
                terms.append(Term(between[domain], -limit.more))
                program.row(terms, most=most)
        return program

    def _limits(self, classes: Sequence[Class]) -> Iterator[_Limit]:
        """What runs on a domain's hosts have of classes, alone and of those alike."""
        if not self.hosts:
            return
        alike: defaultdict[int, list[int]] = defaultdict(list)
        for number, of in enumerate(classes):
            alike[self._place(of[0])].append(number)
        # Whether all who have needs are before their partners, or after them.
        ones, others = _sides(classes)
        is_apart = bool(ones.max() < others.min() or others.max() < ones.min())
        for numbers in [*([n] for n in range(len(classes))), *alike.values()]:
            sides, longest = _sides([classes[n] for n in numbers]), self._longest
            weights = [1, 1]
            if is_apart:
                most = [int(_most([side], [1], longest)[-1]) for side in sides]
                weights = [of // gcd(*most) for of in most[::-1]]
            both = one = _most(sides, weights, longest)
            if is_apart:
                alone = zip(sides, weights, strict=True)
                one = np.maximum(*(_most([of], [w], longest) for of, w in alone))
            hold = [int(one[list(hosts)].sum()) for hosts in self.hosts]
            yield _Limit(numbers, weights, hold, int((both - one).max()))


def _sides(classes: Sequence[Class]) -> tuple[IntArray, IntArray]:
    """All who have needs, and all who meet them."""
    needs = [need for of in classes for need in of]
    ranks, partners, *_ = zip(*needs, strict=True)
    return np.concatenate(ranks), np.concatenate(partners)


def _most(sides: Sequence[IntArray], weights: Sequence[int], longest: int) -> IntArray:
    """The most weight of any 0, 1, ... ``longest`` consecutive ranks."""
    last = max(*(int(side.max()) + 1 for side in sides), longest)
    before = np.zeros(last + 1, dtype=np.int64)
    for side, weight in zip(sides, weights, strict=True):
        before[side + 1] = weight
    before = np.cumsum(before)
    return np.array(
        [(before[n:] - before[: last + 1 - n]).max() for n in range(longest + 1)]
    )


def _state(
    program: Program, alike: Class, ones: Sequence[int], others: Sequence[int]
) -> None:
    """So many alike needs, each met by a domain wholly, in part or not at all."""
    number, (ranks, partners, needs, back) = len(alike), alike[0].sizes
    least, most = back or 1, number * alike[0].can_be_parted
    wholes = []
    for one, other in zip(ones, others, strict=True):
        whole, part = program.column(number), program.column(most)
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
    program.row(map(Term, ones), number * ranks, number * ranks)
    program.row(map(Term, others), number * partners, number * partners)


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
