"""Ranks of both sides of components that scale-up domains hold: a count.

A domain that holds any of those with needs holds as many partners too, and all domains
together hold both sides of all components. Domains are shared: what one component takes
is not there for others. A program counts ranks of each side in each domain. Every
placement solves it, so if it has no solution there is none.

A node of a launch by nodes holds one run of consecutive ranks, and so no more of some
components than any run of as many ranks has. What its nodes hold at the most is room of
the domain: for each component, and for those together that begin alike in a node.

By hand: three components of 4 senders and 34 receivers, and domains of 52, 36, 16, 16
and 12 ranks. Each sender needs 23 receivers near. Those of a component all lie in one
domain, as 34 receivers are not twice 23, and 27 ranks of three components do not fit
the two that have room for any. Ranks 0 to 7 each need one of 8 to 15, in turn, on two
racks of five nodes of two: a node holds one of 0 and 8, so five of each pair's two
sides at the most are in a rack.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.count.engine import Answer, Limits, solve
from placer.solve.count.model import Program, Term
from placer.solve.problem.needs import Kind, Need, needs_of
from placer.solve.run.budget import ENDLESS
from placer.solve.tree.capacity import rooms_of_hosts

if TYPE_CHECKING:
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

# Needs by number, and the most of their ranks that each domain holds.
Limit = tuple[list[int], list[int]]


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
        answer = self._answer(needs_of(kinds), budget)
        return answer is None or answer.counts is not None or not answer.is_proved

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
        answer = self._answer(needs, budget)
        if answer is None or answer.counts is None:
            return None
        sides = [side for need in needs for side in need[:2]]
        counts = np.array(answer.counts[: len(sides) * len(self.room)])
        held = counts.reshape(len(sides), len(self.room))
        domains = np.arange(len(self.room))
        return [
            (side, np.repeat(domains, of)) for side, of in zip(sides, held, strict=True)
        ]

    def _answer(self, needs: Sequence[Need], budget: Budget) -> Answer | None:
        """That of the program; None where it is none or too large."""
        sides = [np.concatenate(need[:2]) for need in needs]
        ranks = np.concatenate([np.empty(0, dtype=np.int64), *sides])
        # A rank of two components would be counted twice.
        if not needs or len(np.unique(ranks)) < len(ranks):
            return None
        if 4 * len(needs) * len(self.room) > self.params.side_columns:
            return None
        limits = Limits(self.params.side_count_work, budget.seconds_left)
        return solve(_program(needs, self.room, list(self._limits(sides))), limits)

    def _limits(self, sides: Sequence[IntArray]) -> Iterator[Limit]:
        """How many ranks of components all runs on a domain's hosts have at most."""
        if not self.hosts:
            return
        longest = max(map(max, self.hosts))
        ranks = int(max(map(np.max, sides))) + 1
        alike: defaultdict[int, list[int]] = defaultdict(list)
        for number, own in enumerate(sides):
            alike[int(own.min()) % longest].append(number)
        for together in [*([n] for n in range(len(sides))), *alike.values()]:
            own = np.concatenate([sides[number] for number in together])
            before = np.cumsum(np.bincount(own + 1, minlength=ranks + 1))
            lengths = range(min(longest, ranks) + 1)
            most = [int((before[n:] - before[: ranks + 1 - n]).max()) for n in lengths]
            hold = [sum(most[min(n, ranks)] for n in hosts) for hosts in self.hosts]
            yield together, hold


def _program(
    needs: Sequence[Need], room: Sequence[int], limits: Sequence[Limit]
) -> Program:
    """First the ranks of each side in each domain."""
    program = Program()
    held = [
        [program.column(min(len(side), most)) for most in room]
        for need in needs
        for side in need[:2]
    ]
    for need, ones, others in zip(needs, held[::2], held[1::2], strict=True):
        ranks, partners, least, back = need.sizes
        ways = [(ones, others, ranks, least), (others, ones, partners, back)]
        for sides, meets, size, asks in ways:
            program.row(map(Term, sides), size, size)
            for one, other in zip(sides, meets, strict=True):
                some = program.column(1)
                program.row([Term(one), Term(some, -size)], most=0)
                program.row([Term(other), Term(some, -asks)], least=0)
    every = [*range(len(needs))], list(room)
    for together, most_of in (every, *limits):
        for domain, most in enumerate(most_of):
            columns = [held[2 * n + side][domain] for n in together for side in (0, 1)]
            program.row(map(Term, columns), most=most)
    return program
