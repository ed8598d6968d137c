"""The step of a job in the log of its run."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from placer.base.errors import InputError, Problem

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.logs.steps import Steps


def step_of(steps: Steps, job: Job) -> float:
    """The median step of the job that ran, s.

    Raises
    ------
    InputError
        If the log is of another batch, or of other sequences, than the job.
    """
    batch = job.parallelism.dp * job.micro_batches * job.micro_batch
    for told, wanted, words in (
        (steps.batch, batch, "sequences of a step"),
        (steps.accumulation, job.micro_batches, "micro-batches of a replica"),
        (steps.sequence, job.sequence, "tokens of a sequence"),
    ):
        if told and told != wanted:
            message = f"the log has {told:,} {words}, the job {wanted:,}"
            raise InputError(
                [Problem(message, steps.source, hint="is it of this job?")]
            )
    if steps.seconds:
        return median(steps.seconds)
    axes = job.parallelism
    tokens = job.sequence * job.micro_batch * job.micro_batches
    return tokens / (axes.tp * axes.cp * axes.pp) / median(steps.tokens_per_gpu)
