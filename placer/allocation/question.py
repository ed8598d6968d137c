"""What is asked: jobs that want nodes, and the nodes that are free.

Shapes: N nodes of the machine, R ranks of a job.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import BoolArray
from placer.solve.problem.submachine import Submachine
from placer.solve.run.rest import DEMAND

if TYPE_CHECKING:
    from placer.allocation.budgets import Allowance, Limit
    from placer.allocation.demand import Demand
    from placer.base.arrays import FloatArray
    from placer.job.model import Job
    from placer.solve.run.solution import Solution
    from placer.topology.model import Topology


class Running(NamedTuple):
    """Where a job runs now.

    Attributes
    ----------
    solution : Solution
        On the whole machine.
    nodes : ndarray of bool, shape (N,)
        All that it holds.
    price : float
        What leaving them costs, in the unit of the objective.
    """

    solution: Solution
    nodes: BoolArray
    price: float


@dataclass(frozen=True, eq=False)
class Wanted:
    """A job that wants nodes.

    Attributes
    ----------
    name : str
        Of this job among the others.
    job : Job
        Under all its rules.
    weight : float
        What a second of its step counts.
    running : Running or None
        Where it runs, if it does and may move.
    """

    name: str
    job: Job
    weight: float = 1.0
    running: Running | None = None


@dataclass(frozen=True, eq=False)
class Question:
    """Jobs, and the nodes they may have.

    Attributes
    ----------
    machine : Topology
        All nodes that can be used, whoever has them.
    free : ndarray of bool, shape (N,)
        Those that the jobs may have.
    jobs : tuple of Wanted
    apart : int or None
        Tier no domain of which two jobs may share.
    tolerance : float
        How much longer a step may be for a more useful rest, as a share.
    objective : str or None
    seed : int
    limits : tuple of Limit
        Of budgets, which the jobs must keep together.
    demand : tuple of (int, int)
        Nodes of one domain that jobs to come want, and how often.
    staying : ndarray of bool, shape (N,), or None
        Nodes of jobs that stay where they are.
    """

    machine: Topology
    free: BoolArray
    jobs: tuple[Wanted, ...]
    apart: int | None = None
    tolerance: float = 0.0
    objective: str | None = None
    seed: int = 0
    limits: tuple[Limit, ...] = ()
    demand: Demand = DEMAND
    staying: BoolArray | None = None

    @property
    def is_demand_known(self) -> bool:
        """Whether it was said what jobs to come want."""
        return self.demand != DEMAND

    @property
    def asks_for_rest(self) -> bool:
        """Whether it was said that the rest counts more than fewer leaves."""
        return self.is_demand_known or self.tolerance > 0

    @property
    def allowance(self) -> Allowance:
        """What all jobs together may use of the limits."""
        return tuple(limit.most for limit in self.limits)

    @cached_property
    def pinned(self) -> list[BoolArray]:
        """Nodes that the pins of each job name, which no other job may have."""
        names = np.array(self.machine.node_names)
        return [
            np.isin(names, [host for pin in wanted.job.rules.pin for host in pin.hosts])
            for wanted in self.jobs
        ]

    def open_to(self, index: int, nodes: BoolArray) -> BoolArray:
        """Those of some nodes that a job may have; shape (N,)."""
        others = [own for i, own in enumerate(self.pinned) if i != index]
        others += [self.beside_staying]
        found: BoolArray = nodes & ~np.any(others, axis=0)
        return found

    @cached_property
    def beside_staying(self) -> BoolArray:
        """What jobs that stay have, or have to themselves; shape (N,)."""
        if self.staying is None:
            return np.zeros(self.machine.num_nodes, dtype=bool)
        return self.taken(self.staying)

    def taken(self, nodes: BoolArray) -> BoolArray:
        """What nobody else may have once a job has ``nodes``; shape (N,)."""
        if self.apart is None:
            return nodes
        row = self.machine.domain_of_node[self.apart]
        return np.isin(row, row[nodes])

    def part(
        self, nodes: BoolArray, share: tuple[FloatArray, ...] | None = None
    ) -> Submachine[Topology]:
        """Some nodes as a machine, with a share of each uplink of the whole."""
        machine = self.machine
        if share is not None:
            machine = replace(machine, uplink_share=share)
        return Submachine.of(machine, nodes)
