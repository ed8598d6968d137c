"""Every search: on the hosts by name, in each rank order that a job leaves open."""

from __future__ import annotations

from dataclasses import replace
from math import gcd, inf
from threading import Lock
from typing import NamedTuple

from placer.base.arrays import IntArray
from placer.base.errors import InfeasibleError
from placer.base.rounding import EXACT
from placer.base.threads import in_order as side_by_side
from placer.job.even import axis_of, is_even, part_key
from placer.job.model import Job
from placer.job.orders import framework_orders, in_order
from placer.placement.parts import ranks_a_domain
from placer.placement.placement import Placement
from placer.placement.previous import PreviousPlan
from placer.solve.bounds.certificate import lower_bound
from placer.solve.construct.fills import starts
from placer.solve.problem.colocation import groups_of
from placer.solve.problem.compiled import Problem
from placer.solve.rearrange.settle import settled
from placer.solve.run.budget import Budget
from placer.solve.run.solution import (
    Improvement,
    Progress,
    Solution,
    checked_bound,
    is_reached,
)
from placer.solve.search import solve
from placer.topology.submachine import Submachine


def solve_orders(
    problem: Problem,
    budget: Budget,
    progress: Progress | None = None,
    previous: PreviousPlan | None = None,
) -> tuple[Problem, Solution]:
    """The problem in the order chosen for its job, and the best placement found.

    A job that leaves its order open is searched in every order that frameworks offer,
    each with its share of the time, the first alone and the others side by side; of
    equally good ones the first holds. The bound is one of all orders. Of equally good
    placements the one is taken that leaves the most ranks where ``previous`` has them.
    The order in which the hosts are listed does not matter, unless a baseline of it is
    better than all that is found. Errors are those of `placer.solve.search.solve`.
    """
    listed = Listed(problem)
    if progress is not None:
        progress = listed.progress(progress)
    if previous is not None:
        previous = listed.earlier(previous)
    chosen, best = _solved(listed.by_name, budget, progress, previous)
    best = listed.listed(best, chosen.job)
    chosen = problem.on(problem.machine, chosen.job)
    return chosen, replace(best, wall_s=budget.elapsed_s)


class _Start(NamedTuple):
    value: float
    method: str
    gpu_of_rank: IntArray


