"""What a placement costs, without solving."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.api.inputs import inputs
from placer.arguments import instance, takes
from placer.cost.score import score_with
from placer.cost.step import StepModel
from placer.errors import InputError
from placer.placement.build import placement_of_plan
from placer.placement.memory_need import check_memory
from placer.placement.placement import Placement
from placer.placement.plan import Plan
from placer.placement.planned import planned_job

if TYPE_CHECKING:
    from placer.api.inputs import JobLike, TopologyLike


@takes(placement=instance(Placement) | instance(Plan))
def score(
    topology: TopologyLike, job: JobLike, placement: Placement | Plan
) -> dict[str, Any]:
    """The score of a placement, or of a plan's, without solving.

    Raises
    ------
    InputError
        If an argument is of a wrong type, the placement is not one of this job on this
        machine, or scoring it needs more memory than there is.
    """
    machine, job = inputs(topology, job)
    if isinstance(placement, Plan):
        job = planned_job(job, placement)
        placement = placement_of_plan(placement, machine)
    if placement.world_size != job.world_size:
        raise InputError(
            f"the placement has {placement.world_size:,} ranks, "
            f"the job {job.world_size:,}"
        )
    gpus = placement.gpu_of_rank
    if gpus.min() < 0 or gpus.max() >= machine.num_gpus:
        raise InputError(f"a rank is on none of the {machine.num_gpus:,} GPUs")
    check_memory(machine, job)
    return scored(StepModel(machine, job), placement)


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
