"""Local search again, from other seeds, for as long as was asked.

Every generation searches several times from the same elite pool. What they find is
offered in their order, so it does not matter how many of them run side by side. Where a
generation finds nothing, the next one works twice as long.
"""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from placer.solve.annealing.annealed_step import ANNEALED, annealed_step
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent, Kept, MoveCounts
from placer.solve.run.workers import in_order
from placer.workers.helpers import Helpers, NoHelpError

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem

# Processes are started, for jobs of so many ranks at most, once a generation takes
# longer than it takes to start them; and have answered before the time is over.
HELP_AFTER_S, HELPED_RANKS, ANSWER_S = 2.0, 131_072, 0.3
SEARCHES = 4  # of a generation
# Work of each relative to the first search: at least, and after generations that found
# nothing.
WORK = (0.25, 4.0)


def again(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Search again until the effort is made, or nothing more can be done.

    A generation that must be worth its time is begun only where local search found the
    best placement so far.
    """
    if incumbent.gpu_of_rank is None:
        return
    params = problem.params
    is_local = incumbent.method.startswith(ANNEALED)
    if params.generation_gain and not is_local:
        return
    with Helpers() as helpers:
        _generations(problem, incumbent, budget, helpers)


def _generations(
    problem: Problem, incumbent: Incumbent, budget: Budget, helpers: Helpers
) -> None:
    params = problem.params
    least, most = WORK
    doubled, beside = 0, _Beside(incumbent, budget, None)
    for generation in range(params.generations):
        if incumbent.ends():
            return
        budget.pulse.phase = f"again, generation {generation + 1}"
        begun, before = monotonic(), incumbent.value
        work = min(least * 2**doubled, most)
        first = generation * SEARCHES
        variants = [_variant(problem, first + i, work) for i in range(SEARCHES)]
        found = in_order(beside.search, variants, budget.workers)
        for kept in found:
            incumbent.join(kept)
        gain = before - incumbent.value
        doubled = 0 if gain > 0 else doubled + 1
        is_idle = not any(kept.moves.tried for kept in found)
        if gain < params.generation_gain * before or (is_idle and work == most):
            return
        if monotonic() - begun > HELP_AFTER_S and _may_be_helped(problem, incumbent):
            beside = beside._replace(helpers=helpers)


def _may_be_helped(problem: Problem, incumbent: Incumbent) -> bool:
    """Whether other processes can search: for no terms, and with copies of the job."""
    is_small = problem.job.world_size <= HELPED_RANKS
    return incumbent.budget.workers > 1 and incumbent.terms is None and is_small


def _variant(problem: Problem, number: int, work: float) -> Problem:
    """The problem for one search more, of so many times the work of the first."""
    params = problem.params
    return problem.searched_anew(
        problem.seed + number + 1,
        races=max(int(params.races * work), 1),
    )


class _Beside(NamedTuple):
    """Searches beside each other, from what the incumbent holds."""

    incumbent: Incumbent
    budget: Budget
    helpers: Helpers | None

    def search(self, variant: Problem) -> Kept:
        """What one of them finds: in a process of its own, or in this thread."""
        kept, budget = self.incumbent.kept._replace(moves=MoveCounts()), self.budget
        if self.helpers is not None:
            seconds = budget.seconds_left - ANSWER_S
            with suppress(NoHelpError):
                found = self.helpers.ask(
                    budget.is_over, searched, variant, kept, seconds
                )
                budget.pulse.placements += found.moves.tried
                return found
        own = Incumbent.holding(variant, budget, kept, self.incumbent.terms)
        return _searched(variant, own)


def searched(variant: Problem, kept: Kept, seconds: float) -> Kept:
    """What one search finds in so many seconds."""
    return _searched(variant, Incumbent.holding(variant, Budget(seconds), kept))


def _searched(variant: Problem, own: Incumbent) -> Kept:
    if not own.ends():
        annealed_step(variant, own, own.budget)
    return own.kept
