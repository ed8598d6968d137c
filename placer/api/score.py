"""What a placement costs, without solving."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from placer.cost.score import score_with
from placer.cost.step import StepModel
from placer.errors import InputError
from placer.placement.build import placement_of_plan
from placer.placement.inputs import inputs_of
from placer.placement.memory_need import check_memory
from placer.placement.plan import Plan
from placer.placement.planned import planned_job

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.placement import Placement
    from placer.topology.model import Topology


@overload
def score(topology: Plan) -> dict[str, Any]: ...


@overload
def score(
    topology: Topology, job: Job, placement: Placement | Plan
) -> dict[str, Any]: ...


def score(
    topology: Topology | Plan,
    job: Job | None = None,
    placement: Placement | Plan | None = None,
) -> dict[str, Any]:
    """The score of a placement, or of a plan's, without solving.

    ``score(plan)`` takes topology and job from the plan.

    Raises
    ------
    InputError
        If the placement is not one of this job on this machine, the plan does not keep
        its inputs, or scoring it needs more memory than there is.
    """
    if isinstance(topology, Plan):
        placement = topology
        inputs = inputs_of(placement, job=job, force=True)
        topology, job = inputs.machine, inputs.job
    if job is None or placement is None:
        raise InputError("score takes a plan, or a topology, a job and a placement")
    if isinstance(placement, Plan):
        job = planned_job(job, placement)
        placement = placement_of_plan(placement, topology)
    if placement.world_size != job.world_size:
        raise InputError(
            f"the placement has {placement.world_size:,} ranks, "
            f"the job {job.world_size:,}"
        )
    gpus = placement.gpu_of_rank
    if gpus.min() < 0 or gpus.max() >= topology.num_gpus:
        raise InputError(f"a rank is on none of the {topology.num_gpus:,} GPUs")
    check_memory(topology, job)
    return scored(StepModel(topology, job), placement)


def scored(model: StepModel, placement: Placement) -> dict[str, Any]:
    """The score of a placement that is one of the model's job, as plain data."""
    found: dict[str, Any] = plain(score_with(model, placement))
    return found


def plain(value: Any) -> Any:
    """``value`` in Python's own numbers, lists and dicts."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value
