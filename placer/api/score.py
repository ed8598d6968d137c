"""What a placement costs, without solving."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, overload

import numpy as np

from placer.api.inputs import JobLike, TopologyLike, inputs_of_plan, read_inputs
from placer.base.arguments import NOTHING, PLAN, instance, takes
from placer.base.errors import InputError
from placer.cost.footprint.stages import memory_score, needs_of
from placer.cost.step import StepModel
from placer.explain.score import score_with
from placer.placement.build import placement_of_plan
from placer.placement.inputs import planned_job
from placer.placement.memory_need import check_memory
from placer.placement.placement import Placement
from placer.placement.plan import Plan
from placer.placement.plan_file import PlanLike, plan_of
from placer.placement.score import Score
from placer.topology.model import Topology


@overload
def score(topology: PlanLike) -> Score: ...


@overload
def score(
    topology: TopologyLike, job: JobLike, placement: Placement | PlanLike
) -> Score: ...


@takes(placement=instance(Placement) | PLAN | NOTHING)
def score(
    topology: TopologyLike | PlanLike,
    job: JobLike | None = None,
    placement: Placement | PlanLike | None = None,
) -> Score:
    """The score of a placement, or of a plan's, without solving.

    ``score(plan)`` takes topology and job from the plan: a `Plan`, a `Result`, the path
    of a plan or a dict of one.

    Parameters
    ----------
    topology : Topology, or what `read_topology` takes; or a plan
    job : Job, or what `read_job` takes, optional
    placement : Placement, Plan, Result, path or dict, optional

    Returns
    -------
    Score
        Its keys are those of ``placer score --format json``.

    Raises
    ------
    InputError
        If an argument is of a wrong type, the placement is not one of this job on this
        machine, the plan does not keep its inputs or keeps others than it names, or
        scoring it needs more memory than there is.

    Examples
    --------
    >>> plan = placer.predict("dgx-h100-4x8", "quickstart", "slurm")
    >>> placer.score(plan)["step_time_s"] > 0
    True
    """
    alone = job is None and placement is None and not isinstance(topology, Topology)
    if alone or isinstance(getattr(topology, "plan", topology), Plan):
        placement = plan_of(cast("PlanLike", topology))
        inputs = inputs_of_plan(placement, job=job, force=job is not None)
        machine, work = inputs.machine, inputs.job
    elif job is None or placement is None:
        raise InputError("score takes a plan, or a topology, a job and a placement")
    else:
        machine, work = read_inputs(cast("TopologyLike", topology), job)
    if not isinstance(placement, Placement):
        placement = plan_of(placement)
        work = planned_job(work, placement)
        placement = placement_of_plan(placement, machine)
    if placement.world_size != work.world_size:
        raise InputError(
            f"the placement has {placement.world_size:,} ranks, "
            f"the job {work.world_size:,}"
        )
    gpus = placement.gpu_of_rank
    if gpus.min() < 0 or gpus.max() >= machine.num_gpus:
        raise InputError(f"a rank is on none of the {machine.num_gpus:,} GPUs")
    check_memory(machine, work)
    return scored(StepModel(machine, work), placement)


def scored(model: StepModel, placement: Placement) -> Score:
    """The score of a placement that is one of the model's job."""
    limit = model.fabric.topology.gpu.memory
    found = score_with(model, placement) | memory_score(model.job, limit)
    for role in model.job.roles:
        if needs := needs_of(role.job):
            found["roles"][role.name]["memory_bytes"] = needs
    return Score(plain(found))


def plain(value: Any) -> Any:
    """``value`` in Python's own numbers, lists and dicts."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value
