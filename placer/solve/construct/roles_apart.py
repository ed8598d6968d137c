"""Roles on nodes of their own, which any launcher can start.

Where nodes are spare, stages, instances or roles begin on nodes of their own. Nodes
that send each other anything, at once or by way of others, are a closed set: it lies in
a scale-up domain whole, in halves, or in quarters. Nodes may be cut amid their ranks,
where that separates components and nodes are spare: both halves of a node then take
one each. Else whole nodes are dealt out, and each part takes the same share of all that
are alike. Shapes: R ranks, D domains.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import ceil
from typing import NamedTuple

import numpy as np

from placer.base.arrays import IntArray, equal_runs, grouped
from placer.job.model import Job
from placer.solve.problem.colocation import join
from placer.solve.problem.compiled import Problem
from placer.solve.problem.flows import flows_of
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent

# Shares of a closed set that its parts have at the least, each tried.
LEAST = (0.5, 0.43, 0.36, 0.25)


def apart(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Roles begin on nodes of their own, and closed sets of nodes are packed."""
    machine, job = problem.machine, problem.job
    if problem.goal.name != "time" or not job.roles:
        return
    flows = flows_of(problem, np.arange(job.world_size))
    room = machine.gpus_of_node
    full = int(room.max())
    nodes = np.flatnonzero(room == full)  # runs may be on any of them
    domain = machine.domain_of_node[max(problem.model.fabric.scale_up_tier, 0)][nodes]
    role = np.repeat(np.arange(len(job.roles)), [of.world_size for of in job.roles])
    packed: list[IntArray] = []
    for ends in _ends(job):
        run = _runs(ends, full)
        if run[-1] >= len(nodes) or any(np.array_equal(run, one) for one in packed):
            continue
        packed.append(run)
        sets = ClosedSets(run, role, flows.edges)
        for least in LEAST:
            if budget.is_over():
                return
            free = grouped(nodes, domain)
            node = np.empty(len(run), dtype=np.int64)
            rooms = np.array([len(places) for places in free])
            for ranks, home in sets.packed(rooms, least):
                for own in grouped(ranks, run[ranks]):
                    node[own], free[home] = free[home][0], free[home][1:]
            incumbent.offer("roles apart, packed", machine.gpus_on(node))


def _ends(job: Job) -> Iterator[list[int]]:
    """Ranks after which a node ends: of stages, of instances, or of roles."""
    roles, instances, stages = [0], [0], [0]
    for role in job.roles:
        size, pp = role.job.world_size, role.job.parallelism.pp
        roles.append(role.first_rank + role.world_size)
        instances += [first + size for first in role.offsets]
        stages += [
            first + size * p // pp for first in role.offsets for p in range(1, pp + 1)
        ]
    yield from (stages, instances, roles)


def _runs(ends: list[int], full: int) -> IntArray:
    """Run of each rank: nodes filled, and begun anew after each end; shape (R,)."""
    found, first = [], 0
    for begin, end in pairwise(ends):
        own = np.arange(end - begin) // full
        found.append(first + own)
        first += int(own[-1]) + 1
    return np.concatenate(found)


class _Wanted(NamedTuple):
    """Nodes of other sets, and the least share of a part."""

    others: int
    least: float


class _Fit(NamedTuple):
    """Ranks and domain of each part, nodes then free, and how many are of no use."""

    parts: list[tuple[IntArray, int]]
    room: IntArray
    lost: int = 0


