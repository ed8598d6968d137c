"""The best placement of a search so far, what is proved about it, and when to end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.placement.placement import Placement
from placer.solve.polish.polish import Known
from placer.solve.rules import obeys
from placer.solve.solution import (
    EXACT,
    Progress,
    Solution,
    held_bound,
    incumbent_of,
    is_reached,
)
from placer.solve.ties import TieBreak

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.objective import Objective
    from placer.solve.terms import Terms
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]
Candidate = tuple[str, IntArray]


class Best:
    """Keeps the best legal placement that methods offer, and the best bound.

    Attributes
    ----------
    gpu_of_rank : ndarray, shape (R,), or None
        None while no legal placement is known.
    value : float
        Its cost; infinite without one.
    method : str
        What found it.
    known : Known
        The best few placements, to start from.
    launch_bound : float
        A lower bound for every launcher and every rank order with the same groups; 0
        without one.
    cut_short : bool
        Whether the clock ended some method.
    is_stopped : callable
        Whether somebody has asked for the end.
    """

    def __init__(
        self,
        topology: Topology,
        job: Job,
        goal: Objective,
        time_limit: float,
        progress: Progress | None,
        stop: Callable[[], bool],
        terms: Terms | None,
    ) -> None:
        self.gpu_of_rank: IntArray | None = None
        self.value, self.method = inf, ""
        self.known = Known()
        self.launch_bound = 0.0
        self.cut_short = False
        self._topology, self._job, self._goal, self._terms = topology, job, goal, terms
        self._ties = TieBreak(topology, goal)
        self._bound, self._argument = 0.0, "none"
        self._start, self._time_limit = monotonic(), time_limit
        self._progress, self.is_stopped = progress, stop
        self._stop_reason = ""

    def offer(self, method: str, gpu_of_rank: IntArray) -> None:
        """Keep a placement if it is legal, and better than the best or preferred."""
        if self.gpu_of_rank is not None and np.array_equal(
            gpu_of_rank, self.gpu_of_rank
        ):
            return
        legal = self._legal(gpu_of_rank)
        if legal is None:
            return
        value = self._goal.value(legal)
        self.known.add(value, legal)
        improves = value < self.value * (1 - EXACT)
        if not improves and not self._ties.takes(
            value, legal, self.value, self.gpu_of_rank
        ):
            return
        self.gpu_of_rank, self.value, self.method = legal, value, method
        if improves:
            self._tell(legal)

    def offer_all(self, candidates: Iterable[Candidate]) -> None:
        """Offer (name, GPU of every rank) one by one, until the search is over."""
        for name, gpu_of_rank in candidates:
            if self.ends():
                return
            self.offer(name, gpu_of_rank)

    def prove(self, bound: float, argument: str) -> None:
        """Keep a lower bound if it is better than the one before."""
        if bound > self._bound:
            self._bound, self._argument = bound, argument
            if self.gpu_of_rank is not None:
                self._tell(self.gpu_of_rank)

    def ends(self) -> bool:
        """Whether there is a placement, and it is proved, or time or patience is up."""
        return self.gpu_of_rank is not None and self.is_over()

    def is_over(self) -> bool:
        """Whether the search is to end even without a placement, and why: kept."""
        if self.value < inf and is_reached(self.value, self._bound):
            self._stop_reason = "proved"
        elif self.is_stopped():
            self._stop_reason = "interrupted"
        elif monotonic() - self._start > self._time_limit:
            self._stop_reason = "time-limit"
        return bool(self._stop_reason)

    def seconds_left(self) -> float:
        """Seconds until the clock ends the search, s; negative when it has."""
        return self._time_limit - (monotonic() - self._start)

    @property
    def bound(self) -> float:
        """The best lower bound so far, 0 without one."""
        return self._bound

    def solution(self, gpu_of_rank: IntArray) -> Solution:
        """The best placement as the result, with the reason why the search ended."""
        self.is_over()
        ended = self._stop_reason or ("time-limit" if self.cut_short else "searched")
        return self._state(gpu_of_rank, ended)

    def _legal(self, gpu_of_rank: IntArray) -> IntArray | None:
        """The placement as it may be kept, None when it breaks a rule."""
        if self._terms is not None:
            return self._terms.mend(gpu_of_rank)
        return gpu_of_rank if obeys(self._topology, self._job, gpu_of_rank) else None

    def _tell(self, gpu_of_rank: IntArray) -> None:
        """Let the user know, and keep, what has been found so far."""
        if self._progress is not None:
            solution = self._state(gpu_of_rank, "interrupted")
            self._progress(incumbent_of(solution, self._job.parallelism.order))

    def _state(self, gpu_of_rank: IntArray, ended: str) -> Solution:
        value = float(self.value)
        bound, argument = held_bound(value, float(self._bound), self._argument)
        return Solution(
            placement=Placement(gpu_of_rank),
            objective=self._goal.name,
            value=value,
            lower_bound=bound,
            argument=argument,
            method=self.method,
            stop_reason=ended,
            wall_s=monotonic() - self._start,
            deterministic=ended in ("proved", "searched"),
            launch_bound=self.launch_bound,
        )