class Listed:
    """A problem as its hosts are listed.

    A search takes the hosts in the order of their names, and what it finds is
    reported in the order listed. Only baselines of the listed order may depend on it:
    they hold where they are better than all that was found.

    ``by_name``: the same with its hosts by name; the problem itself where it has them
    so.
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

    def progress(self, tell: Progress) -> Progress:
        """Progress that gets placements in the order listed."""

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


def _solved(
    problem: Problem,
    budget: Budget,
    progress: Progress | None,
    previous: PreviousPlan | None,
) -> tuple[Problem, Solution]:
    """The best placement of a problem with its hosts by name."""
    machine = problem.machine
    orders = open_orders(problem.job)
    if previous is not None:
        # So that the order stays when no other is better.
        orders.sort(key=lambda one: order_name(one) != previous.order)
        # A plan of another job is refused before the search, not after it.
        previous.seats(orders[0])
    shown = _better(progress) if progress and len(orders) > 1 else progress
    first, *others = [problem.on(machine, job) for job in orders]
    found = [_attempt(first, budget.share(len(orders)), shown)]
    alone = found[0]
    if others and not (
        isinstance(alone, Solution)
        and is_reached(alone.value, launch_bound(first, alone, budget))
    ):
        turns = -(-len(others) // budget.workers)
        share = budget.share(max(1, turns))
        found += side_by_side(
            lambda one: _attempt(one, share.restarted(), shown),
            others,
            budget.workers,
        )
    tried = [
        (ordered, solution)
        for ordered, solution in zip([first, *others], found, strict=False)
        if isinstance(solution, Solution)
    ]
    if not tried:
        errors = (error for error in found if isinstance(error, InfeasibleError))
        raise min(errors, key=lambda error: error.is_proved)
    chosen, best = min(tried, key=lambda entry: entry[1].value)
    if len(orders) > 1:
        left_out = len(orders) - len(tried)
        best = _of_all(chosen, best, [s for _, s in tried], left_out, budget)
    seats = previous.seats(chosen.job) if previous is not None else None
    return chosen, settled(with_parts_of(chosen, best.placement), best, seats)


def with_parts_of(problem: Problem, placement: Placement) -> Problem:
    """The problem with equal parts no smaller than those of a placement."""
    machine, job = problem.machine, problem.job
    tied: dict[str, str] = {}
    for key, tier in job.require.items():
        if is_even(key):
            axis, size = axis_of(key), 0
            domain = machine.domain_of_gpu[machine.tier_index(tier)]
            for members in groups_of(job, axis):
                there = domain[placement.gpu_of_rank[members]]
                size = gcd(size, ranks_a_domain(there))
            tied[part_key(axis, size)] = tier
    if not tied:
        return problem
    return problem.on(machine, replace(job, require={**job.require, **tied}))


def _attempt(
    problem: Problem, budget: Budget, progress: Progress | None
) -> Solution | InfeasibleError:
    """What is found in one order, or why nothing is."""
    try:
        return solve(problem, budget, progress)
    except InfeasibleError as error:
        return error


def open_orders(job: Job) -> list[Job]:
    """The job in each order it may have: its own, unless it leaves it open."""
    axes = job.parallelism
    if not axes.auto_order:
        return [job]
    # A free launch can put the ranks of one order where another has them.
    most = 1 if job.launcher == "free" else None
    return [in_order(job, order) for order in framework_orders(axes)[:most]]


def order_name(job: Job) -> str:
    """The axes of its rank order, the innermost first, as people write them."""
    return "-".join(job.parallelism.order)


def launch_bound(problem: Problem, solution: Solution, budget: Budget) -> float:
    """A lower bound for every launcher and every order with the same groups.

    Groups are sets of coordinates, so the cost of a placement of coordinates does not
    depend on how they are numbered. The order of ranks only limits what a
    node-contiguous launch can do, and a bound of free launches holds for all: that of
    the search, if it had one. When the budget ends it is the best so far.
    """
    known = solution.launch_bound
    return known or lower_bound(problem, 1, solution.value, budget).value


def _of_all(
    problem: Problem,
    best: Solution,
    found: list[Solution],
    left_out: int,
    budget: Budget,
) -> Solution:
    """The best of ``found`` with what is proved, and why it ended, over all orders."""
    weakest = min(found, key=lambda solution: solution.lower_bound)
    bound, argument = weakest.lower_bound, weakest.argument
    if left_out:
        # Past the time limit it is worth the wait.
        bound = min(bound, launch_bound(problem, best, budget.anew(inf)))
    bound, argument = checked_bound(best.value, bound, argument)
    reasons = [solution.stop_reason for solution in found]
    ended = next((r for r in ("interrupted", "time-limit") if r in reasons), "searched")
    return replace(
        best,
        lower_bound=bound,
        argument=argument,
        stop_reason="proved" if bound == best.value else ended,
        deterministic=all(solution.deterministic for solution in found),
    )


def _better(progress: Progress) -> Progress:
    """Progress that gets only what is better than in all orders before.

    What is proved for one order may not hold for all.
    """
    best = inf
    telling = Lock()

    def tell(incumbent: Improvement) -> None:
        nonlocal best
        with telling:
            is_better = incumbent.value < best
            best = min(best, incumbent.value)
        if is_better:
            solution = incumbent.solution and replace(
                incumbent.solution, lower_bound=0.0, argument="none", launch_bound=0.0
            )
            progress(replace(incumbent, solution=solution))

    return tell
