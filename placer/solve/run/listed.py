"""One search however the hosts are listed.

A search takes the hosts in the order of their names, and what it finds is told in the
order listed. Only baselines of the listed order may depend on it: they hold where they
are better than all that was found.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from placer.base.arrays import IntArray
from placer.job.orders import in_order
from placer.placement.placement import Placement
from placer.solve.problem.starts import starts
from placer.solve.problem.submachine import Submachine
from placer.solve.run.solution import EXACT, Improvement, Progress

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.previous import PreviousPlan
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.solution import Solution


class _Start(NamedTuple):
    value: float
    method: str
    gpu_of_rank: IntArray


class Listed:
    """A problem as its hosts are listed.

    Attributes
    ----------
    by_name : Problem
        The same with its hosts by name; the problem itself where it has them so.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = self.by_name = problem
        self._part = Submachine.by_name(problem.machine)
        self._starts: dict[tuple[str, ...], list[_Start]] = {}
        if not self.is_by_name:
            ordered = problem.on(self._part.topology, problem.job)
            self.by_name = replace(ordered, by_name=True)

    @property
    def is_by_name(self) -> bool:
        """Whether the hosts are listed by name."""
        return self._part.topology is self.problem.machine

    def earlier(self, previous: PreviousPlan) -> PreviousPlan:
        """A plan made before on the machine as `by_name` has it."""
        part = Submachine.by_name(previous.topology)
        return previous._replace(topology=part.topology)

    def sorted(self, solution: Solution) -> Solution:
        """A solution of the problem as one of `by_name`."""
        if self.is_by_name:
            return solution
        found = self._part.inside(solution.placement.gpu_of_rank)
        if found is None:
            raise ValueError("a rank is on no node of the machine")
        return replace(solution, placement=Placement(found))

    def listed(self, solution: Solution, job: Job) -> Solution:
        """A solution of `by_name` as one of the problem, for the job in its order.

        A baseline of the listed order instead, where that costs less.
        """
        if self.is_by_name:
            return solution
        found = self._part.gpu_in_whole(solution.placement.gpu_of_rank)
        solution = replace(solution, placement=Placement(found))
        avoided = self.problem.avoided(found)
        for start in self._starts_of(job):
            if start.value >= solution.value * (1 - EXACT):
                break
            if self.problem.avoided(start.gpu_of_rank) <= avoided:
                placement = Placement(start.gpu_of_rank)
                return solution.instead(placement, start.value, start.method)
        return solution

    def told(self, tell: Progress) -> Progress:
        """Progress that is told in the order listed."""

        def listed(incumbent: Improvement) -> None:
            solution = incumbent.solution
            if solution is not None:
                job = in_order(self.problem.job, incumbent.order)
                solution = self.listed(solution, job)
                incumbent = replace(
                    incumbent,
                    phase=solution.method,
                    value=solution.value,
                    lower_bound=solution.lower_bound,
                    solution=solution,
                )
            tell(incumbent)

        return tell if self.is_by_name else listed

    def _starts_of(self, job: Job) -> list[_Start]:
        """The legal baselines of the listed order, the cheapest first."""
        order = job.parallelism.order
        if order not in self._starts:
            problem = self.problem.on(self.problem.machine, job)
            found = [
                _Start(float(problem.goal.value(gpus)), name, gpus)
                for name, gpus in starts(problem)
                if problem.allows(gpus)
            ]
            self._starts[order] = sorted(found, key=lambda start: start.value)
        return self._starts[order]
