"""The lower bound of an objective, whatever the placement."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from placer.solve.bounds.cut import cut_bound
from placer.solve.bounds.time import time_bound
from placer.solve.problem.colocation import parts_of
from placer.solve.problem.objective import TimeObjective
from placer.solve.tree.capacity import node_capacity

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.incumbent import Incumbent


def prove(problem: Problem, incumbent: Incumbent) -> None:
    """Offer the bound of a problem, or of the search that it is a part of."""
    if incumbent.terms is not None:
        incumbent.prove(*incumbent.terms.bound(incumbent.value))
        return
    block = problem.forced_block
    bound, argument = lower_bound(problem, block, incumbent.value)
    if block == 1 or problem.goal.name == "hop-cost":
        incumbent.launch_bound = bound
    incumbent.prove(bound, argument)


def lower_bound(
    problem: Problem, block: int, incumbent: float = inf
) -> tuple[float, str]:
    """(bound, what it rests on) for every placement that meets the requirements.

    ``block`` consecutive ranks share a node; 1 bounds every launch. ``incumbent`` is
    the value of a known placement: a bound that reaches it is not improved further.
    """
    machine, job, goal = problem.machine, problem.job, problem.goal
    if isinstance(goal, TimeObjective):
        parts = parts_of(machine, job, block)
        found = time_bound(goal.model, parts, node_capacity(machine, block))
        return found.value, found.argument
    bound = cut_bound(machine, job, incumbent)
    return bound.value, bound.argument
