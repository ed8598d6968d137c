"""The plan of what a search found: scored again, compared, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from placer.api.baseline_costs import baseline_costs
from placer.api.score import plain, scored
from placer.api.what_if import what_if
from placer.placement.baselines import baseline
from placer.placement.build import build_plan
from placer.placement.check import violations
from placer.placement.started import order_in_use
from placer.solve.run.solution import EXACT, held_bound
from placer.version import __version__

if TYPE_CHECKING:
    from placer.cost.step import StepModel
    from placer.placement.inputs import Inputs
    from placer.placement.placement import Placement
    from placer.placement.plan import Plan
    from placer.solve.run.solution import Solution
    from placer.topology.model import Topology

# Key of each objective in a score.
OBJECTIVES = {"time": "step_time_s", "hop-cost": "hop_cost"}


class BrokenPromiseError(RuntimeError):
    """The search returned what it must not: a fault of placer, not of the input."""


def checked_plan(
    inputs: Inputs,
    machine: Topology,
    model: StepModel,
    solution: Solution,
    seed: int,
    advice: Mapping[str, Any] | None,
    best: Placement | None = None,
    previous: Mapping[str, Any] | None = None,
) -> Plan:
    """The plan of ``solution``, scored again and checked independently.

    Parameters
    ----------
    inputs : Inputs
        What the plan is made of.
    machine : Topology
        The allocation.
    model : StepModel
        Of the job under all rules, in the order of the placement, on the machine.
    solution : Solution
    seed : int
    advice : mapping, optional
        What another launch would save; None when no time was left to look.
    best : Placement, optional
        The best that was found, where the one in use is kept instead.
    previous : mapping, optional
        What a repair has to do with the plan before, which it is compared with instead
        of the order in use.

    Raises
    ------
    BrokenPromiseError
        If it breaks a rule.
    """
    job = model.job
    found = scored(model, solution.placement)
    plan = build_plan(
        machine,
        job,
        solution.placement,
        score=found,
        baselines=baseline_costs(
            machine, model, seed, solution.placement, found, solution.stop_reason
        ),
        bound=_bound(solution, found) | _added(inputs),
        advice=plain(advice or {}),
        inputs=inputs.to_document(),
        solver=plain(
            {
                "version": __version__,
                "seed": seed,
                "wall_s": solution.wall_s,
                "stop_reason": solution.stop_reason,
                # Without a limit there would have been advice.
                "deterministic": solution.deterministic and advice is not None,
                "method": solution.method,
            }
            | ({"moves": solution.moves} if solution.moves else {})
        ),
    )
    if previous is not None:
        plan = replace(plan, previous=previous)
    elif solution.objective == "time" and job.assumed + machine.assumed:
        usual = baseline(order_in_use(job), machine, job, seed)
        tried = what_if(machine, model, best or solution.placement, usual)
        plan = replace(plan, what_if=plain(tried))
    if broken := violations(plan, machine, job):
        raise BrokenPromiseError(f"the plan fails its check: {broken[0]}")
    return plan


def _added(inputs: Inputs) -> dict[str, Any]:
    """Requirements beside those of the job, where there are any."""
    return {"require": dict(inputs.require)} if inputs.require else {}


def _bound(solution: Solution, found: Mapping[str, Any]) -> dict[str, Any]:
    """What is proved, about the value as scored again."""
    value = found[OBJECTIVES[solution.objective]]
    lower_bound, argument = held_bound(value, solution.lower_bound, solution.argument)
    gap = (value - lower_bound) / value if value > 0 else 0.0
    return {
        "objective": solution.objective,
        "value": value,
        "lower_bound": lower_bound,
        "gap": gap,
        "argument": argument,
        "status": "optimal" if gap <= EXACT else "feasible",
    }
