"""The work of a job: what makes micro-batches of two shapes comparable."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from placer.job.models import flops_per_sample
from placer.job.work import micro_batch_work

if TYPE_CHECKING:
    from placer.job.model import Job


def step_flops(job: Job) -> float:
    """FLOPs of a step with full attention, as rates are told; 0 without a model."""
    if job.model is None:
        return 0.0
    samples = job.parallelism.dp * job.micro_batches * job.micro_batch
    return samples * flops_per_sample(job.model, job.sequence, causal=False)


def work_ratio(job: Job, base: Job) -> float:
    """Work of a micro-batch of ``job`` on one GPU, in that of ``base``."""
    if job.model is None or base.model is None:
        return 1.0
    return micro_batch_work(job) / micro_batch_work(base)


def timed(job: Job, time: float, fixed: float = 0.0, step_error: float = 0.0) -> Job:
    """``job`` with these compute times, s."""
    compute = replace(
        job.compute,
        micro_batch_time=time,
        tflops_per_gpu=0.0,
        fixed_time=fixed,
        step_error=step_error,
    )
    return replace(job, compute=compute)
