"""The search: method after method, until one proves the best placement optimal.

A method is a function of the problem, the incumbent and the budget: it offers
placements to the incumbent, and bounds where it has a proof. The incumbent starts from
the best baseline that obeys the job's rules, so a result is never worse than those and
never lost to a limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from placer.arrays import IntArray
from placer.errors import InfeasibleError
from placer.solve.bounds.certificate import (
    counted_parts,
    prove,
)
from placer.solve.construct.by_nodes.cut_at_nodes import cut_at_nodes
from placer.solve.construct.by_nodes.cut_within_sets import cut_within_sets
from placer.solve.construct.by_nodes.seated_hosts import seated_hosts
from placer.solve.construct.chains.chains import laid_chains, stitched
from placer.solve.construct.fills.fills import fullest_fills, nested, uneven
from placer.solve.construct.fills.levelled import levelled
from placer.solve.construct.fills.unequal import exchanged, fastest_first
from placer.solve.construct.stages.cut_alike import cut_alike
from placer.solve.construct.stages.spread_runs import spread_runs
from placer.solve.construct.units.in_parts import in_parts
from placer.solve.construct.units.whole_first import whole_first
from placer.solve.exact.enumeration import enumerated, few_enumerated
from placer.solve.problem.starts import starts
from placer.solve.run.incumbent import Candidate, Incumbent, Terms
from placer.solve.run.later import (
    Method,
    has_own_traffic,
    is_in_parts,
    is_of_hops,
    later,
)
from placer.solve.tree.base import base_tier
from placer.solve.tree.in_runs import fill_in_runs

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.solution import Progress, Solution


# Loaded when they run: most searches end before, or are of jobs of another kind.
cheapest_parts = later("construct.experts.cheapest_parts", is_of_hops)
apart = later("construct.traffic.apart", has_own_traffic)
boxed = later("construct.traffic.boxes", has_own_traffic, "boxed")
tiled = later("construct.traffic.tiled", has_own_traffic)
partitioned = later("construct.traffic.communicators", has_own_traffic, "partitioned")
annealed_step = later("annealing.annealed_step")
dealt_evenly = later("construct.units.dealt_evenly", is_in_parts)
exact = later("exact.exact")
annealed = later("improve.anneal", name="annealed")
stretches_annealed = later("improve.stretch_search", name="stretches_annealed")
again = later("improve.again")


def as_if_free(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Placements of a free launch whose domains hold their ranks in runs on nodes too.

    Nodes of several sizes may hold as many ranks each. Inside a domain of the base tier
    it does not matter which node has a rank.
    """
    machine, tier = problem.machine, base_tier(problem.machine)
    sizes = machine.gpus_of_node
    if problem.job.launcher == "free" or tier == 0 or (sizes == sizes[0]).all():
        return

    def in_runs(gpu_of_rank: IntArray) -> IntArray | None:
        of_rank = machine.domain_of_gpu[tier][gpu_of_rank]
        node = fill_in_runs(machine.domain_of_node[tier], sizes, of_rank)
        if node is None:
            return None
        return machine.gpus_on(node)

    free = problem.on(machine, replace(problem.job, launcher="free"))
    terms = Terms(in_runs, lambda _: (incumbent.bound, ""), exact=False)
    parts = 2 if problem.choices else 1  # local search follows where there are some
    found = _within_terms(free, budget.share(parts), None, terms)
    if found is not None:
        incumbent.include(found)
        incumbent.offer(f"{found.method}, in runs", found.placement.gpu_of_rank)


