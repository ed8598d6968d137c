"""A lower bound on the step time of every placement: the best of several.

All placements fall into the cases of `cases.py`, whose bounds hold for any job with a
model. Beside them stand the speed of GPUs, links between domains, and traffic between
ranks, each by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.solve.bounds.gradients.links import least_over_links
from placer.solve.bounds.network.best_network import best_of_problem
from placer.solve.bounds.network.speeds import slowest_stages
from placer.solve.bounds.steps.cases import time_bound
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.objective import TimeObjective
from placer.solve.run.budget import ENDLESS

if TYPE_CHECKING:
    from placer.solve.bounds import Proof
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget

# What a kind of groups takes to bound, in s: there is no time for thousands in a few.
KIND_S = 3e-4


def least_step_time(
    problem: Problem, block: int, incumbent: float, budget: Budget = ENDLESS
) -> Proof | None:
    """The bound on the step time; None for another objective."""
    if not isinstance(problem.goal, TimeObjective):
        return None
    if len(problem.job.groups) * KIND_S > budget.seconds_left:
        return None
    return _least(problem, block, incumbent, budget)


def least_of_every_launch(
    problem: Problem, block: int, incumbent: float, budget: Budget = ENDLESS
) -> Proof | None:
    """The same for every launch; None where that is the same bound."""
    is_same = block <= 1 or not isinstance(problem.goal, TimeObjective)
    if is_same or budget.is_over():
        return None
    return _least(problem, 1, incumbent, budget)


def step_on_best_links(problem: Problem, block: int) -> float:
    """The step time if every group had the best links that it may have anywhere, s.

    No placement has a shorter step; `least_step_time` says more and takes longer.
    """
    return problem.model.step_on(best_of_problem(problem, block)).step_time_s


def _least(problem: Problem, block: int, incumbent: float, budget: Budget) -> Proof:
    """The bound of a problem whose nodes hold so many ranks each."""
    model, params = problem.model, problem.params
    network = best_of_problem(problem, block)
    colocation = colocation_of(problem.machine, problem.job, block)
    proofs: list[Proof | None] = [
        time_bound(model, colocation, params, incumbent, budget)
    ]
    # The others say nothing of groups of the user's own, which may be many.
    if model.job.model is not None or model.fabric.speed_of_gpu is not None:
        step = model.step_on(network)
        proofs += [slowest_stages(step), least_over_links(step, network)]
    if model.job.traffic is None:
        return max(proof for proof in proofs if proof is not None)
    # Most jobs have no traffic of their own, and this takes long to load.
    from placer.solve.bounds.traffic.traffic import beside_partners, least_of_traffic

    proofs.append(least_of_traffic(model, network, params, budget))
    known = max(proof for proof in proofs if proof is not None)
    return beside_partners(problem, block, known, incumbent, budget)
