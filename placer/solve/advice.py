"""What another rank order or a free launcher would save, found by placing the job so.

Nothing is guessed: a saving is the difference of two scores, the second that of a
placement which keeps every rule. These searches take the constructions
alone, so that they hardly add to the time of the main search; what they find is what
can be saved at the least.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from math import inf
from typing import Any

from placer.base.arrays import IntArray
from placer.base.rounding import EXACT
from placer.job.model import Job
from placer.job.orders import framework_orders, how_to_number, in_order, same_groups
from placer.solve.bounds.certificate import lower_bound
from placer.solve.construct.fills import nested_fills, run_fills, starts
from placer.solve.orders import Listed, launch_bound, order_name
from placer.solve.problem.compiled import Problem
from placer.solve.problem.rules import obeys
from placer.solve.run.budget import Budget
from placer.solve.run.solution import Solution, checked_bound

Advice = dict[str, Any]


def advise(problem: Problem, solution: Solution, budget: Budget) -> Advice | None:
    """What other launches would save, as a plan says it; None when there was no time.

    ``status`` is ``proved`` when no order and no launcher can be better: the value is
    one that every placement needs, however it is launched. Else the orders that
    frameworks offer and a free launch are tried (``searched``), and ``savings`` lists
    those that are better. A free launch leaves nothing to advise.
    """
    job = problem.job
    if job.launcher == "free":
        return {}
    listed = Listed(problem)
    problem, solution = listed.by_name, listed.sorted(solution)
    machine, most = problem.machine, problem.params.most_ranks
    orders = _other_orders(job)
    if solution.launch_bound or job.world_size <= most:
        own = job.parallelism
        unlike = [  # with groups that the bound of the job's own order does not cover
            problem.on(machine, other)
            for other in orders
            if not same_groups(own, own.order, other.parallelism.order)
        ]
        bound = min(
            launch_bound(problem, solution, budget),
            *(lower_bound(other, 1, solution.value, budget).value for other in unlike),
            inf,
        )
        bound, _ = checked_bound(solution.value, bound, "")
        if bound == solution.value:
            return {"status": "proved", "lower_bound": bound}
    if job.world_size > most:
        return {"status": "not-computed", "most_ranks": most}
    if budget.is_over():
        return None
    savings = _savings(problem, solution, orders, budget)
    if budget.is_over():
        return None
    return {
        "status": "searched",
        "lower_bound": bound,
        "tried": [*(order_name(other) for other in orders), "free"],
        "savings": savings,
    }


def _other_orders(job: Job) -> list[Job]:
    """The job in each other order that a user can ask for.

    Ranks that are named by number mean others in another order, and an order that was
    left open has been chosen already.
    """
    axes = job.parallelism
    if job.names_ranks or axes.auto_order:
        return []
    orders = framework_orders(axes)
    return [in_order(job, order) for order in orders if order != axes.order]


def _savings(
    problem: Problem, solution: Solution, orders: Sequence[Job], budget: Budget
) -> list[Advice]:
    """What each better launch saves, orders first."""
    job = problem.job
    found = []
    as_free: list[IntArray] = []
    free = replace(job, launcher="free")
    most_avoided = problem.avoided(solution.placement.gpu_of_rank)
    for launch in [*orders, free]:
        known = as_free if launch is free else []
        launched = problem.on(problem.machine, launch)
        best = _best(launched, known, budget)
        if best is None:
            continue
        value, gpu_of_rank = best
        if launch is not free:
            # A free launch can put the ranks where another order would have them.
            position = job.parallelism.numbers_in(launch.parallelism.order)
            as_free.append(gpu_of_rank[position])
        if problem.avoided(gpu_of_rank) > most_avoided:
            continue
        if value >= solution.value * (1 - EXACT) or not launched.allows(gpu_of_rank):
            continue
        if launch is free:
            change = {"change": "launcher", "to": "free"}
        else:
            order = launch.parallelism.order
            change = {"change": "order", "to": order_name(launch)}
            change |= {"how": how_to_number(order)}
        found.append({**change, "value": value, "saves": solution.value - value})
    return found


def _best(
    problem: Problem, known: Sequence[IntArray], budget: Budget
) -> tuple[float, IntArray] | None:
    """(value, GPU of every rank) of the best legal placement that is quickly found."""
    best = None
    for gpu_of_rank in chain(known, _constructed(problem)):
        if budget.is_over():
            break
        if obeys(problem.machine, problem.job, gpu_of_rank):
            value = float(problem.goal.value(gpu_of_rank))
            if best is None or value < best[0]:
                best = value, gpu_of_rank
    return best


def _constructed(problem: Problem) -> Iterator[IntArray]:
    """The usual placements, and those along the most promising nestings."""
    yield from (gpu_of_rank for _, gpu_of_rank in starts(problem))
    if problem.choices:
        fills = nested_fills(problem)
        yield from (gpus for _, gpus in islice(fills, problem.params.launch_fills))
    if problem.job.launcher != "free":
        yield from (gpus for _, gpus in run_fills(problem))
