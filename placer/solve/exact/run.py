"""Small jobs to the end: the best homes of all, proved where that is in reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.placement.placement import Placement
from placer.solve.bounds.cut import cut_bound
from placer.solve.count.engine import Limits
from placer.solve.exact.engine import search
from placer.solve.exact.group_model import minimise_groups
from placer.solve.exact.homes import Homes
from placer.solve.exact.hop_model import hop_tiers, minimise_hops
from placer.solve.problem.objective import HopCostObjective, TimeObjective

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

IntArray = npt.NDArray[np.int64]

ARGUMENT = "a search of all homes of {units} units in the domains of each tier (CP-SAT)"


@dataclass(frozen=True, eq=False)
class Exact:
    """What the model found.

    Attributes
    ----------
    gpu_of_rank : ndarray, shape (R,), or None
    bound : float
        No placement whose nodes hold whole units costs less.
    argument : str
    in_time : bool
        Whether neither the clock nor a request ended the search.
    """

    gpu_of_rank: IntArray | None
    bound: float
    argument: str
    in_time: bool


def exact(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Offer the best homes of a small job's units; complete, that is a proof."""
    if incumbent.gpu_of_rank is None:
        return
    found = best_homes(problem, incumbent.gpu_of_rank, budget)
    if found is None:
        return
    incumbent.cut_short |= not found.in_time
    if found.gpu_of_rank is not None:
        incumbent.offer("exact model", found.gpu_of_rank)
    # Where nodes may hold other blocks, or one rank at a time, others are legal.
    blocks = 1, problem.forced_block
    if incumbent.is_whole and problem.parts.block in blocks:
        incumbent.prove(found.bound, found.argument)


def best_homes(problem: Problem, start: IntArray, budget: Budget) -> Exact | None:
    """The best homes of a job's units, None where no model of them is in reach.

    For the hop cost, or the time of a job that has only groups of its own.

    Parameters
    ----------
    problem : Problem
        With blocks that all nodes hold, or single ranks.
    start : ndarray, shape (R,)
        A legal placement.
    budget : Budget
    """
    topology, job, goal = problem.machine, problem.job, problem.goal
    parts, capacity = problem.parts, problem.capacity
    incumbent = goal.value(start)
    homes = _homes(problem)
    if homes is None or incumbent <= 0.0:
        return None
    if isinstance(goal, HopCostObjective):
        cuts = cut_bound(topology, job).cut_per_tier
        unit = minimise_hops(homes, goal.hops, cuts, incumbent)
    elif isinstance(goal, TimeObjective):
        unit = minimise_groups(homes, goal.model, parts, capacity, start)
    homes.hint(topology.node_of_gpu[start[:: homes.block]])
    limits = Limits(problem.params.exact_work, budget.seconds_left, problem.seed)
    found = search(homes, limits, budget.is_over)
    gpu_of_rank = None
    if found.has_placement:
        node_of_rank = np.repeat(homes.nodes(found.solver), homes.block)
        gpu_of_rank = Placement.on_nodes(topology, node_of_rank).gpu_of_rank
    bound = found.bound * unit
    return Exact(gpu_of_rank, bound, ARGUMENT.format(units=homes.size), found.in_time)


def _homes(problem: Problem) -> Homes | None:
    """The variables of the model, None where it is too large or of no use.

    Beyond so many homes of units in domains a proof is out of reach, and local search
    finds as good placements in less time.
    """
    params = problem.params
    topology, job, goal = problem.machine, problem.job, problem.goal
    if isinstance(goal, HopCostObjective):
        tiers, most = hop_tiers(goal.hops), params.hop_homes
    elif job.model is None:
        tiers, most = list(range(len(topology.tiers) - 1)), params.group_homes
    else:
        return None
    if job.world_size // max(problem.parts.block, 1) > most:
        return None
    homes = Homes(topology, problem.parts, problem.capacity, tiers)
    return homes if homes.levels and homes.num_variables <= most else None
