"""What is asked: jobs that want nodes, and the nodes that are free.

Shapes: N nodes of the machine, R ranks of a job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import NamedTuple

import numpy as np

from placer.allocate.shared import Allowance, Limit
from placer.base.arrays import BoolArray, FloatArray
from placer.base.errors import InputError, Problem, refuse
from placer.documents import files
from placer.job.model import Job
from placer.solve.run.solution import Solution
from placer.solve.tree.domains import DEMAND
from placer.topology.model import Topology
from placer.topology.submachine import Submachine

# Nodes of one domain, and how often in proportion to the others; the largest first.
Demand = tuple[tuple[int, int], ...]

MOST_NODES = 1_000_000
MOST_OFTEN = 10_000  # in all
_ITEM = re.compile(r"([0-9]{1,9})(?:\s*=\s*([0-9]*\.?[0-9]{1,9}))?")
_HINT = "write nodes, or nodes=how often: 16=4,8=3,1"


def demand_of(given: Mapping[str, float] | str) -> Demand:
    """The demand of a mapping, a text such as ``16=4,8=3,1``, or ``@FILE``.

    A file has an item a line, such as the queue that ``squeue -h -t PD -o %D`` prints.
    An item without a number counts once; equal ones are added up.
    """
    counts: dict[int, Fraction] = {}
    problems = []
    for text, source, line, column in _items(given):
        item = _ITEM.fullmatch(text)
        nodes = int(item[1]) if item else 0
        often = Fraction(item[2] or 1) if item else Fraction(0)
        if not 1 <= nodes <= MOST_NODES or not often:
            message = f"expected nodes from 1 to {MOST_NODES:,}, got {text!r}"
            key = "" if source else "demand"
            problems.append(Problem(message, source, line, column, key, _HINT))
        counts[nodes] = counts.get(nodes, Fraction(0)) + often
    refuse(problems)
    if not counts:
        raise InputError("no job is wanted", key="demand", hint=_HINT)
    scale: Fraction | int = lcm(*(often.denominator for often in counts.values()))
    total = sum(counts.values()) * scale
    if total > MOST_OFTEN:  # so that what is counted stays a whole number of 64 bits
        scale *= Fraction(MOST_OFTEN, total)
    return tuple(
        (n, max(1, round(counts[n] * scale))) for n in sorted(counts, reverse=True)
    )


def _items(given: Mapping[str, float] | str) -> Iterator[tuple[str, str, int, int]]:
    """Each item, with the file, line and column it comes from."""
    if isinstance(given, Mapping):
        yield from ((f"{nodes}={often}", "", 0, 0) for nodes, often in given.items())
    elif given.startswith("@"):
        path = given[1:]
        for number, line in enumerate(files.read_text(path).split("\n"), 1):
            content = line.partition("#")[0]
            if text := content.strip():
                column = len(content) - len(content.lstrip()) + 1
                yield text, files.shown_name(path), number, column
    else:
        yield from ((item.strip(), "", 0, 0) for item in given.split(","))


class Running(NamedTuple):
    """Where a job runs now."""

    solution: Solution  # on the whole machine
    nodes: BoolArray  # (N,): all that it holds
    price: float  # what leaving them costs, in the unit of the objective


@dataclass(frozen=True, eq=False)
class Wanted:
    """A job that wants nodes."""

    name: str  # of this job among the others
    job: Job  # under all its rules
    weight: float = 1.0  # what a second of its step counts
    running: Running | None = None  # where it runs, if it does and may move


@dataclass(frozen=True, eq=False)
class Question:
    """Jobs, and the nodes they may have."""

    machine: Topology  # all nodes that can be used, whoever has them
    free: BoolArray  # (N,): those that the jobs may have
    jobs: tuple[Wanted, ...]
    apart: int | None = None  # tier no domain of which two jobs may share
    # How much longer a step may be for a more useful rest, as a share.
    tolerance: float = 0.0
    objective: str | None = None
    seed: int = 0
    limits: tuple[Limit, ...] = ()  # of budgets, which the jobs must keep together
    demand: Demand = DEMAND  # nodes of one domain that jobs to come want, and how often
    staying: BoolArray | None = None  # (N,): nodes of jobs that stay where they are

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
