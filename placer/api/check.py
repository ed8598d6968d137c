"""Whether a plan keeps every promise and says nothing false of itself."""

from __future__ import annotations

from dataclasses import replace

from placer.api.claims import Claims, claims
from placer.api.inputs import JobLike, TopologyLike, inputs_of_plan, read_inputs
from placer.api.options import number_problems, seconds_of
from placer.base.arguments import PLAN, instance, takes
from placer.base.errors import CheckError, InfeasibleError, InputError, refuse
from placer.base.loading import load
from placer.base.threads import awaited
from placer.placement.check import violations
from placer.placement.inputs import Inputs
from placer.placement.placement import Placement
from placer.placement.plan import Plan
from placer.placement.plan_file import PlanLike, plan_of
from placer.placement.robust import copy_faults, parse_copies


@takes(plan=instance(Placement) | PLAN)
@awaited()
def check(
    plan: PlanLike | Placement,
    topology: TopologyLike | None = None,
    job: JobLike | None = None,
    *,
    bound: bool = False,
    copies: str | None = None,
    time_limit: float | str = 60.0,
) -> None:
    """Nothing, when the plan keeps every promise and all that it says is so.

    The placement is checked by code that shares nothing with the solver and the cost
    model; then score, baselines, gap and status are worked out again and compared.
    Numbers of an older cost model, in a plan of an older placer, are no violations.

    Parameters
    ----------
    plan : Plan, Result, path, dict or Placement
        A placement says nothing of itself and needs topology and job.
    topology, job : Topology, Job, or what `read_topology` and `read_job` take, optional
        Instead of those that the plan keeps.
    bound : bool
        Prove the lower bound again.
    copies : str, optional
        ``JUMP`` or ``JUMP:FACTOR``: copies of checkpoints on ranks so far apart must
        share no node and no rack.
    time_limit : float, s, or str
        For the search that a bound may rest on.

    Raises
    ------
    CheckError
        With every violation found.
    InputError
        If an argument is of a wrong type, or the plan keeps no inputs and they are not
        given.

    Examples
    --------
    >>> plan = placer.predict("dgx-h100-4x8", "quickstart", "slurm")
    >>> placer.check(plan)
    """
    time_limit = seconds_of(time_limit)
    refuse(number_problems(time_limit=time_limit))
    if isinstance(plan, Placement):
        if topology is None or job is None:
            raise InputError("a placement is checked against a topology and a job")
        if broken := violations(plan, *read_inputs(topology, job)):
            raise CheckError(broken)
        return
    plan = plan_of(plan)
    try:
        inputs = inputs_of_plan(plan, topology, job)
    except InputError:
        if topology is None or job is None:
            raise
        # A plan of another size or order has no inputs, but it can be told why not.
        if broken := violations(plan, *read_inputs(topology, job)):
            raise CheckError(broken) from None
        raise
    found = checked(plan, inputs, time_limit if bound else None, copies)
    if found.false:
        raise CheckError(found.false)


def checked(
    plan: Plan, inputs: Inputs, bound_s: float | None = None, copies: str | None = None
) -> Claims:
    """What it breaks or says that is not so, and what is of an older cost model.

    With seconds for the search that it may rest on, the bound is proved again.
    """
    faults, older = _as_it_stands(plan, inputs)
    if bound_s is not None and older:
        older.append("bound.lower_bound: not proved again, as it is of that model")
    elif bound_s is not None:
        # The solver takes half a second to load.
        load("placer.api.bound_check")
        from placer.api.bound_check import bound_faults

        faults += bound_faults(plan, inputs, bound_s)
    if copies:
        faults += copy_faults(plan, parse_copies(copies))
    return Claims(faults, older)


def _as_it_stands(plan: Plan, inputs: Inputs) -> Claims:
    try:
        ruled = inputs.ruled
    except (InputError, InfeasibleError) as error:
        lines = str(error).splitlines()
        return Claims([f"its rules cannot hold: {line}" for line in lines], [])
    outside = [*_outside(plan, inputs)]
    broken = violations(plan, inputs.topology, ruled)
    try:
        found = claims(plan, inputs)
        return found._replace(false=[*broken, *outside, *found.false])
    except InputError as error:
        # Without a placement there is no score, as the other sentences say already.
        told = [*broken, *outside] or [str(problem) for problem in error.problems]
        return Claims(told, [])


def taken_as_named(plan: Plan, inputs: Inputs) -> Plan:
    """The plan as if it had been made for these inputs, whatever it names."""
    sections = (plan.topology, inputs.topology), (plan.job, inputs.job)
    topology, job = (
        {**said, "name": own.name, "sha256": own.sha256} for said, own in sections
    )
    return replace(plan, topology=topology, job=job)


def _outside(plan: Plan, inputs: Inputs) -> list[str]:
    """A sentence on nodes that are not of the allocation."""
    outside = {*inputs.topology.node_names} - {*inputs.machine.node_names}
    strange = [name for name in plan.nodes if name in outside]
    if not strange:
        return []
    return [
        f"{len(strange):,} of {len(plan.nodes):,} nodes are outside the allocation "
        f"(inputs.hosts): the first is {strange[0]}"
    ]
