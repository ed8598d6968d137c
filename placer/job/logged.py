"""The step of a job in the log of its run, and the time of a micro-batch by it."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from placer.base.errors import InputError
from placer.documents import Section
from placer.documents.files import beside
from placer.job.model import Job
from placer.job.paces import rounds
from placer.logs.steps import Steps, read_steps


def step_of(steps: Steps, job: Job) -> float:
    """The median step of the job that ran, s."""
    batch = job.parallelism.dp * job.micro_batches * job.micro_batch
    for told, wanted, words in (
        (steps.batch, batch, "sequences of a step"),
        (steps.accumulation, job.micro_batches, "micro-batches of a replica"),
        (steps.sequence, job.sequence, "tokens of a sequence"),
    ):
        if told and told != wanted:
            message = f"the log has {told:,} {words}, the job {wanted:,}"
            raise InputError(message, steps.source, hint="is it of this job?")
    if steps.seconds:
        return median(steps.seconds)
    axes = job.parallelism
    tokens = job.sequence * job.micro_batch * job.micro_batches
    return tokens / (axes.tp * axes.cp * axes.pp) / median(steps.tokens_per_gpu)


def logged(section: Section, job: Job) -> Job:
    """The job with the micro-batch time of the log that ``compute`` names, if any.

    A step is so many micro-batch times of the slowest stage as `rounds` says, and the
    fixed time. What communication was exposed counts as work; ``placer calibrate``
    tells them apart.
    """
    value = section.get("log")
    name = value.text() if value else ""
    if value is None or not name:
        return job
    path = beside(section.document.source, name)
    step = value.made(lambda: step_of(read_steps(path), job), default=None)
    if step is None:
        return job
    fixed = job.compute.fixed_s
    if step <= fixed:
        value.problem(f"a step of {step:g} s is no longer than fixed_time {fixed:g} s")
        return job
    time = step - fixed
    for _ in range(3):  # the first is all, but where memory has a rate
        compute = replace(job.compute, micro_batch_time=time)
        time = (step - fixed) / rounds(replace(job, compute=compute))
    return replace(job, compute=replace(job.compute, micro_batch_time=time))
