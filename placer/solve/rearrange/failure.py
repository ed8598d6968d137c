"""A machine after failures: where ranks were, who must leave, and how many at least.

Ranks on lost nodes move. A domain that has less room than ranks must besides let whole
sets go: sets of ranks that the requirements tie together there. A set takes along its
ranks that have a seat, and the fewest are a knapsack over the sets of each domain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf
from typing import NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, IntArray
from placer.base.units import counted
from placer.placement.previous import Previous
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.compiled import Problem
from placer.solve.tree.capacity import room_in_sets


class Affected(NamedTuple):
    """One domain that lost ranks."""

    ranks: IntArray  # (any,): all that were in it, ascending
    # (any,): the set of each of them: ranks that the requirements tie together there.
    tied: IntArray
    # size and kept, (sets,): all of each set, and those that have a seat.
    size: IntArray
    kept: IntArray
    excess: int  # ranks for which there is no room; may be negative


class Fewest(NamedTuple):
    """A lower bound on the ranks that move, and what it rests on."""

    moves: int
    argument: str


@dataclass(frozen=True, eq=False)
class Failure:
    """A job on what is left of its machine, its ranks numbered as before."""

    problem: Problem
    before: Previous

    @cached_property
    def sets(self) -> IntArray:
        """Ranks that the requirements tie together, by tier; shape (T, R)."""
        return colocation_of(self.problem.machine, self.problem.job, 1).label

    @cached_property
    def must_move(self) -> BoolArray:
        """Ranks on lost nodes, and sets for which their domain has no room; (R,)."""
        found = self.before.is_lost.copy()
        for tier in self._tiers:
            for domain in self._affected(tier):
                if domain.excess <= 0:
                    continue
                # The sets that move the fewest ranks go first, until the others fit.
                order = np.argsort(domain.kept, kind="stable")
                gone = np.cumsum(domain.size[order])
                leaving = order[: int(np.searchsorted(gone, domain.excess)) + 1]
                found[domain.ranks[np.isin(domain.tied, leaving)]] = True
        return found

    def fewest_moves(self) -> Fewest:
        """How many ranks move at least, whatever the placement."""
        lost = int(self.before.is_lost.sum())
        more = max(
            sum(
                least_cover(domain.size, domain.kept, domain.excess)
                for domain in self._affected(tier)
            )
            for tier in self._tiers
        )
        if more:
            return Fewest(
                lost + more,
                f"{lost:,} ranks were on lost nodes, and {more:,} more belong to "
                "required groups for which their domain has no room",
            )
        return Fewest(lost, f"the {counted(lost, 'rank')} on lost nodes")

    def most_damaged(self, block: int, count: int) -> list[int]:
        """Replicas to give up: ``count``, in blocks of ``block`` consecutive ones.

        Those of which the most ranks must move; of equal ones the last.
        """
        replica = self.problem.job.parallelism.coordinates["dp"]
        damage = np.bincount(replica // block, self.must_move)
        order = np.lexsort((-np.arange(len(damage)), -damage))
        blocks = np.sort(order[: count // block])
        first = blocks[:, None] * block + np.arange(block)
        return [int(one) for one in first.ravel()]

    @property
    def _tiers(self) -> range:
        return range(max(1, len(self.problem.machine.tiers) - 1))

    def _affected(self, tier: int) -> Iterator[Affected]:
        """The domains of a tier that lost ranks."""
        home, is_lost = self.before.domain[tier], self.before.is_lost
        room = self._room[tier]
        for domain in np.unique(home[is_lost]).tolist():
            ranks = np.flatnonzero(home == domain)
            tied = np.unique(self.sets[tier][ranks], return_inverse=True)[1]
            places = int(room[domain]) if domain < len(room) else 0
            yield Affected(
                ranks,
                tied,
                np.bincount(tied),
                np.bincount(tied, ~is_lost[ranks]).astype(np.int64),
                len(ranks) - places,
            )

    @cached_property
    def _room(self) -> list[IntArray]:
        """Ranks that each domain can hold in whole sets, by tier."""
        machine = self.problem.machine
        return room_in_sets(machine, machine.gpus_of_node, self.sets)


def least_cover(size: IntArray, price: IntArray, need: int) -> int:
    """Least sum of prices of items whose sizes add up to ``need`` or more."""
    if need <= 0:
        return 0
    if len(np.unique(size)) == 1:
        return int(np.sort(price)[: ceil(need / int(size[0]))].sum())
    best = np.full(need + 1, inf)
    best[0] = 0
    at = np.arange(need + 1)
    for own, cost in zip(size.tolist(), price.tolist(), strict=True):
        best = np.minimum(best, best[np.maximum(at - own, 0)] + cost)
    return int(best[need]) if best[need] < inf else int(price.sum())
