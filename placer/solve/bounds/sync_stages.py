"""Gradient groups, and a step of which one stage's gradients take longer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from placer.cost.gradients import SyncTime
    from placer.cost.step import Step
    from placer.job.model import Job

    IntArray = npt.NDArray[np.int64]


def gradient_groups(job: Job) -> IntArray:
    """Groups that reduce gradients together; shard groups where there are some."""
    members = job.parallelism.ranks_of_group["dp_cp"]
    return members.reshape(-1, job.data_parallel.shard_members(members.shape[1]))


def with_stage(step: Step, slow: SyncTime, stage: int) -> Step:
    """The step when the data-parallel times of one stage are those of ``slow``."""
    if step.sync is None:
        return step
    mixed = {}
    for name in ("reduce", "gather", "again_reduce", "again_gather"):
        mixed[name] = getattr(step.sync, name).copy()
        mixed[name][stage] = getattr(slow, name)[stage]
    bucket = (slow if stage == 0 else step.sync).first_bucket
    sync = replace(step.sync, **mixed, first_bucket=bucket)
    return replace(step, sync=sync)
