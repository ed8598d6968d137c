"""Other placements of the same cost, in which what is slow shows elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.api.inputs import inputs_of_plan
from placer.api.judged import judged
from placer.api.score import scored
from placer.base.arguments import NOTHING, instance, takes
from placer.base.errors import InfeasibleError, InputError
from placer.cost.step import StepModel
from placer.explain.suspects import Verdict, most_alike
from placer.placement.build import build_plan, placement_of_plan
from placer.placement.check import violations
from placer.placement.memory_need import check_memory
from placer.placement.placement import Placement
from placer.placement.plan_like import PLAN, plan_of
from placer.solve.problem.compiled import Problem as PlacementProblem
from placer.solve.rearrange.vary import varied

if TYPE_CHECKING:
    from placer.placement.plan import Plan
    from placer.placement.plan_like import PlanLike
    from placer.placement.score import Score

MOST = 64
# Placements among which those that tell suspects apart are chosen.
DRAWN = 32


@takes(plan=PLAN, apart=instance(Verdict) | NOTHING)
def vary(
    plan: PlanLike, count: int, *, seed: int = 0, apart: Verdict | None = None
) -> list[Plan]:
    """The plan and others of the same cost in which what was together is apart.

    No node holds a stage or a replica twice and no other domain a replica twice,
    wherever the machine has enough domains alike to exchange.

    Parameters
    ----------
    plan : Plan, Result, path or dict
    count : int
        Plans in all, 1 to 64.
    seed : int
    apart : Verdict, optional
        Of `diagnose`: of several draws those come first that tell the suspects apart
        which are still open.

    Returns
    -------
    list of Plan
        The given one first; each has the score that the model gives it.

    Raises
    ------
    InputError
        If an argument is out of range, or the plan's inputs cannot be read.
    InfeasibleError
        If the machine or rules leave fewer placements of this cost.

    Examples
    --------
    >>> plan = placer.predict("dgx-h100-4x8", "quickstart", "slurm")
    >>> len(placer.vary(plan, 2))
    2
    """
    if not 1 <= count <= MOST:
        message = f"expected 1 to {MOST} placements, got {count}"
        raise InputError(message, key="count")
    plan = plan_of(plan)
    inputs = inputs_of_plan(plan)
    machine, job = inputs.machine, inputs.ruled
    check_memory(machine, job)
    first = placement_of_plan(plan, machine)
    objective = plan.bound.get("objective")
    problem = PlacementProblem.of(machine, job, objective, seed)
    model = StepModel(machine, job)

    def built_from(other: Placement, score: Score) -> Plan:
        built = build_plan(
            machine,
            job,
            other,
            score=score,
            baselines=plan.baselines,
            bound=plan.bound,
            advice=plan.advice,
            inputs=plan.inputs,
            solver=plan.solver,
        )
        return judged(built, machine, model)

    drawn = count if apart is None else max(count, DRAWN)
    found = varied(problem, first.gpu_of_rank, drawn, remembers=apart is None)
    others = [Placement(gpu_of_rank) for gpu_of_rank in found][1:]
    if apart is not None:
        others.sort(key=lambda o: most_alike(built_from(o, plan.score), apart.open))
    plans = [plan]
    for other in others[: count - 1]:
        built = built_from(other, scored(model, other))
        if broken := violations(built, machine, job):
            raise RuntimeError(f"the plan fails its check: {broken[0]}")
        plans.append(built)
    if len(plans) < count:
        raise InfeasibleError(
            f"of {count} placements of this cost that keep the rules only "
            f"{len(plans)} {'was' if len(plans) == 1 else 'were'} found",
            hints=["ask for fewer, or leave out pins and budgets"],
        )
    return plans
