"""Llama 3 rates if the paper counts the FLOPs of causal attention only."""

from __future__ import annotations

from dataclasses import replace

from placer.api.score import score
from placer.calibrate.fit import calibrate
from placer.job.model import Compute, Job
from placer.job.models import attention_flops, flops_per_sample
from placer.placement.baselines import baseline
from validation.files import series


def rate_errors() -> list[float]:
    """Errors of the predicted rates of rows 2 and 3, rates and work counted causal."""
    measured = series("llama3-405b-rates")
    first, *others = measured.points
    published = 430e12
    step = _flops(first.job) / first.job.world_size / published
    fit = calibrate(replace(measured, points=(replace(first, runs_s=(step,)),)))
    errors = []
    for point, rate in zip(others, (400e12, 380e12), strict=True):
        job = point.job
        time = fit.micro_batch_s * _work(job) / _work(first.job)
        timed = replace(job, compute=Compute(micro_batch_time=time))
        placement = baseline("given-order", point.topology, timed)
        found = score(point.topology, timed, placement)["step_time_s"]
        errors.append(_flops(job) / job.world_size / found / rate - 1)
    return errors


def _flops(job: Job) -> float:
    """Causal FLOPs of a step."""
    if job.model is None:
        return 0.0
    samples = job.parallelism.dp * job.micro_batches * job.micro_batch
    return samples * (
        flops_per_sample(job.model, job.sequence)
        - attention_flops(job.model, job.sequence) / 2
    )


def _work(job: Job) -> float:
    """Causal FLOPs of one micro-batch on one GPU."""
    return _flops(job) / job.world_size / job.micro_batches