class ClosedSets:
    """The closed sets of nodes that ranks are on, and ways to cut them.

    ``node`` and ``role`` ((R,)): of each rank, ascending. ``edges`` ((E, 2)): ranks
    that send each other anything.
    """

    def __init__(self, node: IntArray, role: IntArray, edges: IntArray) -> None:
        begin, length = equal_runs(node)
        half = 2 * node + 2 * (np.arange(len(node)) - begin[node]) // length[node]
        component = join(np.arange(2 * len(begin)), half[edges])
        is_silent = np.bincount(half[edges].ravel(), minlength=len(component)) == 0
        # A half that sends nothing goes where the other goes.
        self._component = component[np.where(is_silent[half], half ^ 1, half)]
        kind = np.column_stack((component.reshape(-1, 2), role[begin]))
        place, count = _among_alike(
            np.unique(kind, axis=0, return_inverse=True)[1].ravel()
        )
        self._node, self._share = node, (place + 0.5) / count
        closed = join(np.arange(len(begin)), node[edges])[node]
        self._sets = grouped(np.arange(len(node)), closed)
        self._sets.sort(key=lambda ranks: -len(self._nodes(ranks)))

    def packed(self, room: IntArray, least: float) -> Iterator[tuple[IntArray, int]]:
        """Ranks and domain of each part, the largest sets first.

        Sets that no cut fits are wherever nodes are left.

        Parameters
        ----------
        room : ndarray, shape (D,), nodes
            Of each domain.
        least : float
            Share of what is cut that a part of nodes has. Parts of whole components
            are tried before those.
        """
        loose, misfit = [], 0
        others = int(self._node[-1]) + 1
        for ranks in self._sets:
            size = len(self._nodes(ranks))
            wanted = _Wanted(others - size, least)
            tries = range(3) if size != misfit else ()
            fits = (self._fit(ranks, room, wanted, cuts) for cuts in tries)
            found = next(filter(None, fits), None)
            if found is None:
                misfit = size
                loose.append(ranks)
                continue
            others -= size
            room = found.room
            yield from found.parts
        room = room.copy()
        for ranks in loose:
            left = self._nodes(ranks)
            while len(left):
                home = int(room.argmax())
                taken, left = left[: room[home]], left[room[home] :]
                room[home] -= len(taken)
                yield ranks[np.isin(self._node[ranks], taken)], home

    def _fit(
        self, ranks: IntArray, room: IntArray, wanted: _Wanted, cuts: int
    ) -> _Fit | None:
        """A set or a part, cut so often at the most."""
        nodes = len(self._nodes(ranks))
        most = int(room.max())
        if nodes > room.sum() - wanted.others or nodes > most << cuts:
            return None
        if nodes <= most:
            left = room - nodes
            lost = np.where(left < wanted.least * nodes, left, 0)
            home = int(np.lexsort((room, lost, left < 0))[0])
            after = room.copy()
            after[home] -= nodes
            return _Fit([(ranks, home)], after, int(lost[home]))
        if not cuts:
            return None
        for ways in (self._parted(ranks), self._dealt(ranks, wanted)):
            fits = (self._parts(way, room, wanted, cuts - 1) for way in ways)
            found = min(filter(None, fits), key=lambda fit: fit.lost, default=None)
            if found is not None:
                return found
        return None

    def _parts(
        self, parts: list[IntArray], room: IntArray, wanted: _Wanted, cuts: int
    ) -> _Fit | None:
        """Where some parts fit, one after the other."""
        found = _Fit([], room)
        for part in parts:
            own = self._fit(part, found.room, wanted, cuts)
            if own is None:
                return None
            placed = found.parts + own.parts
            found = _Fit(placed, own.room, found.lost + own.lost)
        return found

    def _parted(self, ranks: IntArray) -> Iterator[list[IntArray]]:
        """Two parts of whole components, where halves of nodes have some."""
        component = self._component[ranks]
        own = np.unique(component)
        if len(own) > 1:
            is_first = component < own[len(own) // 2]
            yield [ranks[is_first], ranks[~is_first]]

    def _dealt(self, ranks: IntArray, wanted: _Wanted) -> Iterator[list[IntArray]]:
        """Two parts of whole nodes, a fair share of all in each."""
        nodes = self._nodes(ranks)
        least = max(ceil(wanted.least * len(nodes)), 1)
        for size in range(least, len(nodes) // 2 + 1):
            is_first = np.isin(self._node[ranks], nodes[:size])
            yield [ranks[~is_first], ranks[is_first]]

    def _nodes(self, ranks: IntArray) -> IntArray:
        """Nodes of some ranks, of which any first ones are a fair share."""
        nodes = np.unique(self._node[ranks])
        return nodes[np.argsort(self._share[nodes], kind="stable")]


def _among_alike(kind: IntArray) -> tuple[IntArray, IntArray]:
    """Place of each among those of its kind, and how many there are."""
    order = np.argsort(kind, kind="stable")
    ranked = kind[order]
    first = np.searchsorted(ranked, ranked)
    place, count = np.empty((2, len(kind)), dtype=np.int64)
    place[order] = np.arange(len(order)) - first
    count[order] = np.searchsorted(ranked, ranked, side="right") - first
    return place, count