def padded(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Placements of a larger job whose ranks fill their nodes, without those added."""
    from placer.solve.construct.by_nodes.padded import padded_jobs, without_padding

    for job in padded_jobs(problem):
        larger = problem.on(problem.machine, job)
        found = _within_terms(larger, budget.share(2), None, None)
        if found is not None:
            incumbent.cut_short |= found.is_cut_short
            placed = without_padding(problem, job, found.placement.gpu_of_rank)
            told = f"{found.method}, for {job.parallelism.dp} replicas"
            incumbent.offer(told, placed)


def roles_partitioned(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """The graph of what roles send each other, divided down the tree.

    The bound on transfers takes long, and is sooner done where a good placement is
    known.
    """
    if problem.job.roles:
        partitioned(problem, incumbent, budget)


def partitioned_again(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """The same for any job, and where the best placement tells what roles send."""
    roles = problem.job.roles
    if not roles or not all(role.is_silent for role in roles):
        partitioned(problem, incumbent, budget)


def constructed(_: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """The end, where no more is asked for or constructions are near the bound."""
    if not incumbent.is_worth_searching:
        incumbent.is_enough = True


# Before the lower bound and all programs: a short limit leaves no time for those.
AT_ONCE: tuple[Method, ...] = (laid_chains, roles_partitioned)
METHODS: tuple[Method, ...] = (
    dealt_evenly,
    nested,
    levelled,
    whole_first,
    cut_at_nodes,
    cut_within_sets,
    seated_hosts,
    few_enumerated,
    in_parts,
    cheapest_parts,
    stitched,
    spread_runs,
    cut_alike,
    boxed,
    partitioned_again,
    tiled,
    apart,
    annealed_step,
    fastest_first,
    exchanged,
    constructed,
    enumerated,
    exact,
    annealed,
    exchanged,
    counted_parts,
    padded,
    as_if_free,
    stretches_annealed,
    again,
)
# For machines on which no one number of ranks a node fits.
METHODS_OF_UNEVEN_NODES: tuple[Method, ...] = (
    dealt_evenly,
    uneven,
    whole_first,
    cut_at_nodes,
    cut_within_sets,
    seated_hosts,
    in_parts,
    apart,
    fastest_first,
    exchanged,
)
# Left out where nothing worse than a value will do, or a placement is near enough
# to its bound that more is not searched for: these take the longest.
BEYOND_CONSTRUCTIONS: tuple[Method, ...] = (annealed_step,)
# And once there is a bound.
METHODS_OF_RUNS: tuple[Method, ...] = (
    enumerated,
    annealed_step,
    padded,
    as_if_free,
    stretches_annealed,
)


def solve(
    problem: Problem, budget: Budget, progress: Progress | None = None
) -> Solution:
    """The best placement found within the budget, with a lower bound.

    Parameters
    ----------
    progress : Progress, optional
        Told every better placement.

    Raises
    ------
    InfeasibleError
        If no placement satisfies the hard requirements.
    """
    if not is_in_parts(problem):
        return _solved(problem, budget, progress)
    from placer.solve.diagnose.even import in_parts, uneven

    if not (sizes := [*in_parts(problem)]):
        raise uneven(problem)
    for tried in sizes[:-1]:
        if found := _tried(tried, budget, progress):
            return found
    return _solved(sizes[-1], budget, progress)


def _solved(problem: Problem, budget: Budget, progress: Progress | None) -> Solution:
    """The best placement of a job whose parts have a size."""
    if not problem.job.rules:
        return plain_search(problem, budget, progress)
    if found := _tried(problem, budget, progress):
        return found
    from placer.solve.diagnose.conflict import broken_rules
    from placer.solve.rules.search import Tools

    raise broken_rules(problem, Tools(_within_terms, budget, progress))


def _tried(problem: Problem, budget: Budget, told: Progress | None) -> Solution | None:
    """The same, or None where nothing fits or is found in time."""
    if not problem.job.rules:
        return _within_terms(problem, budget, told, None)
    from placer.solve.diagnose.counts import broken_counts
    from placer.solve.rules.search import Tools, search_under_rules

    # Counts that nothing can meet need no search, which may seat ranks for seconds.
    if any(broken_counts(problem.machine, problem.job)):
        return None
    return search_under_rules(problem, Tools(_within_terms, budget, told))


def plain_search(
    problem: Problem,
    budget: Budget,
    progress: Progress | None = None,
    terms: Terms | None = None,
) -> Solution:
    """The same for a job without rules, perhaps as part of a search under rules."""
    machine, job = problem.machine, problem.job
    if job.world_size > machine.num_gpus:
        raise _infeasible(problem)
    incumbent = Incumbent(problem, budget, progress, terms)
    for name, gpu_of_rank in _known(problem, terms):
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
    if incumbent.gpu_of_rank is None:
        raise _infeasible(problem)
    return incumbent.solution()


def _infeasible(problem: Problem) -> InfeasibleError:
    """Why no placement of a job without rules is legal."""
    from placer.solve.diagnose.conflict import infeasible

    return infeasible(problem.machine, problem.job)


def _run(methods: Iterable[Method], problem: Problem, incumbent: Incumbent) -> None:
    """Run methods in turn, as long as there is something to gain and time."""
    for method in methods:
        if incumbent.ends():
            return
        if method in BEYOND_CONSTRUCTIONS and _is_enough(problem, incumbent):
            continue
        incumbent.budget.pulse.phase = method.__name__.replace("_", " ")
        method(problem, incumbent, incumbent.budget)


def _is_enough(problem: Problem, incumbent: Incumbent) -> bool:
    """Whether programs and walks of parts are not worth their time."""
    params = problem.params
    if params.asks_enough or not params.expert_searches:
        return True
    return incumbent.is_within(params.search_gap)


def _within_terms(
    problem: Problem, budget: Budget, progress: Progress | None, terms: Terms | None
) -> Solution | None:
    """What a search under rules finds on one machine; None where nothing fits."""
    try:
        return plain_search(problem, budget, progress, terms)
    except InfeasibleError:
        return None


def _known(problem: Problem, terms: Terms | None) -> Iterator[Candidate]:
    """Placements that need no search."""
    yield from starts(problem)
    yield from fullest_fills(problem)
    if terms is not None:
        yield from terms.known
