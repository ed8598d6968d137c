"""Small jobs to the end: the best assignment of all, proved where that is in reach."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.base.loading import load
from placer.solve.bounds.hops.hop_cuts import HopCuts
from placer.solve.count.engine import CP_SAT, Limits, cp_sat, solved
from placer.solve.exact.assignment import Assignment
from placer.solve.exact.objectives import hop_tiers, minimise_groups, minimise_hops
from placer.solve.problem.objective import HopCostObjective

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

# Units times domains of a model: of hop cost, of groups of the job's own.
HOP_HOMES, GROUP_HOMES = 320, 2_000
ARGUMENT = "a search of all homes of {units} units in the domains of each tier (CP-SAT)"


@dataclass(frozen=True, eq=False)
class Exact:
    """What the model found.

    Attributes
    ----------
    gpu_of_rank : ndarray, shape (R,), or None
    bound : float
        No placement whose nodes hold whole units costs less.
    in_time : bool
        Whether neither the clock nor a request ended the search.
    """

    gpu_of_rank: IntArray | None
    bound: float
    argument: str
    in_time: bool


def exact(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Offer the best assignment of a small job's units; complete, that is a proof."""
    if incumbent.gpu_of_rank is None:
        return
    found = best_assignment(problem, incumbent.gpu_of_rank, budget)
    if found is None:
        return
    incumbent.cut_short |= not found.in_time
    if found.gpu_of_rank is not None:
        incumbent.offer("exact model", found.gpu_of_rank)
    # Where nodes may hold other blocks, or one rank at a time, others are legal.
    blocks = 1, problem.forced_block
    covers = incumbent.is_whole and problem.nodes_decide
    if covers and problem.colocation.block in blocks:
        incumbent.prove(found.bound, found.argument)


def best_assignment(problem: Problem, start: IntArray, budget: Budget) -> Exact | None:
    """The best assignment of a job's units, None where no model of it is in reach.

    For the hop cost, or the time of a job that has only groups of its own. All of
    CP-SAT's strategies, neighbourhoods among them, take turns in one thread, so the
    answer is the same every time unless the budget ends the search.

    Parameters
    ----------
    problem : Problem
        With blocks that all nodes hold, or single ranks.
    start : ndarray, shape (R,)
        A legal placement.
    """
    topology, goal = problem.machine, problem.goal
    value = goal.value(start)
    homes = _assignment(problem)
    if homes is None or value <= 0.0:
        return None
    if isinstance(goal, HopCostObjective):
        cuts = problem.once(HopCuts.of_problem)
        cuts.raised(inf)
        least = [cuts.least(tier) for tier in range(len(topology.tiers))]
        unit = minimise_hops(homes, goal.hops, least, value)
    else:
        unit = minimise_groups(homes, problem, start)
    homes.hint(topology.node_of_gpu[start[:: homes.block]])
    work = problem.params.exact_work
    solver = cp_sat(Limits(work, budget.seconds_left, problem.seed))
    solver.parameters.interleave_search = True
    status = solved(solver, homes.model, budget.is_over)
    sat = load(CP_SAT)
    gpu_of_rank, bound = None, solver.best_objective_bound * unit
    if status in (sat.OPTIMAL, sat.FEASIBLE):
        node_of_rank = np.repeat(homes.nodes(solver), homes.block)
        gpu_of_rank = topology.gpus_on(node_of_rank)
    if status == sat.INFEASIBLE:
        bound = -inf
    is_complete = status in (sat.OPTIMAL, sat.INFEASIBLE)
    in_time = is_complete or solver.response_proto.deterministic_time >= work
    return Exact(gpu_of_rank, bound, ARGUMENT.format(units=homes.size), in_time)


def _assignment(problem: Problem) -> Assignment | None:
    """The variables of the model, None where it is too large or of no use.

    Beyond so many units times domains a proof is out of reach, and local search
    finds as good placements in less time.
    """
    topology, job, goal = problem.machine, problem.job, problem.goal
    if isinstance(goal, HopCostObjective):
        tiers, most = hop_tiers(goal.hops), HOP_HOMES
    elif job.model is None and job.traffic is None and not job.roles:
        tiers, most = list(range(len(topology.tiers) - 1)), GROUP_HOMES
    else:
        return None
    if job.world_size // max(problem.colocation.block, 1) > most:
        return None
    homes = Assignment(topology, problem.colocation, problem.capacity, tiers)
    return homes if homes.levels and homes.num_variables <= most else None
