"""After failures: who must leave, how many at least, and the placement mended.

Ranks on lost nodes move. A domain that has less room than ranks must besides let whole
sets go: sets of ranks that the requirements tie together there. A set takes along its
ranks that have a seat, and the fewest are a knapsack over the sets of each domain. Who
cannot stay goes to the nearest room.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf
from typing import NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, IntArray, grouped
from placer.base.units import counted
from placer.placement.previous import Previous
from placer.solve.problem.colocation import colocation_of, join
from placer.solve.problem.compiled import Problem
from placer.solve.tree.domains import room_in_sets


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


def mended(failure: Failure) -> IntArray | None:
    """GPU of every rank, nobody moved who may stay; None where no room is found."""
    for usable in _usable(failure):
        found = _Mended(failure, usable).seated()
        if found is not None and failure.problem.allows(found):
            return found
    return None


def _usable(failure: Failure) -> Iterator[BoolArray]:
    """Nodes for newcomers: at full speed and not to be avoided; then all others."""
    machine = failure.problem.machine
    factors = machine.bandwidth_factor, machine.speed_of_node
    wanted = ~failure.problem.limits.avoided
    fast = np.all([factor == factor.max() for factor in factors], axis=0)
    yield wanted & fast
    yield wanted
    yield np.ones_like(wanted)


class _Mended:
    """Nodes for who must move, set by set from the outermost tier inwards.

    ``node`` ((R,)): of each rank, -1 for none yet. ``free`` ((N,)): GPUs that newcomers
    may take.
    """

    def __init__(self, failure: Failure, usable: BoolArray) -> None:
        self.machine, self.before = failure.problem.machine, failure.before
        self.hosts = failure.problem.limits.nodes_of_rank
        self.by_nodes = failure.problem.job.launcher != "free"
        stays = ~failure.must_move & ~self.before.is_lost
        self.kept = np.where(stays, self.before.gpu_of_rank, -1)
        self.node = np.where(stays, self.machine.node_of_gpu[self.kept], -1)
        self.free = self.machine.gpus_of_node * usable
        np.subtract.at(self.free, self.node[stays], usable[self.node[stays]])
        #: Sets of each tier; in a launch by nodes what was on a node is one besides.
        self.sets = failure.sets
        if self.by_nodes:
            host = self.before.domain[0]
            order = np.argsort(host, kind="stable")
            same = np.diff(host[order]) == 0
            pairs = np.stack((order[:-1], order[1:]), axis=1)[same]
            self.sets = np.array([join(label, pairs) for label in self.sets])
            self.free[self.node[stays]] = 0

    def seated(self) -> IntArray | None:
        """The placement; None where a set finds no room."""
        ranks = np.flatnonzero(self.node < 0)
        every = np.ones(self.machine.num_nodes, dtype=bool)
        found = self._put(ranks, max(len(self.sets) - 2, 0), every)
        return self.machine.gpus_on(self.node, self.kept) if found else None

    def _put(self, ranks: IntArray, tier: int, inside: BoolArray) -> bool:
        """Put ranks on nodes ``inside`` a domain, sets of a tier in domains of it."""
        label = self.sets[tier]
        begun = np.zeros(int(label.max()) + 1, dtype=bool)
        begun[label[self.node >= 0]] = True  # whose place is given comes first
        groups = grouped(ranks, label[ranks])
        groups.sort(key=lambda own: (not begun[label[own[0]]], -len(own), int(own[0])))
        for own in groups:
            if not any(
                self._enters(own, tier, one) for one in self._near(own, tier, inside)
            ):
                return False
        return True

    def _enters(self, ranks: IntArray, tier: int, inside: BoolArray) -> bool:
        """Put a set into one domain, if it fits."""
        if tier:
            return self._put(ranks, tier - 1, inside)
        node = int(inside.argmax())
        self.node[ranks] = node
        self.free[node] -= self.free[node] if self.by_nodes else len(ranks)
        return True

    def _near(
        self, ranks: IntArray, tier: int, inside: BoolArray
    ) -> Iterator[BoolArray]:
        """Nodes of each domain with room, the old one first, then the fullest."""
        machine = self.machine
        row = machine.domain_of_node[tier]
        free = self.free * inside
        mates = self.node[self.sets[tier] == self.sets[tier][ranks[0]]]
        seated = mates[mates >= 0]
        if seated.size:  # a set that lost a part stays where the rest is
            inside = inside & (row == row[seated[0]])
            room = np.bincount(row, free * inside)
        else:
            room = room_in_sets(machine, free, self.sets)[tier]
        fits = np.flatnonzero(room >= len(ranks))
        if not tier:  # where pins let them be
            hosts = [self.hosts[rank] for rank in ranks.tolist() if rank in self.hosts]
            fits = np.array([n for n in fits if all(n in own for own in hosts)], int)
        away = np.zeros(len(fits), dtype=np.int64)
        if not fits.size:
            return
        node = np.unique(row, return_index=True)[1][fits]
        for outer in range(tier, len(machine.tiers)):
            home = self.before.domain[outer][ranks[0]]
            away += machine.domain_of_node[outer][node] != home
        for one in np.lexsort((fits, room[fits], away)).tolist():
            yield inside & (row == fits[one])
