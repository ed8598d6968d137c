"""Some placement that keeps every rule, or the proof that there is none, by CP-SAT.

For small jobs: a variable of every unit and node, with the job's rules.
A unit is a rank, or a block of ranks when every node is to hold one block; units that
must share a node share their variables. As few hosts to avoid are used as can be.

Nodes may be the islands of hosts. Rules and launchers know hosts: one is used when any
of its islands is, holds one run of ranks, and counts its GPUs island by island or as
its launcher does.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray, divisors
from placer.base.loading import load
from placer.job.even import axis_of, is_even, part_size
from placer.solve.count import CP_SAT, EngineLimits, cp_sat, solved
from placer.solve.problem.colocation import Colocation, colocation_of, groups_of
from placer.solve.problem.launch import counts_by_island
from placer.solve.problem.rules import Count, Limits
from placer.solve.run.budget import ENDLESS, Budget
from placer.solve.tree.domains import ancestor_of_domain, node_capacity

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

# Units times nodes of a program that is always solved, and of one that is solved when
# nothing else finds a placement.
FEW_CHOICES, MOST_CHOICES = 6_000, 60_000


@dataclass(frozen=True, eq=False)
class Seating:
    """The answer."""

    node_of_rank: IntArray | None  # (R,): None when nothing was found
    avoided: int = 0  # nodes to avoid that are used
    # Whether there is no placement, or none with fewer nodes to avoid.
    proved: bool = False


def seat(
    limits: Limits,
    block: int = 1,
    most_choices: int = FEW_CHOICES,
    budget: Budget = ENDLESS,
    *,
    waits: bool = True,
) -> Seating | None:
    """A placement that keeps every rule, None when the job is too large to tell.

    ``block``: consecutive ranks that each node in use must hold, in a node-contiguous
    launch; 1 when they may hold any number. ``most_choices``: units times nodes of a
    job that is not too large. ``waits``: whether the first placement is waited for a
    little when the budget is over.
    """
    topology, job = limits.topology, limits.job
    if _units(limits, block) * topology.num_nodes > most_choices:
        return None
    colocation = colocation_of(topology, job, block)
    capacity = node_capacity(topology, block)
    return _Seats(limits, colocation, capacity).solved(budget, waits)


def _units(limits: Limits, block: int) -> int:
    """What a program of blocks of so many ranks would place."""
    if limits.job.launcher != "free":
        return limits.job.world_size // block
    return int(colocation_of(limits.topology, limits.job, block).label[0].max()) + 1


class _Seats:
    """The domain of each set, tier by tier, and the rules about it.

    Units that must share a domain of a tier share their variables there. A tier other
    than the nodes needs none where no set has several units, or only one domain has any
    room. Shapes: N nodes, U units.

    ``nodes``: those with room. ``label`` ((T, U)): set of each unit. ``at``: domains of
    a tier that have room; ``at[t][1][p][i]``: set ``p`` lies in the ``i``-th of them.
    ``on``: variables of every unit, by node.
    """

    def __init__(
        self, limits: Limits, colocation: Colocation, capacity_of_node: IntArray
    ) -> None:
        self.limits, self.job, self.topology = limits, limits.job, limits.topology
        self.rows = self.topology.domain_of_node
        self.model: cp_model.CpModel = load(CP_SAT).CpModel()
        self.block = max(colocation.block, 1)
        self.label = colocation.label[:, :: self.block]
        room_of_node = capacity_of_node // self.block
        self._room = [
            np.bincount(row, room_of_node).astype(np.int64) for row in self.rows
        ]
        units = self.label.shape[1]
        self.at = {
            t: self._variables(t)
            for t, (row, room) in enumerate(zip(self.label, self._room, strict=True))
            if t == 0 or (row.max() + 1 < units and (room > 0).sum() > 1)
        }
        for inner, outer in pairwise(self.at):
            parent = ancestor_of_domain(self.topology, inner, outer)
            self._nest(inner, outer, parent)
        self.nodes, rows = self.at[0]
        self.on = [
            dict(zip(self.nodes, rows[part], strict=True))
            for part in self.label[0].tolist()
        ]
        host_of_node = self.topology.host_of_node.tolist()
        self.nodes_of_host: dict[int, list[int]] = {}
        for node in self.nodes:
            self.nodes_of_host.setdefault(host_of_node[node], []).append(node)

    def _variables(self, tier: int) -> tuple[list[int], list[list[cp_model.IntVar]]]:
        """Every set has one domain, and none holds more units than it has room for."""
        room, sizes = self._room[tier], np.bincount(self.label[tier]).tolist()
        domains = np.flatnonzero(room).tolist()
        at = [[self.model.new_bool_var("") for _ in domains] for _ in sizes]
        for row in at:
            self.model.add_exactly_one(row)
        for i, domain in enumerate(domains):
            inside = sum(size * row[i] for size, row in zip(sizes, at, strict=True))
            self.model.add(inside <= int(room[domain]))
        return domains, at

    def _nest(self, inner: int, outer: int, parent: IntArray) -> None:
        """A set lies in the domain that holds those of its inner sets."""
        (children, below), (domains, above) = self.at[inner], self.at[outer]
        pairs = zip(self.label[inner].tolist(), self.label[outer].tolist(), strict=True)
        holder = dict(pairs)
        for part, row in enumerate(below):
            for i, domain in enumerate(domains):
                inside = [
                    variable
                    for child, variable in zip(children, row, strict=True)
                    if parent[child] == domain
                ]
                self.model.add(sum(inside) == above[holder[part]][i])

    def solved(self, budget: Budget, waits: bool) -> Seating:
        """The placement, or that there is none."""
        self._pins()
        for count in self.limits.counts:
            self._count(count)
        self._equal_parts()
        if self.job.launcher != "free":
            self._runs()
        self.model.minimize(sum(self._count(self.limits.avoided_count)))
        cp_model, solver = load(CP_SAT), cp_sat(EngineLimits())
        status = solved(solver, self.model, budget.is_over)
        if status == cp_model.UNKNOWN and waits and budget.is_over():
            solver = cp_sat(EngineLimits())
            solver.parameters.stop_after_first_solution = True
            status = solved(solver, self.model, budget.is_past)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Seating(None, proved=status == cp_model.INFEASIBLE)
        home = [
            next(node for node, on in row.items() if solver.value(on))
            for row in self.on
        ]
        node_of_rank = np.repeat(np.array(home), self.block)
        avoided = self.limits.avoided_used(node_of_rank)
        return Seating(node_of_rank, avoided, status == cp_model.OPTIMAL)

    def _pins(self) -> None:
        """Pinned ranks are on their hosts."""
        for rank, hosts in self.limits.nodes_of_rank.items():
            row = self.on[rank // self.block]
            self.model.add_bool_or([row[n] for n in sorted(hosts) if n in row])

    def _count(self, count: Count) -> list[cp_model.IntVar]:
        """A box has at most so many of what is counted; whether it has each of them."""
        block, box = self.block, count.box.tolist()
        inside = [node for node in self.nodes if box[node] >= 0]
        occurs: dict[tuple[int, int], cp_model.IntVar] = {}
        for unit, on in enumerate(self.on):
            own = {*count.number[unit * block : (unit + 1) * block].tolist()}
            for node in inside:
                for one in own if count.by_rank else (int(count.number[node]),):
                    if (box[node], one) not in occurs:
                        occurs[box[node], one] = self.model.new_bool_var("")
                    self.model.add_implication(on[node], occurs[box[node], one])
        for number, most in enumerate(count.most.tolist()):
            there = [has for (domain, _), has in occurs.items() if domain == number]
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
            row = self.rows[self.topology.tier_index(tier)]
            for members in groups_of(self.job, axis_of(key)):
                for group in members[:, ::size].tolist():
                    self._evenly([self._domains(rank, row) for rank in group])

    def _domains(self, rank: int, row: IntArray) -> dict[int, cp_model.LinearExpr]:
        """Whether a rank lies in each domain of a tier."""
        there = self.on[rank // self.block]
        inside: dict[int, list[cp_model.IntVar]] = {}
        for node, choice in there.items():
            inside.setdefault(int(row[node]), []).append(choice)
        add = load(CP_SAT).LinearExpr.sum
        return {domain: add(choices) for domain, choices in inside.items()}

    def _evenly(self, parts: list[dict[int, cp_model.LinearExpr]]) -> None:
        """As many runs of parts as divide them, each in a domain of its own."""
        ways = {k: self.model.new_bool_var("") for k in divisors(len(parts))}
        self.model.add_exactly_one(ways.values())
        for (k, way), domain in product(ways.items(), parts[0]):
            length = len(parts) // k
            there = [part[domain] for part in parts]
            self.model.add(sum(there[::length]) <= 1).only_enforce_if(way)
            for at, (before, after) in enumerate(pairwise(there), 1):
                if at % length:
                    self.model.add(before == after).only_enforce_if(way)

    def _runs(self) -> None:
        """A host holds consecutive units: at most one run begins on it."""
        for nodes in self.nodes_of_host.values():
            there = [self._any([row[node] for node in nodes]) for row in self.on]
            begins = [there[0]]
            for before, after in pairwise(there):
                begin = self.model.new_bool_var("")
                self.model.add_bool_or([after.negated(), before, begin])
                begins.append(begin)
            self.model.add_at_most_one(begins)
            if len(nodes) > 1:
                self._counted(nodes, there)

    def _any(self, choices: list[cp_model.IntVar]) -> cp_model.IntVar:
        """Whether one of ``choices`` is taken, of which at most one can be."""
        if len(choices) == 1:
            return choices[0]
        literal = self.model.new_bool_var("")
        self.model.add(sum(choices) == literal)
        return literal

    def _counted(self, nodes: list[int], there: list[cp_model.IntVar]) -> None:
        """The GPUs of a host ascend with its units, in one of two orders.

        Each unit has a place: its GPU, or where the launcher counts that. Blocks fill
        their islands, and ascend by island.
        """
        domain = load(CP_SAT).Domain
        most = self.topology.num_gpus
        places = [self.model.new_int_var(0, most, "") for _ in there]
        by_island = self.model.new_bool_var("")
        if self.block > 1 or counts_by_island(self.topology):
            self.model.add(by_island == 1)
        for node in nodes:
            gpus = self.topology.gpus_of(np.array([node]))
            counted = self.topology.index_of_gpu[gpus]
            for order, values in ((by_island, gpus), (by_island.negated(), counted)):
                allowed = domain.from_values(values.tolist())
                for place, row in zip(places, self.on, strict=True):
                    inside = self.model.add_linear_expression_in_domain(place, allowed)
                    inside.only_enforce_if([row[node], order])
        for (one, here), (other, next_here) in pairwise(
            zip(places, there, strict=True)
        ):
            self.model.add(one < other).only_enforce_if([here, next_here])
