"""Some placement that keeps every rule, or the proof that there is none, by CP-SAT.

For small jobs: a variable of every set and domain, with the job's rules. As few hosts
to avoid are used as can be.

Nodes may be the islands of hosts. Rules and launchers know hosts: one is used when any
of its islands is, holds one run of ranks, and counts its GPUs island by island or as
its launcher does.
"""

from __future__ import annotations

from itertools import chain, pairwise, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import IntArray, divisors
from placer.base.loading import load
from placer.job.even import axis_of, is_even, part_size
from placer.solve.count import CP_SAT, EngineLimits, cp_sat, solved
from placer.solve.problem.colocation import colocation_of, groups_of
from placer.solve.problem.launch import counts_by_island
from placer.solve.problem.rules import Count, Limits
from placer.solve.run.budget import ENDLESS, Budget

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

MOST_CHOICES = 6_000  # ranks, or sets, times nodes of a program that is solved


class Seating(NamedTuple):
    """The answer."""

    node_of_rank: IntArray | None = None  # (R,): None when nothing was found
    # Whether there is no placement, or none with fewer hosts to avoid.
    proved: bool = False


def seat(limits: Limits, budget: Budget = ENDLESS) -> Seating:
    """A placement that keeps every rule, if the job is small and one is found."""
    job = limits.job
    sets = colocation_of(limits.topology, job, 1)
    count = job.world_size
    if job.launcher == "free":
        count = int(sets.label[0].max()) + 1
    if count * limits.topology.num_nodes > MOST_CHOICES:
        return Seating()
    return _Seats(limits, sets.label).solved(budget)


