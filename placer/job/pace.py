"""Time of a micro-batch at another shape than the one whose time is known.

A stage takes the time of its products, and that of the bytes of what multiplies nothing
(`elementwise`) where the memory's rate is known. A pipeline goes at the pace of its
slowest stage. With F FLOPs and l layers in a stage, r seconds a FLOP and x seconds of
memory a layer:

    t = max over stages of (F r + l x)      so      r = min over stages of (t - l x) / F

The known time gives r. It changes with how well products use a GPU, and gives the time
at the other shape.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from placer.job.elementwise import elementwise_bytes
from placer.job.recompute import flops_again
from placer.job.work import (
    micro_batch_time,
    micro_batch_work,
    product_efficiency,
    sample_work,
)

if TYPE_CHECKING:
    from placer.job.model import Compute, Job, Model


class Stage(NamedTuple):
    """What one stage does with a micro-batch, on one of its GPUs."""

    flops: float
    layers: float


def stages(job: Job, model: Model) -> list[Stage]:
    """FLOPs and layers of each stage.

    Stages hold whole layers, the first ones one more where these do not divide; what
    embedding and loss count for is missing from the ends (`EndStages`). The last stage
    multiplies with the output layer too, and has the layers that predict further
    tokens: each joins two widths into one and has an output of its own (Megatron-LM
    d98e8a64, ``core/transformer/multi_token_prediction.py``). The embedding is looked
    up.
    """
    axes, further = job.parallelism, model.mtp_layers
    share = job.micro_batch / (axes.tp * axes.cp)
    head = 6.0 * job.sequence * model.vocab * model.hidden * share
    joined = 12.0 * job.sequence * model.hidden**2 * share
    layer = ((sample_work(job) + flops_again(job)) * share - head) / model.layers
    chunks = axes.pp * axes.vp
    whole, more = divmod(model.layers + job.stages.embedding + job.stages.loss, chunks)
    held = [whole + min(1.0, max(0.0, more - chunk)) for chunk in range(chunks)]
    held[0] -= job.stages.embedding
    held[-1] += further - job.stages.loss
    layers = [sum(held[stage :: axes.pp]) for stage in range(axes.pp)]
    *others, last = (Stage(count * layer, count) for count in layers)
    end = head + further * (head + joined)
    return [*others, last._replace(flops=last.flops + end)]


def memory_seconds(job: Job, model: Model) -> float:
    """Seconds of memory of a layer and micro-batch; 0 where its rate is not known."""
    rate = job.compute.memory_bandwidth
    return elementwise_bytes(job, model) / rate if rate else 0.0


def seconds_per_flop(job: Job, model: Model) -> float:
    """Of the job's products, from the time of its micro-batch; 0 or less if none is.

    With a rate it is that of products and bytes together, as a run shows it.
    """
    each = memory_seconds(job, model)
    time = micro_batch_time(job)
    return min(
        (time - stage.layers * each) / stage.flops for stage in stages(job, model)
    )


def compute_at(job: Job, changed: Job) -> Compute:
    """Compute times of a job that another shape or recompute mode makes of ``job``.

    A measured time and a rate follow the slowest stage, and how well products use a GPU
    (`product_efficiency`).
    """
    compute, axes, before = job.compute, changed.parallelism, job.parallelism
    if job.model is None:
        return compute
    each = seconds_per_flop(job, job.model)
    better = product_efficiency(changed, tp=axes.tp, cp=axes.cp)
    better /= product_efficiency(job, tp=before.tp, cp=before.cp)
    # Its own pace is its time but for rounding: at its own shape nothing changes.
    longer = _pace(changed, job.model, each / better) / _pace(job, job.model, each)
    if compute.micro_batch_time:
        return replace(compute, micro_batch_time=compute.micro_batch_time * longer)
    more = micro_batch_work(changed) / micro_batch_work(job)
    return replace(compute, tflops_per_gpu=compute.tflops_per_gpu * (more / longer))


def _pace(job: Job, model: Model, each: float) -> float:
    """Seconds of the slowest stage, with so many of a FLOP."""
    beside = memory_seconds(job, model)
    return max(
        stage.flops * each + stage.layers * beside for stage in stages(job, model)
    )
