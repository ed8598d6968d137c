"""The placement before a failure, mended: who cannot stay goes to the nearest room."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placer.base.arrays import BoolArray, IntArray, grouped
from placer.solve.problem.colocation import join
from placer.solve.rearrange.failure import Failure
from placer.solve.tree.capacity import room_in_sets


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
    """Seats for who must move, set by set from the outermost tier inwards.

    ``free`` ((G,)): GPUs that newcomers may take.
    """

    def __init__(self, failure: Failure, usable: BoolArray) -> None:
        self.machine, self.before = failure.problem.machine, failure.before
        self.hosts = failure.problem.limits.nodes_of_rank
        self.by_nodes = failure.problem.job.launcher != "free"
        stays = ~failure.must_move & ~self.before.is_lost
        self.gpu_of_rank = np.where(stays, self.before.gpu_of_rank, -1)
        kept = self.gpu_of_rank[stays]
        self.free = usable[self.machine.node_of_gpu]
        self.free[kept] = False
        #: Sets of each tier; in a launch by nodes what was on a node is one besides.
        self.sets = failure.sets
        if self.by_nodes:
            host = self.before.domain[0]
            order = np.argsort(host, kind="stable")
            same = np.diff(host[order]) == 0
            pairs = np.stack((order[:-1], order[1:]), axis=1)[same]
            self.sets = np.array([join(label, pairs) for label in self.sets])
            node_of_gpu = self.machine.node_of_gpu
            self.free[np.isin(node_of_gpu, node_of_gpu[kept])] = False

    def seated(self) -> IntArray | None:
        """The placement; None where a set finds no room."""
        ranks = np.flatnonzero(self.gpu_of_rank < 0)
        every = np.ones(self.machine.num_nodes, dtype=bool)
        found = self._put(ranks, max(len(self.sets) - 2, 0), every)
        return self.gpu_of_rank if found else None

    def _put(self, ranks: IntArray, tier: int, inside: BoolArray) -> bool:
        """Put ranks on nodes ``inside`` a domain, sets of a tier in domains of it."""
        label = self.sets[tier]
        begun = np.zeros(int(label.max()) + 1, dtype=bool)
        begun[label[self.gpu_of_rank >= 0]] = True  # whose place is given comes first
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
        first, end = self.machine.first_gpu_of_node[node : node + 2].tolist()
        seats = first + np.flatnonzero(self.free[first:end])
        self.gpu_of_rank[ranks] = seats[: len(ranks)]
        self.free[seats[: None if self.by_nodes else len(ranks)]] = False
        return True

    def _near(
        self, ranks: IntArray, tier: int, inside: BoolArray
    ) -> Iterator[BoolArray]:
        """Nodes of each domain with room, the old one first, then the fullest."""
        machine = self.machine
        row = machine.domain_of_node[tier]
        node_of_gpu = machine.node_of_gpu
        free = np.bincount(node_of_gpu, self.free * inside[node_of_gpu]).astype(int)
        mates = self.gpu_of_rank[self.sets[tier] == self.sets[tier][ranks[0]]]
        seated = mates[mates >= 0]
        if seated.size:  # a set that lost a part stays where the rest is
            inside = inside & (row == row[node_of_gpu[seated[0]]])
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