class _Seats:
    """The domain of each set, tier by tier, and the rules about it.

    Ranks that must share a domain of a tier share their variables there.

    ``label`` ((T, R)): set of each rank. ``at[t][p][d]``: whether set ``p`` of tier
    ``t`` lies in domain ``d``.
    """

    def __init__(self, limits: Limits, label: IntArray) -> None:
        self.limits, self.job, self.topology = limits, limits.job, limits.topology
        self.model: cp_model.CpModel = load(CP_SAT).CpModel()
        self.label = label
        self.at: list[list[list[cp_model.IntVar]]] = []
        gpus = self.topology.gpus_of_node
        for row, sets in zip(self.topology.domain_of_node, label, strict=True):
            rooms = np.bincount(row, gpus).astype(np.int64)
            self.at.append(self._variables(np.bincount(sets).tolist(), rooms.tolist()))
        for inner in range(len(self.at) - 1):
            self._nest(inner)

    def _variables(
        self, sizes: list[int], rooms: list[int]
    ) -> list[list[cp_model.IntVar]]:
        """Every set has one domain, and none holds more ranks than it has room for."""
        at = [[self.model.new_bool_var("") for _ in rooms] for _ in sizes]
        for row in at:
            self.model.add_exactly_one(row)
        for room, there in zip(rooms, zip(*at, strict=True), strict=True):
            inside = zip(sizes, there, strict=True)
            self.model.add(sum(size * is_in for size, is_in in inside) <= room)
        return at

    def _nest(self, inner: int) -> None:
        """A set lies in the domain that holds those of its inner sets."""
        around = self.topology.domain_around[inner]
        first = np.unique(self.label[inner], return_index=True)[1]
        holders = self.label[inner + 1, first].tolist()
        for row, holder in zip(self.at[inner], holders, strict=True):
            for domain, there in enumerate(self.at[inner + 1][holder]):
                inside = [row[child] for child in np.flatnonzero(around == domain)]
                self.model.add(sum(inside) == there)

    def _where(self, tier: int) -> list[list[cp_model.IntVar]]:
        """Whether each rank lies in each domain of a tier."""
        return [self.at[tier][part] for part in self.label[tier].tolist()]

    def solved(self, budget: Budget) -> Seating:
        """The placement, or that there is none."""
        self._pins()
        for count in self.limits.counts:
            self._count(count)
        self._equal_parts()
        if self.job.launcher != "free":
            self._runs()
        self.model.minimize(sum(self._count(self.limits.avoided_count)))
        cp_model, solver = load(CP_SAT), cp_sat(EngineLimits())
        status = solved(
            solver, self.model, lambda: budget.is_stopped or budget.is_past()
        )
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Seating(proved=status == cp_model.INFEASIBLE)
        at = [[solver.value(is_in) for is_in in row] for row in self._where(0)]
        return Seating(np.argmax(at, axis=1), status == cp_model.OPTIMAL)

    def _pins(self) -> None:
        """Pinned ranks are on their hosts."""
        on = self._where(0)
        for rank, nodes in self.limits.nodes_of_rank.items():
            self.model.add_bool_or([on[rank][node] for node in sorted(nodes)])

    def _count(self, count: Count) -> list[cp_model.IntVar]:
        """A box has at most so many of what is counted; whether it has each of them."""
        inside = np.flatnonzero(count.box >= 0).tolist()
        occurs: dict[tuple[int, int], cp_model.IntVar] = {}
        for (rank, on), node in product(enumerate(self._where(0)), inside):
            key = (
                int(count.box[node]),
                int(count.number[rank if count.by_rank else node]),
            )
            if key not in occurs:
                occurs[key] = self.model.new_bool_var("")
            self.model.add_implication(on[node], occurs[key])
        for number, most in enumerate(count.most.tolist()):
            there = [has for (box, _), has in occurs.items() if box == number]
            self.model.add(sum(there) <= most)
        return [*occurs.values()]

    def _equal_parts(self) -> None:
        """Groups in parts lie in equal, consecutive numbers of them, one a domain."""
        require = self.job.require
        for key, tier in require.items():
            if not is_even(key):
                continue
            sizes = (part_size(k) for k in require if axis_of(k) == axis_of(key))
            size = max(sizes) or 1
            where = self._where(self.topology.tier_index(tier))
            rows = (group[:, ::size] for group in groups_of(self.job, axis_of(key)))
            for group in chain.from_iterable(rows):
                self._evenly([where[rank] for rank in group.tolist()])

    def _evenly(self, parts: list[list[cp_model.IntVar]]) -> None:
        """As many runs of parts as divide them, each in a domain of its own."""
        ways = {k: self.model.new_bool_var("") for k in divisors(len(parts))}
        self.model.add_exactly_one(ways.values())
        for (k, way), there in product(ways.items(), zip(*parts, strict=True)):
            length = len(parts) // k
            self.model.add(sum(there[::length]) <= 1).only_enforce_if(way)
            for at, (before, after) in enumerate(pairwise(there), 1):
                if at % length:
                    self.model.add(before == after).only_enforce_if(way)

    def _runs(self) -> None:
        """A host holds consecutive ranks: at most one run begins on it."""
        hosts = zip(*self._where(self.topology.node_tier), strict=True)
        for host, there in enumerate(hosts):
            begins = [there[0]]
            for before, after in pairwise(there):
                begin = self.model.new_bool_var("")
                self.model.add_bool_or([after.negated(), before, begin])
                begins.append(begin)
            self.model.add_at_most_one(begins)
            nodes = np.flatnonzero(self.topology.host_of_node == host)
            if len(nodes) > 1:
                self._ascend(nodes.tolist(), there)

    def _ascend(self, nodes: list[int], there: tuple[cp_model.IntVar, ...]) -> None:
        """The GPUs of a host ascend with its ranks, in one of two orders.

        Each rank has a place: its GPU, or where the launcher counts that.
        """
        domain = load(CP_SAT).Domain
        most = self.topology.num_gpus
        places = [self.model.new_int_var(0, most, "") for _ in there]
        by_island = self.model.new_bool_var("")
        if counts_by_island(self.topology):
            self.model.add(by_island == 1)
        for node in nodes:
            gpus = self.topology.gpus_of(np.array([node]))
            counted = self.topology.index_of_gpu[gpus]
            for order, values in ((by_island, gpus), (by_island.negated(), counted)):
                allowed = domain.from_values(values.tolist())
                for place, row in zip(places, self._where(0), strict=True):
                    inside = self.model.add_linear_expression_in_domain(place, allowed)
                    inside.only_enforce_if([row[node], order])
        for both, (one, other) in zip(pairwise(there), pairwise(places), strict=True):
            self.model.add(one < other).only_enforce_if(both)
