"""Every placement of a few small jobs beside each other: a proof on shared uplinks.

What a job costs there depends on where the others run, and its best placement alone
need not be the best beside them. So all placements of the first job are listed, beside
each of these all of the next, and so on. Nobody costs less beside others than alone:
what cannot beat the best that is known is left out. Nodes of others are told apart, the
rest is counted once where it is alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from placer.allocation.shared import meet
from placer.allocation.walk import Walk
from placer.placement.placement import Placement
from placer.solve.exact.enumeration import every_placement
from placer.solve.problem.compiled import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from placer.allocation.offers import Offer
    from placer.allocation.question import Question
    from placer.base.arrays import BoolArray

# Placements of one job that are listed, and of all that are priced, at the most.
LISTED = 2_000
PRICED = 10_000


@dataclass(eq=False)
class EveryPlacement(Walk):
    """The walk through all placements of all jobs."""

    def __post_init__(self) -> None:
        self._problems = [
            Problem.of(self.question.machine, wanted.job, self.question.objective)
            for wanted in self.question.jobs
        ]
        self.is_complete = _is_plain(self.question, self._problems)
        self._priced = 0

    def walked(self) -> EveryPlacement:
        """The walk at its end."""
        if self.is_complete:
            self._walk([], self.question.free, 0.0)
        return self

    def _walk(self, before: list[Offer], free: BoolArray, cost: float) -> None:
        """All ways to go on from these offers, whose values alone sum to ``cost``."""
        index = len(before)
        if index == len(self.alone):
            self._meet(before)
            return
        others = sum(
            self._weight(later) * self.alone[later].least
            for later in range(index + 1, len(self.alone))
        )
        for offer in self._placed(index, free):
            now_at_least = cost + self._weight(index) * offer.cost
            if now_at_least + others >= self._limit:
                return  # The next ones are no cheaper.
            left = free & ~self.question.taken(offer.nodes)
            self._walk([*before, offer], left, now_at_least)

    def _placed(self, index: int, free: BoolArray) -> Iterator[Offer]:
        """Every legal placement of a job on free nodes, the cheapest first."""
        problem, machine = self._problems[index], self.question.machine
        free = self.question.open_to(index, free)
        budget = self.offers.budget
        host_of_node = problem.machine.host_of_node
        marks = np.where(free, 0, 1 + np.arange(machine.num_nodes))[host_of_node]
        closed = ~free[host_of_node]
        every = every_placement(problem, budget, marks, LISTED, closed)
        self._priced += len(every.nodes_of_rank)
        over = self._priced > PRICED or budget.is_over()
        self.is_complete &= every.complete and not over
        if not self.is_complete:
            return
        placed = [
            Placement.on_nodes(problem.machine, nodes) for nodes in every.nodes_of_rank
        ]
        legal = [one for one in placed if problem.allows(one.gpu_of_rank)]
        values = [float(problem.goal.value(one.gpu_of_rank)) for one in legal]
        for place in np.argsort(values, kind="stable").tolist():
            placement, value = legal[place], values[place]
            nodes = np.zeros(machine.num_nodes, dtype=bool)
            nodes[machine.node_of_gpu[placement.gpu_of_rank]] = True
            solution = replace(
                self.alone[index].solution,
                placement=placement,
                value=value,
                method="enumeration",
            )
            yield replace(
                self.alone[index],
                job=problem.job,
                solution=solution,
                nodes=nodes,
                cost=value,
                least=0.0,
            )


def _is_plain(question: Question, problems: Sequence[Problem]) -> bool:
    """Whether jobs meet on uplinks, and nothing but nodes decides what they cost."""
    return (
        meet(question.machine)
        and not question.limits
        and all(
            wanted.running is None
            and problem.nodes_decide
            and problem.goal.name == "time"
            and not problem.job.rules
            and not problem.job.parallelism.auto_order
            for wanted, problem in zip(question.jobs, problems, strict=True)
        )
    )
