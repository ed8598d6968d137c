"""Closed sets that racks cannot hold, however they are cut: a proof by prices.

Sets of nodes that no component leaves (`closed_sets`) are whole or in pieces, and each
piece takes a share of the nodes of its domain (`set_cuts`). Give every piece a price by
its charge, 0 at the least and never falling. Then

    sum over the sets of the least price of a cut
        <=  price of all pieces  <=  sum over the domains of the most price they hold

or there is no placement. What a domain can hold is a knapsack of charges; the least cut
follows from the counts of components, one piece after the other. The prices are those
of a linear program (Gilmore and Gomory 1961): cuts of sets, and divisions of domains
into places for pieces, are its columns. They are rounded to whole numbers, so the sums
are exact whatever the program's rounding was.

By hand: sets of 4 nodes, racks of 6, and a half takes 3 nodes. Whole sets at price 2,
halves at 1: a rack holds a price of 2, so three racks hold no four sets. At a node for
each half they would. Sets without needs cost nothing. Shapes: Q charges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.bounds.transfers.closed_sets import ways_to_close
from placer.solve.bounds.transfers.rack_ranks import needs_of, rooms_of
from placer.solve.bounds.transfers.set_cuts import SetCuts, node_charge
from placer.solve.count.columns import ColumnProgram
from placer.solve.run.budget import ENDLESS

if TYPE_CHECKING:
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.bounds.transfers.closed_sets import ClosedSets
    from placer.solve.bounds.transfers.partners import Kind
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

# Whole numbers to a set's price, and sets that rounding may leave missing.
SCALE = 1_000_000
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class SetPrices:
    """The nodes that closed sets find.

    Attributes
    ----------
    domains : Counter of int
        How many domains have so many nodes.
    block : int
        Ranks of the largest node.
    params : Params
    """

    domains: Counter[int]
    block: int
    params: Params

    @classmethod
    def of(cls, network: IdealNetwork, params: Params) -> SetPrices | None:
        """The domains of a launch by nodes; None for any other."""
        rooms = list(filter(None, rooms_of(network)))
        if not rooms:
            return None
        return cls(Counter(map(len, rooms)), max(room[0] for room in rooms), params)

    def may_hold(self, kinds: Sequence[Kind], budget: Budget = ENDLESS) -> bool:
        """Whether the domains may hold all ranks; False is certain.

        They may when the budget ends first.
        """
        if not kinds:
            return True
        ways = ways_to_close(needs_of(kinds), len(kinds[0].ranks), self.block)
        return all(self._may_hold(sets, budget) for sets in ways)

    def _may_hold(self, sets: Sequence[ClosedSets], budget: Budget) -> bool:
        """The same of ranks in such sets."""
        needy = [one for one in sets if one.needs]
        places = max(one.ranks.shape[1] for one in needy)
        room = node_charge(self.block) * max(self.domains)
        if places > self.params.set_places or room > self.params.set_room:
            return True
        # A node that reaches beyond both ends of a stretch would be shared by three.
        last = sum(one.ranks.size for one in sets) - 1
        if any(
            len(of) < self.block - 1 and (one.ranks[:, of[-1]] < last).any()
            for one in needy
            for of in one.stretches
        ):
            return True
        counts, cuts = [], []
        for one in needy:
            if budget.is_over():
                return True
            found = SetCuts.of(one, self.params)
            if found is not None:
                counts.append(len(one.ranks))
                cuts.append(found)
        prices = _Prices(counts, cuts, self.domains, self.block)
        return not cuts or not prices.refute(self.params.set_rounds, budget)


@dataclass(frozen=True, eq=False)
class _Prices:
    """Sets of some kinds, and the domains for them.

    Attributes
    ----------
    counts : list of int
        Sets of each kind.
    cuts : list of SetCuts
    domains : Counter of int
        By nodes.
    block : int
    """

    counts: list[int]
    cuts: list[SetCuts]
    domains: Counter[int]
    block: int

    def refute(self, rounds: int, budget: Budget) -> bool:
        """Whether prices are found that the domains cannot hold."""
        program = self._program()
        for _ in range(rounds):
            if budget.is_over():
                return False
            optimum = program.solve()
            if optimum is None or optimum.total < ROUNDING:
                return False
            rises = np.maximum(optimum.prices[self._first_charge :], 0)
            price = np.zeros(self._node * max(self.domains) + 1, dtype=np.int64)
            price[self._charges] = np.rint(SCALE * rises)
            price = np.cumsum(price)
            most, last = _knapsack(price)
            added = [
                program.add(0.0, {row: 1.0} | self._at_least(division, 1))
                for row, nodes in enumerate(self.domains, len(self.cuts))
                for division in [_divided(last, self._node * nodes)]
            ]
            if any(added):
                continue
            found = [one.cheapest(price) for one in self.cuts]
            asked = sum(n * f.price for n, f in zip(self.counts, found, strict=True))
            if asked > sum(n * most[self._node * c] for c, n in self.domains.items()):
                return True
            added = [
                program.add(0.0, {kind: 1.0} | self._at_least(cut.charges, -1))
                for kind, cut in enumerate(found)
            ]
            if not any(added):
                return False
        return False

    @property
    def _node(self) -> int:
        return node_charge(self.block)

    @property
    def _first_charge(self) -> int:
        """Row of the least charge."""
        return len(self.cuts) + len(self.domains)

    @cached_property
    def _charges(self) -> IntArray:
        """Those of pieces that a domain may hold."""
        found = np.unique(np.concatenate([one.charge for one in self.cuts]))
        return found[(found > 0) & (found <= self._node * max(self.domains))]

    def _program(self) -> ColumnProgram:
        """Rows for sets, domains, and places for pieces of each charge or more."""
        sums = [*self.counts, *self.domains.values(), *(0 for _ in self._charges)]
        # A domain holds no more sets than it has nodes.
        program = ColumnProgram(sums, sum(self.counts) + max(self.domains))
        for row in range(self._first_charge):
            # A set for which there is no room, a domain that holds nothing.
            program.add(float(row < len(self.cuts)), {row: 1.0})
        for row in range(self._first_charge, len(sums)):
            program.add(0.0, {row: -1.0})
        return program

    def _at_least(self, pieces: Sequence[int], sign: int) -> dict[int, float]:
        """How many pieces are of each charge or more, by row."""
        fewer = np.searchsorted(np.sort(pieces), self._charges)
        return {
            self._first_charge + row: float(sign * (len(pieces) - less))
            for row, less in enumerate(fewer.tolist())
            if less < len(pieces)
        }


def _knapsack(price: IntArray) -> tuple[IntArray, IntArray]:
    """The most price of each room, and a piece that is in it; 0 for free space."""
    sizes = np.flatnonzero(np.diff(price, prepend=0))
    most, last = np.zeros((2, len(price)), dtype=np.int64)
    for room in range(1, len(price)):
        most[room] = most[room - 1]
        fits = sizes[: np.searchsorted(sizes, room, side="right")]
        if len(fits):
            worth = price[fits] + most[room - fits]
            best = int(worth.argmax())
            if worth[best] > most[room]:
                most[room], last[room] = worth[best], fits[best]
    return most, last


def _divided(last: IntArray, room: int) -> list[int]:
    """The pieces of a room."""
    found = []
    while room > 0:
        if last[room]:
            found.append(int(last[room]))
        room -= int(last[room]) or 1
    return found
