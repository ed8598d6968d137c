"""What another rank order or a free launcher would save, found by placing the job so.

Nothing is guessed: a saving is the difference of two scores, the second that of a
placement which the independent checker passes. These searches take the constructions
alone, so that they hardly add to the time of the main search; what they find is what
can be saved at the least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from placer.job.orders import framework_orders, how_to_number, in_order, same_groups
from placer.placement.baselines import BASELINES, baseline
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.bounds.certificate import lower_bound
from placer.solve.feasibility import feasible_parts
from placer.solve.launch.orders import launch_bound
from placer.solve.nestings.fills import nested_fills, uneven_fills
from placer.solve.objective import objective_of
from placer.solve.parts import node_capacity
from placer.solve.rules import avoided, obeys
from placer.solve.solution import EXACT, held_bound

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.solution import Solution
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]
Advice = dict[str, Any]

# Nestings priced for each launch that is tried, and ranks beyond which none is.
NESTINGS_TRIED = 8
LARGEST_JOB = 131_072


def advise(
    topology: Topology,
    job: Job,
    solution: Solution,
    *,
    seed: int = 0,
    over: Callable[[], bool] = lambda: False,
) -> Advice | None:
    """What other launches would save, as a plan says it; None when there was no time.

    ``status`` is ``proved`` when no order and no launcher can be better: the value is
    one that every placement needs, however it is launched. Else the orders that
    frameworks offer and a free launch are tried (``searched``), and ``savings`` lists
    those that are better. A free launch leaves nothing to advise.
    """
    if job.launcher == "free":
        return {}
    orders = _other_orders(job)
    if solution.launch_bound or job.world_size <= LARGEST_JOB:
        bound = min(
            [launch_bound(topology, job, solution)]
            + [_bound_of(topology, other, solution) for other in _unlike(job, orders)]
        )
        bound, _ = held_bound(solution.value, bound, "")
        if bound == solution.value:
            return {"status": "proved", "lower_bound": bound}
    if job.world_size > LARGEST_JOB:
        return {"status": "not-computed", "most_ranks": LARGEST_JOB}
    if over():
        return None
    savings = _savings(topology, job, solution, orders, seed, over)
    if over():
        return None
    return {
        "status": "searched",
        "lower_bound": bound,
        "tried": [*(_name(other) for other in orders), "free"],
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


def _unlike(job: Job, others: Sequence[Job]) -> list[Job]:
    """Those whose groups the bound of the job's own order does not cover."""
    axes = job.parallelism
    return [
        other
        for other in others
        if not same_groups(axes, axes.order, other.parallelism.order)
    ]


def _bound_of(topology: Topology, job: Job, solution: Solution) -> float:
    goal = objective_of(topology, job, solution.objective)
    return lower_bound(topology, job, goal, 1)[0]


def _name(job: Job) -> str:
    return "-".join(job.parallelism.order)


def _savings(
    topology: Topology,
    job: Job,
    solution: Solution,
    orders: Sequence[Job],
    seed: int,
    over: Callable[[], bool],
) -> list[Advice]:
    """What each better launch saves, orders first."""
    found = []
    as_free: list[IntArray] = []
    free = replace(job, launcher="free")
    most_avoided = avoided(topology, job, solution.placement.gpu_of_rank)
    for launch in [*orders, free]:
        known = as_free if launch is free else []
        best = _best(topology, launch, solution.objective, known, seed, over)
        if best is None:
            continue
        value, gpu_of_rank = best
        if launch is not free:
            # A free launch can put the ranks where another order would have them.
            position = job.parallelism.numbers_in(launch.parallelism.order)
            as_free.append(gpu_of_rank[position])
        if avoided(topology, job, gpu_of_rank) > most_avoided:
            continue
        if value >= solution.value * (1 - EXACT) or violations(
            Placement(gpu_of_rank), topology, launch
        ):
            continue
        if launch is free:
            change = {"change": "launcher", "to": "free"}
        else:
            order = launch.parallelism.order
            change = {"change": "order", "to": _name(launch)}
            change |= {"how": how_to_number(order)}
        found.append({**change, "value": value, "saves": solution.value - value})
    return found


def _best(
    topology: Topology,
    job: Job,
    objective: str,
    known: Sequence[IntArray],
    seed: int,
    over: Callable[[], bool],
) -> tuple[float, IntArray] | None:
    """(value, GPU of every rank) of the best legal placement that is quickly found."""
    goal = objective_of(topology, job, objective)
    best = None
    for gpu_of_rank in chain(known, _constructed(topology, job, goal.weights, seed)):
        if over():
            break
        if obeys(topology, job, gpu_of_rank):
            value = float(goal.value(gpu_of_rank))
            if best is None or value < best[0]:
                best = value, gpu_of_rank
    return best


def _constructed(
    topology: Topology, job: Job, weights: Mapping[str, float], seed: int
) -> Iterator[IntArray]:
    """The usual placements, and those along the most promising nestings."""
    for name in BASELINES:
        if name != "random":
            yield baseline(name, topology, job, seed).gpu_of_rank
    for parts in feasible_parts(topology, job)[:1]:
        capacity = node_capacity(topology, parts.block)
        nested = nested_fills(topology, job, parts, capacity, weights)
        yield from (gpus for _, gpus in islice(nested, NESTINGS_TRIED))
    if job.launcher != "free":
        yield from (gpus for _, gpus in uneven_fills(topology, job))
