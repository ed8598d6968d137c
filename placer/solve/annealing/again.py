"""Local search again, from other seeds, as long as the effort says.

Every generation searches several times from the same elite pool. What they find is
offered in their order, so it does not matter how many of them run side by side. Where a
generation finds nothing, the next one works twice as long.
"""

from __future__ import annotations

from functools import partial

from placer.base.threads import in_order
from placer.solve.annealing.annealed import annealed
from placer.solve.annealing.race import ANNEALED
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent, Kept, MoveCounts

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
    if params.generation_gain and not incumbent.method.startswith(ANNEALED):
        return
    least, most = WORK
    doubled = 0
    for generation in range(params.generations):
        if incumbent.ends():
            return
        budget.pulse.phase = f"again, generation {generation + 1}"
        before = incumbent.value
        work = min(least * 2**doubled, most)
        first = problem.seed + 1 + generation * SEARCHES
        variants = [
            problem.searched_anew(seed, races=max(int(params.races * work), 1))
            for seed in range(first, first + SEARCHES)
        ]
        found = in_order(partial(_found, incumbent, budget), variants, budget.workers)
        for kept in found:
            incumbent.join(kept)
        gain = before - incumbent.value
        doubled = 0 if gain > 0 else doubled + 1
        is_idle = not any(kept.moves.tried for kept in found)
        if gain < params.generation_gain * before or (is_idle and work == most):
            return


def _found(incumbent: Incumbent, budget: Budget, variant: Problem) -> Kept:
    """What one search finds from what the incumbent holds."""
    kept = incumbent.kept._replace(moves=MoveCounts())
    own = Incumbent.holding(variant, budget, kept, incumbent.terms)
    if not own.ends():
        annealed(variant, own, own.budget)
    return own.kept
