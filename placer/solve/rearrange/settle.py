"""The result settled: of equally good placements, the one to be preferred."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.placement.baselines import BASELINES
from placer.placement.placement import Placement
from placer.solve.construct.fills import nested_fills
from placer.solve.problem.rules import avoided
from placer.solve.rearrange.align import aligned
from placer.solve.rearrange.repair import repaired
from placer.solve.run.solution import EXACT, held_bound
from placer.solve.run.ties import TieBreak

if TYPE_CHECKING:
    from placer.placement.previous import Previous
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.solution import Solution

IntArray = npt.NDArray[np.int64]


def settled(
    problem: Problem, solution: Solution, previous: Previous | None
) -> Solution:
    """The solution, or one no worse that is to be preferred.

    A baseline that is optimal may scatter ranks over more domains than it need, so
    nestings are tried beside it. Beside a previous plan its own placement is tried,
    mended where nodes were lost, and exchanges of equal domains and replicas. Each is
    checked and priced. The work is bounded and no clock is looked at, so the result
    does not depend on one.
    """
    machine = problem.machine
    settling = _Settling(problem, solution, previous)
    for gpu_of_rank in settling.tidier():
        settling.offer("tidied", gpu_of_rank)
    if previous is None or settling.stays:
        return settling.solution
    mended = repaired(machine, previous)
    if mended is not None:
        settling.offer("previous plan", mended)
    found = settling.solution.placement.gpu_of_rank
    for gpu_of_rank in aligned(machine, problem.job, found, previous):
        if settling.stays:
            break
        settling.offer("kept in place", gpu_of_rank)
    return settling.solution


class _Settling:
    """The preferred solution so far."""

    def __init__(
        self, problem: Problem, solution: Solution, previous: Previous | None
    ) -> None:
        self.solution = solution
        self._problem, self._previous = problem, previous

    @cached_property
    def _ties(self) -> TieBreak:
        return TieBreak(self._problem, self._previous)

    @property
    def stays(self) -> bool:
        """Whether every rank is where it was, so far as its old seat is there."""
        if self._previous is None:
            return True
        seats = int(np.count_nonzero(self._previous.gpu_of_rank >= 0))
        return self._previous.kept(self.solution.placement.gpu_of_rank) == seats

    def tidier(self) -> Iterator[IntArray]:
        """Nestings, where a baseline was optimal before any was tried."""
        if (
            self.solution.method not in BASELINES
            or self.solution.stop_reason != "proved"
            or self._problem.job.world_size > self._problem.params.tidy_ranks
        ):
            return
        if self._problem.choices:
            filled, most = nested_fills(self._problem), self._problem.params.tidy_fills
            yield from (gpu_of_rank for _, gpu_of_rank in islice(filled, most))

    def offer(self, how: str, gpu_of_rank: IntArray) -> None:
        """Take a placement if it is legal, no worse and to be preferred."""
        old = self.solution
        if not self._is_allowed(gpu_of_rank):
            return
        value = float(self._problem.goal.value(gpu_of_rank))
        if value >= old.value * (1 - EXACT) and not self._ties.takes(
            value, gpu_of_rank, old.value, old.placement.gpu_of_rank
        ):
            return
        bound, argument = held_bound(value, old.lower_bound, old.argument)
        self.solution = replace(
            old,
            placement=Placement(gpu_of_rank),
            value=value,
            lower_bound=bound,
            argument=argument,
            method=f"{old.method}, {how}",
            stop_reason="proved" if bound == value else old.stop_reason,
        )

    def _is_allowed(self, gpu_of_rank: IntArray) -> bool:
        """Whether it breaks no rule and uses no more of the hosts to avoid."""
        topology, job = self._problem.machine, self._problem.job
        before = self.solution.placement.gpu_of_rank
        if avoided(topology, job, gpu_of_rank) > avoided(topology, job, before):
            return False
        return self._problem.allows(gpu_of_rank)
