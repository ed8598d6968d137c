"""Some placement that keeps every rule, or the proof that there is none, by CP-SAT.

For small jobs: a variable for every unit on every node. A unit is a set of ranks that
share a node anyway; in a node-contiguous launch a rank, or a block of ranks when every
node is to hold one block. As few nodes to avoid are used as can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from ortools.sat.python import cp_model

from placer.solve.count.engine import Limits as EngineLimits
from placer.solve.count.engine import cp_sat
from placer.solve.problem.colocation import parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from placer.solve.problem.limits import Limits

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# Units times nodes of a program that is always solved, and of one that is solved when
# nothing else finds a placement; the work spent on it, in CP-SAT's deterministic
# seconds.
FEW_CHOICES = 6_000
MOST_CHOICES = 60_000
WORK_LIMIT = 20.0


@dataclass(frozen=True, eq=False)
class Seating:
    """The answer.

    Attributes
    ----------
    node_of_rank : ndarray, shape (R,), or None
        None when nothing was found.
    avoided : int
        Nodes to avoid that are used.
    proved : bool
        Whether there is no placement, or none with fewer nodes to avoid.
    """

    node_of_rank: IntArray | None
    avoided: int = 0
    proved: bool = False


def seat(
    limits: Limits,
    closed: BoolArray | None = None,
    block: int = 1,
    most_choices: int = FEW_CHOICES,
) -> Seating | None:
    """A placement that keeps every rule, None when the job is too large to tell.

    Parameters
    ----------
    limits : Limits
    closed : ndarray, shape (N,), optional
        Nodes that must not be used.
    block : int
        Consecutive ranks that each node in use must hold, in a node-contiguous launch;
        1 when they may hold any number.
    most_choices : int
        Units times nodes of a job that is not too large.
    """
    program = _Program(limits, block)
    if program.num_units * limits.topology.num_nodes > most_choices:
        return None
    return program.solve(closed)


class _Program:
    """Units on nodes."""

    def __init__(self, limits: Limits, block: int) -> None:
        self.limits, self.topology, self.job = limits, limits.topology, limits.job
        self.is_free = self.job.launcher == "free"
        self.label = parts_of(self.topology, self.job, block).label
        world = self.job.world_size
        own = self.label[0] if self.is_free else np.arange(world) // block
        self.unit_of_rank: IntArray = own
        self.size = np.bincount(own)
        self.block = 1 if self.is_free else block
        self.num_units = len(self.size)

    def solve(self, closed: BoolArray | None) -> Seating:
        """The placement, or that there is none."""
        self.model = cp_model.CpModel()
        nodes = range(self.topology.num_nodes)
        self.on = [
            [self.model.new_bool_var("") for _ in nodes] for _ in range(self.num_units)
        ]
        self.used = [self.model.new_bool_var("") for _ in nodes]
        for row in self.on:
            self.model.add_exactly_one(row)
        for node in np.flatnonzero(closed) if closed is not None else ():
            self.model.add(self.used[node] == 0)
        self._rooms()
        self._parts()
        self._pins()
        self._replicas()
        self._spares()
        if not self.is_free:
            self._runs()
        avoided = np.flatnonzero(self.limits.avoided).tolist()
        self.model.minimize(sum(self.used[node] for node in avoided))
        solver = cp_sat(EngineLimits(WORK_LIMIT))
        status = solver.solve(self.model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Seating(None, proved=status == cp_model.INFEASIBLE)
        home = np.array(
            [next(n for n in nodes if solver.boolean_value(row[n])) for row in self.on]
        )
        node_of_rank = home[self.unit_of_rank]
        count = self.limits.avoided_used(node_of_rank)
        return Seating(node_of_rank, count, status == cp_model.OPTIMAL)

    def _rooms(self) -> None:
        """A node has room for so many ranks, and is used when it has any."""
        for node, gpus in enumerate(self.topology.gpus_of_node.tolist()):
            held = [row[node] for row in self.on]
            if self.block > 1:
                self.model.add_at_most_one(held if gpus >= self.block else ())
                if gpus < self.block:
                    self.model.add(sum(held) == 0)
            else:
                sizes = self.size.tolist()
                self.model.add(cp_model.LinearExpr.weighted_sum(held, sizes) <= gpus)
            for choice in held:
                self.model.add_implication(choice, self.used[node])

    def _parts(self) -> None:
        """Ranks that are tied together at a tier lie in one domain of it."""
        for tier in range(len(self.label) - 1):
            row = self.topology.domain_of_node[tier].tolist()
            for units in self._units_by(self.label[tier]):
                if len(units) > 1:
                    self._share_domain(units, row)

    def _share_domain(self, units: list[int], row: list[int]) -> None:
        home = {domain: self.model.new_bool_var("") for domain in set(row)}
        self.model.add_exactly_one(home.values())
        for unit in units:
            for node, domain in enumerate(row):
                self.model.add_implication(self.on[unit][node], home[domain])

    def _pins(self) -> None:
        """Pinned ranks are on their hosts."""
        for rank, hosts in self.limits.hosts_of_rank.items():
            row = self.on[int(self.unit_of_rank[rank])]
            self.model.add_bool_or([row[node] for node in sorted(hosts)])

    def _replicas(self) -> None:
        """A domain has ranks of so many replicas."""
        replica = self.job.parallelism.coordinates["dp"]
        for tier, limit in self.limits.at_most:
            row = self.topology.domain_of_node[tier].tolist()
            there = [
                {domain: self.model.new_bool_var("") for domain in set(row)}
                for _ in range(self.job.parallelism.dp)
            ]
            for number, units in enumerate(self._units_by(replica)):
                for unit in units:
                    for node, domain in enumerate(row):
                        choice = self.on[unit][node]
                        self.model.add_implication(choice, there[number][domain])
            for domain in set(row):
                self.model.add(sum(where[domain] for where in there) <= limit)

    def _spares(self) -> None:
        """A domain in use keeps so many nodes free."""
        for tier, number in self.limits.spares:
            row = self.topology.domain_of_node[tier]
            for domain in range(int(row.max()) + 1):
                nodes = np.flatnonzero(row == domain).tolist()
                most = max(len(nodes) - number, 0)
                self.model.add(sum(self.used[node] for node in nodes) <= most)

    def _runs(self) -> None:
        """A node holds consecutive units: at most one run begins on it."""
        for node in range(self.topology.num_nodes):
            begins = [self.on[0][node]]
            for before, after in zip(self.on, self.on[1:], strict=False):
                begin = self.model.new_bool_var("")
                self.model.add_bool_or([after[node].negated(), before[node], begin])
                begins.append(begin)
            self.model.add_at_most_one(begins)

    def _units_by(self, label: IntArray) -> Iterable[list[int]]:
        """Units that have ranks with each label, in order of the label."""
        pairs = np.unique(np.stack((label, self.unit_of_rank)), axis=1)
        split = np.flatnonzero(np.diff(pairs[0])) + 1
        return [units.tolist() for units in np.split(pairs[1], split)]
