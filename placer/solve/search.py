"""The search: method after method, until one proves the best placement optimal.

A method is a function of the problem, the incumbent and the budget: it gives
the incumbent placements, and bounds where it has a proof. The incumbent starts from the
best baseline that obeys the job's rules, so a result is never worse than those and
never lost to a limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from placer.solve.bounds.certificate import prove, prove_closer
from placer.solve.construct.enumeration import enumerated, few_enumerated
from placer.solve.construct.fills import (
    fastest_first,
    fullest_fills,
    nested,
    starts,
    uneven,
)
from placer.solve.construct.whole_groups import whole_groups
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent, Method, Terms, later
from placer.solve.run.solution import Progress, Solution

# Loaded when they run: most searches end before, or are of jobs of another kind.
apart = later("construct.roles_apart", "apart", lambda p: p.has_own_traffic)
tiled = later("construct.tiled", "tiled", lambda p: p.has_own_traffic)
walked_briefly = later(
    "annealing.annealed", "walked_briefly", lambda p: p.job.parallelism.ep > 1
)
annealed = later("annealing.annealed", "annealed")
dealt_evenly = later("construct.equal_parts", "dealt_evenly", lambda p: p.is_in_parts)
again = later("annealing.annealed", "again")


def end_if_enough(_: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """End where only constructions are wanted, or the best is near enough the bound."""
    if not incumbent.is_worth_searching:
        incumbent.is_enough = True


# Before the lower bound and all programs: a short limit leaves no time for those.
AT_ONCE: tuple[Method, ...] = (fastest_first, walked_briefly, whole_groups)
METHODS: tuple[Method, ...] = (
    dealt_evenly,
    nested,
    few_enumerated,
    tiled,
    apart,
    annealed,
    prove_closer,
    end_if_enough,
    enumerated,
    again,
)
# For machines on which no one number of ranks a node fits.
METHODS_OF_UNEVEN_NODES: tuple[Method, ...] = (
    dealt_evenly,
    fastest_first,
    uneven,
    whole_groups,
    apart,
)
# And once there is a bound.
METHODS_OF_RUNS: tuple[Method, ...] = (
    enumerated,
    annealed,
    prove_closer,
    again,
)


def solve(
    problem: Problem, budget: Budget, progress: Progress | None = None
) -> Solution:
    """The best placement found within the budget, with a lower bound.

    Parameters
    ----------
    progress : Progress, optional
        Gets every better placement.

    Raises
    ------
    InfeasibleError
        If no placement satisfies the hard requirements.
    """
    if not problem.is_in_parts:
        return _solved(problem, budget, progress)
    from placer.solve.rules.even import in_parts, no_equal_parts

    if not (sizes := [*in_parts(problem)]):
        raise no_equal_parts(problem)
    for tried in sizes[:-1]:
        if found := _tried(tried, budget, progress):
            return found
    return _solved(sizes[-1], budget, progress)


def _solved(problem: Problem, budget: Budget, progress: Progress | None) -> Solution:
    """The best placement of a job whose parts have a size."""
    if found := _tried(problem, budget, progress):
        return found
    from placer.solve.rules.conflict import broken_rules, infeasible

    if problem.job.rules:
        raise broken_rules(problem, _within_terms, budget)
    raise infeasible(problem.machine, problem.job)


def _tried(
    problem: Problem, budget: Budget, progress: Progress | None
) -> Solution | None:
    """The best placement, or None where nothing fits or is found in time."""
    if not problem.job.rules:
        return _within_terms(problem, budget, progress, None)
    from placer.solve.rules.counts import broken_counts
    from placer.solve.rules.search import search_under_rules

    # Counts that nothing can meet need no search, which may seat ranks for seconds.
    if any(broken_counts(problem.machine, problem.job)):
        return None
    return search_under_rules(problem, _within_terms, budget, progress)


def _within_terms(
    problem: Problem, budget: Budget, progress: Progress | None, terms: Terms | None
) -> Solution | None:
    """What a search finds, perhaps as part of one under rules; None if nothing fits."""
    machine, job = problem.machine, problem.job
    if job.world_size > machine.num_gpus:
        return None
    incumbent = Incumbent(problem, budget, progress, terms)
    for name, gpu_of_rank in chain(starts(problem), fullest_fills(problem)):
        incumbent.offer(name, gpu_of_rank)
    if problem.choices:
        _run(AT_ONCE, problem, incumbent)
        incumbent.budget.pulse.phase = "lower bound"
        prove(problem, incumbent)
        _run(METHODS, problem, incumbent)
    elif job.launcher != "free":
        _run(METHODS_OF_UNEVEN_NODES, problem, incumbent)
        if incumbent.gpu_of_rank is not None:
            prove(problem, incumbent)
        _run(METHODS_OF_RUNS, problem, incumbent)
    return None if incumbent.gpu_of_rank is None else incumbent.solution()


def _run(methods: Iterable[Method], problem: Problem, incumbent: Incumbent) -> None:
    """Run methods in turn, as long as there is something to gain and time."""
    for method in methods:
        if incumbent.ends():
            return
        incumbent.budget.pulse.phase = method.__name__.replace("_", " ")
        method(problem, incumbent, incumbent.budget)
