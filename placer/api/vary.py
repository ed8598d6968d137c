"""Other placements of the same cost, in which what is slow shows elsewhere."""

from __future__ import annotations

from dataclasses import replace

from placer.api.inputs import inputs_of_plan
from placer.api.score import scored
from placer.arguments import INTEGER, instance, takes
from placer.cost.step import StepModel
from placer.errors import InfeasibleError, InputError, Problem
from placer.placement.build import build_plan, placement_of_plan
from placer.placement.check import violations
from placer.placement.memory_need import check_memory
from placer.placement.placement import Placement
from placer.placement.plan import Plan
from placer.solve.problem.compiled import Problem as PlacementProblem
from placer.solve.rearrange.vary import varied

MOST = 64


@takes(plan=instance(Plan), count=INTEGER, seed=INTEGER)
def vary(plan: Plan, count: int, *, seed: int = 0) -> list[Plan]:
    """The plan and others of the same cost in which what was together is apart.

    No node holds a stage or a replica twice and no other domain a replica twice,
    wherever the machine has enough domains alike to exchange.

    Parameters
    ----------
    plan : Plan
    count : int
        Plans in all, 1 to 64.
    seed : int

    Raises
    ------
    InputError
        If an argument is out of range, or the plan's inputs cannot be read.
    InfeasibleError
        If rules leave fewer placements of this cost.
    """
    if not 1 <= count <= MOST:
        message = f"expected 1 to {MOST} placements, got {count}"
        raise InputError([Problem(message, key="count")])
    inputs = inputs_of_plan(plan)
    machine, job = inputs.machine, inputs.ruled(inputs.job)
    check_memory(machine, job)
    first = placement_of_plan(plan, machine)
    objective = plan.bound.get("objective")
    problem = PlacementProblem.of(machine, job, objective, seed)
    model = StepModel(machine, job)
    plans = [plan]
    for gpu_of_rank in list(varied(problem, first.gpu_of_rank, count))[1:]:
        other = Placement(gpu_of_rank)
        built = build_plan(
            machine,
            job,
            other,
            score=scored(model, other),
            baselines=plan.baselines,
            bound=plan.bound,
            advice=plan.advice,
            inputs=plan.inputs,
            solver=plan.solver,
        )
        built = replace(built, verdict=plan.verdict)
        if broken := violations(built, machine, job):
            raise RuntimeError(f"the plan fails its check: {broken[0]}")
        plans.append(built)
    if len(plans) < count:
        raise InfeasibleError(
            f"of {count} placements of this cost that keep the rules only "
            f"{len(plans)} {'was' if len(plans) == 1 else 'were'} found"
            "\n  hint: ask for fewer, or leave out pins and budgets"
        )
    return plans
