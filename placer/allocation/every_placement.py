"""Every placement of a few small jobs beside each other: a proof on shared uplinks.

What a job costs there depends on where the others run, and its best placement alone
need not be the best beside them. So all placements of the first job are listed, beside
each of these all of the next, and so on. Nobody costs less beside others than alone:
what cannot beat the best that is known is left out. Nodes of others are told apart, the
rest is counted once where it is alike.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from placer.allocation.shared import meet
from placer.allocation.together import Together, together
from placer.placement.placement import Placement
from placer.solve.exact.enumeration import every_placement
from placer.solve.problem.compiled import Problem
from placer.solve.run.solution import EXACT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from placer.allocation.offers import Offer, Offers
    from placer.allocation.question import BoolArray, Question
    from placer.allocation.shared import Uses

# Placements of one job that are listed, and of all that are priced, at the most.
LISTED = 2_000
PRICED = 10_000


class EveryPlacement:
    """The walk through all placements of all jobs.

    Attributes
    ----------
    best : Together or None
        The best that is known.
    is_complete : bool
        Whether all placements were walked through.
    """

    def __init__(
        self,
        offers: Offers,
        uses: Uses,
        alone: Sequence[Offer],
        best: Together | None,
    ) -> None:
        self.best = best
        self._question, self._budget = offers.question, offers.budget
        self._uses, self._alone = uses, alone
        self._problems = [
            Problem.of(self._question.machine, wanted.job, self._question.objective)
            for wanted in self._question.jobs
        ]
        self.is_complete = _is_plain(self._question, self._problems)
        self._priced = 0

    def walked(self) -> EveryPlacement:
        """The walk at its end."""
        if self.is_complete:
            self._walk([], self._question.free, 0.0)
        return self

    def _walk(self, before: list[Offer], free: BoolArray, cost: float) -> None:
        """All ways to go on from these offers, whose values alone sum to ``cost``."""
        index = len(before)
        if index == len(self._alone):
            now = together(self._question, self._uses, before)
            if now.cost < self._limit:
                self.best = now
            return
        weights = [wanted.weight for wanted in self._question.jobs]
        later = zip(weights[index + 1 :], self._alone[index + 1 :], strict=True)
        others = sum(weight * alone.least for weight, alone in later)
        for offer in self._offers(index, free):
            now_at_least = cost + weights[index] * offer.cost
            if now_at_least + others >= self._limit:
                return  # The next ones are no cheaper.
            left = free & ~self._question.taken(offer.nodes)
            self._walk([*before, offer], left, now_at_least)

    @property
    def _limit(self) -> float:
        return inf if self.best is None else self.best.cost * (1 - EXACT)

    def _offers(self, index: int, free: BoolArray) -> Iterator[Offer]:
        """Every legal placement of a job on free nodes, the cheapest first."""
        problem, machine = self._problems[index], self._question.machine
        marks = np.where(free, 0, 1 + np.arange(machine.num_nodes))
        every = every_placement(problem, self._budget, marks, LISTED, ~free)
        self._priced += len(every.nodes_of_rank)
        over = self._priced > PRICED or self._budget.is_over()
        self.is_complete &= every.complete and not over
        if not self.is_complete:
            return
        placed = [Placement.on_nodes(machine, nodes) for nodes in every.nodes_of_rank]
        legal = [one for one in placed if problem.allows(one.gpu_of_rank)]
        values = [float(problem.goal.value(one.gpu_of_rank)) for one in legal]
        for place in np.argsort(values, kind="stable").tolist():
            placement, value = legal[place], values[place]
            nodes = np.zeros(machine.num_nodes, dtype=bool)
            nodes[machine.node_of_gpu[placement.gpu_of_rank]] = True
            solution = replace(
                self._alone[index].solution,
                placement=placement,
                value=value,
                method="enumeration",
            )
            yield replace(
                self._alone[index],
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
