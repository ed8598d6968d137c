"""Ranks of both sides of components that scale-up domains hold: a count.

A domain that holds any of those with needs holds as many partners too, and all domains
together hold both sides of all components. Domains are shared: what one component takes
is not there for others. A program counts ranks of each side in each domain. Every
placement solves it, so if it has no solution there is none.

By hand: three components of 4 senders and 34 receivers, and domains of 52, 36, 16, 16
and 12 ranks. Each sender needs 23 receivers near. Those of a component all lie in one
domain, as 34 receivers are not twice 23, and 27 ranks of three components do not fit
the two that have room for any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.bounds.transfers.rack_ranks import needs_of
from placer.solve.count.engine import Answer, Limits, solve
from placer.solve.count.model import Program, Term
from placer.solve.run.budget import ENDLESS

if TYPE_CHECKING:
    from placer.solve.bounds.transfers.partners import Kind
    from placer.solve.bounds.transfers.rack_ranks import Need
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget


@dataclass(frozen=True, eq=False)
class SideCounts:
    """What domains hold of both sides.

    Attributes
    ----------
    room : ndarray, ranks
        Of each domain.
    params : Params
    """

    room: IntArray
    params: Params

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
        domains = np.flatnonzero(self.room > 0)
        sides = [side for need in needs for side in need[:2]]
        counts = np.array(answer.counts[: len(sides) * len(domains)])
        held = counts.reshape(len(sides), len(domains))
        return [
            (side, np.repeat(domains, of)) for side, of in zip(sides, held, strict=True)
        ]

    def _answer(self, needs: Sequence[Need], budget: Budget) -> Answer | None:
        """That of the program; None where it is none or too large."""
        room = self.room[self.room > 0].tolist()
        sides = [np.concatenate(need[:2]) for need in needs]
        ranks = np.concatenate([np.empty(0, dtype=np.int64), *sides])
        # A rank of two components would be counted twice.
        if not needs or len(np.unique(ranks)) < len(ranks):
            return None
        if 4 * len(needs) * len(room) > self.params.side_columns:
            return None
        limits = Limits(self.params.side_count_work, budget.seconds_left)
        return solve(_program(needs, room), limits)


def _program(needs: Sequence[Need], room: Sequence[int]) -> Program:
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
    for most, columns in zip(room, zip(*held, strict=True), strict=True):
        program.row(map(Term, columns), most=most)
    return program
