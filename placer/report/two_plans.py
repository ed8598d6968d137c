"""What one plan saves beside another of the same job, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.base.errors import InputError
from placer.cost.step import StepModel
from placer.explain.difference import saving
from placer.explain.uncertain import links_are_assumed
from placer.placement.build import placement_of_plan
from placer.placement.inputs import inputs_of
from placer.placement.planned import planned_job

if TYPE_CHECKING:
    from placer.explain.difference import Saving
    from placer.placement.plan import Plan

# What two plans must agree on, or their steps differ in more than their placements.
_SAME = ("sha256", "order", "parallelism")


def saving_of(old: Plan, new: Plan) -> Saving | None:
    """What ``new`` saves of a step of ``old``.

    None where their machines or jobs differ, a step takes no time, or either keeps no
    inputs.
    """
    if not (old.inputs and new.inputs and old.score.get("step_time_s")):
        return None
    if any(old.job.get(key) != new.job.get(key) for key in _SAME):
        return None
    if old.topology.get("sha256") != new.topology.get("sha256"):
        return None
    try:
        inputs = inputs_of(new)
        machine, job = inputs.topology, planned_job(inputs.job, new)
        before, after = (placement_of_plan(one, machine) for one in (old, new))
    except InputError:
        return None  # of a machine that has changed since
    model, thin = StepModel(machine, job), links_are_assumed(machine)
    return saving(model, before.gpu_of_rank, after.gpu_of_rank, thin=thin)
