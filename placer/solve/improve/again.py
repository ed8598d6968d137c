"""Local search again, from other seeds, for as long as was asked.

Every generation searches several times from the same elite pool: hotter, colder, with
units by themselves that a search before kept whole, and as before. What they find is
offered in their order, so it does not matter how many of them run side by side. Where a
generation finds nothing, the next one works twice as long.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from placer.solve.improve.anneal import ANNEALED, annealed
from placer.solve.improve.flow_search import REBALANCED, rebalanced
from placer.solve.run.workers import in_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

# How the searches of a generation differ from the first one.
KINDS: tuple[Mapping[str, Any], ...] = (
    {"anneal_start_heat": (0.1, 1.0)},
    {"anneal_start_heat": (0.01, 0.1)},
    {"keep_whole": False},
    {},
)


def again(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Search again until the effort is made, or nothing more can be done.

    A generation that must be worth its time is begun only where local search found the
    best placement so far.
    """
    params = problem.params
    is_local = incumbent.method.startswith((ANNEALED, REBALANCED))
    if params.generation_gain and not is_local:
        return
    doubled = 0
    for generation in range(params.generations):
        if incumbent.ends():
            return
        before = incumbent.value
        work = min(params.generation_work[0] * 2**doubled, params.generation_work[1])
        variants = [
            _variant(problem, generation * len(KINDS) + i, work)
            for i in range(len(KINDS))
        ]
        search = partial(_searched, incumbent, budget)
        found = in_order(search, variants, budget.workers)
        for own in found:
            incumbent.join(own)
        gain = before - incumbent.value
        doubled = 0 if gain > 0 else doubled + 1
        is_idle = not any(own.moves.tried for own in found)
        if gain < params.generation_gain * before:
            return
        if is_idle and work == params.generation_work[1]:
            return


def _variant(problem: Problem, number: int, work: float) -> Problem:
    """The problem for one search more, of so many times the work of the first."""
    params, ranks = problem.params, problem.job.world_size
    fewest = params.generation_scores
    return problem.searched_anew(
        problem.seed + number + 1,
        anneal_work=params.anneal_work * work,
        anneal_work_of_pair=params.anneal_work_of_pair * work,
        rebalance_work=params.rebalance_work * work,
        exchange_ranks=ranks,
        exchange_scores=max(int(params.exchange_scores * work), fewest),
        exchange_ranks_priced=max(
            int(params.exchange_ranks_priced * work), fewest * ranks
        ),
        **KINDS[number % len(KINDS)],
    )


def _searched(incumbent: Incumbent, budget: Budget, variant: Problem) -> Incumbent:
    """What one search finds, from what the incumbent holds."""
    own = incumbent.fork(variant)
    for method in (rebalanced, annealed):
        if not own.ends():
            method(variant, own, budget)
    return own
