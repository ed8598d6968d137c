"""The best placement of a search so far, and what is proved about it."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.placement.placement import Placement
from placer.solve.problem.rules import obeys
from placer.solve.run.move_counts import MoveCounts
from placer.solve.run.solution import (
    EXACT,
    Progress,
    Solution,
    held_bound,
    improvement_of,
    is_reached,
)
from placer.solve.run.ties import TieBreak

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.terms import Terms

IntArray = npt.NDArray[np.int64]
Candidate = tuple[str, IntArray]


class Incumbent:
    """Keeps the best legal placement that methods offer, and the best bound.

    Parameters
    ----------
    problem : Problem
    budget : Budget
    tell : Progress, optional
        Told every better placement.
    terms : Terms, optional
        Of a search that is part of another one.

    Attributes
    ----------
    budget : Budget
        Of the methods: it ends when the placement is proved, too.
    gpu_of_rank : ndarray, shape (R,), or None
        None while no legal placement is known.
    value : float
        Its cost; infinite without one.
    bound : float
        The best lower bound, 0 without one.
    method : str
        What found the placement.
    elite : list of ndarray, each shape (R,)
        The best few placements, of different values, the best first.
    launch_bound : float
        A lower bound for every launcher and every rank order with the same groups; 0
        without one.
    cut_short : bool
        Whether the clock ended some method.
    moves : MoveCounts
        Of the local searches.
    terms : Terms or None
    """

    def __init__(
        self,
        problem: Problem,
        budget: Budget,
        tell: Progress | None = None,
        terms: Terms | None = None,
    ) -> None:
        self.gpu_of_rank: IntArray | None = None
        self.value, self.method, self.bound = inf, "", 0.0
        self.launch_bound = 0.0
        self.moves = MoveCounts()
        self.cut_short = False
        self.budget = budget.until(self._is_proved)
        self.terms = terms
        self._problem, self._own, self._tell = problem, budget, tell
        self._ties = TieBreak(problem)
        self._pool: list[tuple[float, IntArray]] = []
        self._argument = "none"

    @property
    def elite(self) -> list[IntArray]:
        """The best few placements."""
        return [gpu_of_rank for _, gpu_of_rank in self._pool]

    @property
    def is_whole(self) -> bool:
        """Whether the best of all placements offered here is the best there is."""
        return self.terms is None or self.terms.exact

    def offer(self, method: str, gpu_of_rank: IntArray) -> None:
        """Keep a placement if it is legal, and better than the best or preferred."""
        if self.gpu_of_rank is not None and np.array_equal(
            gpu_of_rank, self.gpu_of_rank
        ):
            return
        legal = self._legal(gpu_of_rank)
        if legal is None:
            return
        value = self._problem.goal.value(legal)
        self._pool_in(value, legal)
        improves = value < self.value * (1 - EXACT)
        if not improves and not self._ties.takes(
            value, legal, self.value, self.gpu_of_rank
        ):
            return
        self.gpu_of_rank, self.value, self.method = legal, value, method
        if improves:
            self._report()

    def offer_all(self, candidates: Iterable[Candidate]) -> None:
        """Offer (name, GPU of every rank) one by one, until the search is over."""
        for name, gpu_of_rank in candidates:
            if self.ends():
                return
            self.offer(name, gpu_of_rank)

    def prove(self, bound: float, argument: str) -> None:
        """Keep a lower bound if it is better than the one before."""
        if bound > self.bound:
            self.bound, self._argument = bound, argument
            if self.gpu_of_rank is not None:
                self._report()

    def ends(self) -> bool:
        """Whether there is a placement, and it is proved, or time or patience is up."""
        return self.gpu_of_rank is not None and self.budget.is_over()

    def solution(self) -> Solution:
        """The best placement as the result, with the reason why the search ended.

        There must be one.
        """
        return self._state(self._ended())

    def _ended(self) -> str:
        if self._is_proved():
            return "proved"
        if self._own.is_stopped:
            return "interrupted"
        if self._own.is_over() or self.cut_short:
            return "time-limit"
        return "searched"

    def _is_proved(self) -> bool:
        return self.value < inf and is_reached(self.value, self.bound)

    def _legal(self, gpu_of_rank: IntArray) -> IntArray | None:
        """The placement as it may be kept, None when it breaks a rule."""
        if self.terms is not None:
            return self.terms.mend(gpu_of_rank)
        problem = self._problem
        return gpu_of_rank if obeys(problem.machine, problem.job, gpu_of_rank) else None

    def _pool_in(self, value: float, gpu_of_rank: IntArray) -> None:
        """Put a placement into the elite pool if it belongs there."""
        if all(value != known for known, _ in self._pool):
            self._pool.append((value, gpu_of_rank))
            self._pool.sort(key=lambda entry: entry[0])
            del self._pool[self._problem.params.elite :]

    def _report(self) -> None:
        """Let the user know, and keep, what has been found so far."""
        if self._tell is not None:
            order = self._problem.job.parallelism.order
            self._tell(improvement_of(self._state("interrupted"), order))

    def _state(self, ended: str) -> Solution:
        if self.gpu_of_rank is None:
            raise ValueError("no placement was found")
        value = float(self.value)
        bound, argument = held_bound(value, float(self.bound), self._argument)
        return Solution(
            placement=Placement(self.gpu_of_rank),
            objective=self._problem.goal.name,
            value=value,
            lower_bound=bound,
            argument=argument,
            method=self.method,
            stop_reason=ended,
            wall_s=self._own.elapsed_s,
            deterministic=ended in ("proved", "searched"),
            launch_bound=self.launch_bound,
            moves=self.moves.as_dict(),
        )
