"""Work of a micro-batch on one GPU, and how well its matrix products use the GPU."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING

from placer.job.models import (
    attention_flops,
    attention_widths,
    expert_parameters,
    flops_per_sample,
)
from placer.job.recompute import flops_again

if TYPE_CHECKING:
    from placer.job.model import Compute, Job, Model

# Share of the best rate that a product of so many FLOPs reaches on an H100 (Calculon,
# caa4b11f, `systems/h100_80g_nvl8.json`: steps at 1, 16 and 128 GFLOP), on straight
# lines over the logarithm.
EFFICIENCY = ((1e9, 0.60), (16e9, 0.90), (128e9, 0.95))
LEAST_EFFICIENCY = 0.10  # of still smaller products, same source


def micro_batch_work(job: Job) -> float:
    """FLOPs of one micro-batch on one GPU, in those of matrix products.

    A FLOP of attention proper takes ``1 / attention_rate`` times as long; what backward
    computes again counts too. 0 without a model.
    """
    axes = job.parallelism
    sample = sample_work(job) + flops_again(job)
    return job.micro_batch * sample / (axes.tp * axes.cp * axes.pp)


def sample_work(job: Job) -> float:
    """The same of one sample on all GPUs of a replica, nothing computed again."""
    if job.model is None:
        return 0.0
    longer = 1 / job.compute.attention_rate - 1
    sample = flops_per_sample(job.model, job.sequence, causal=False)
    return sample + longer * attention_flops(job.model, job.sequence, causal=False)


def product_efficiency(job: Job, *, tp: int, cp: int) -> float:
    """Share of the best rate that a layer's products reach when so many ranks cut them.

    That of the smallest; 1 without a model. Routed experts count apart, for their share
    of the work: each of them multiplies the tokens that visit it alone.
    """
    if job.model is None:
        return 1.0
    samples = job.micro_batch / (tp * cp)
    dense = _efficiency(_smallest_product(job.model, job.sequence, samples))
    share = _share_of_experts(job.model, job.sequence)
    if share == 0.0:
        return dense
    tokens = job.sequence * samples * job.parallelism.ep
    tokens *= job.model.top_k / job.model.experts
    experts = _efficiency(2.0 * tokens * job.model.hidden * job.model.expert_ffn)
    return 1 / ((1 - share) / dense + share / experts)


def _efficiency(flops: float) -> float:
    """The same of a product of so many FLOPs."""
    for (small, low), (large, high) in pairwise(EFFICIENCY):
        if flops < large:
            slope = (high - low) / log(large / small)
            return max(LEAST_EFFICIENCY, high + slope * log(flops / large))
    return EFFICIENCY[-1][1]


def _share_of_experts(model: Model, sequence: int) -> float:
    """Share of a sample's FLOPs that are those of routed experts."""
    visited = model.moe_layers * model.top_k * expert_parameters(model)
    return 6.0 * sequence * visited / flops_per_sample(model, sequence, causal=False)


def _smallest_product(model: Model, sequence: int, share: float) -> float:
    """FLOPs of the smallest of a dense layer's products, ``share`` of a sample.

    Attention's output, its scores (all heads together) and the feed-forward's two.
    """
    queries, values = attention_widths(model)
    products = [model.hidden * values, sequence * queries]
    if model.moe_layers < model.layers:
        products.append(model.hidden * model.ffn)
    return 2.0 * sequence * min(products) * share


def evenness(job: Job) -> float:
    """Mean work of the stages, in that of the slowest, which sets a pipeline's pace.

    Stages hold whole layers, the first ones one more where these do not divide; what
    embedding and loss count for is missing from the ends (`EndStages`). The last stage
    has `_end_work` besides; the embedding is looked up. 1 without a model.
    """
    axes, model = job.parallelism, job.model
    if model is None or axes.pp == 1:
        return 1.0
    end, chunks = _end_work(job, model), axes.pp * axes.vp
    whole, more = divmod(model.layers + job.stages.embedding + job.stages.loss, chunks)
    held = [whole + min(1.0, max(0.0, more - chunk)) for chunk in range(chunks)]
    held[0] -= job.stages.embedding
    held[-1] += end - job.stages.loss
    slowest = max(sum(held[stage :: axes.pp]) for stage in range(axes.pp))
    return (model.layers + end) / axes.pp / slowest


def _end_work(job: Job, model: Model) -> float:
    """Work at the end of the model, in that of a layer.

    The product with the output layer. Each layer that predicts further tokens joins two
    widths into one and has a product of its own with it (Megatron-LM d98e8a64,
    ``core/transformer/multi_token_prediction.py``).
    """
    head = 6.0 * job.sequence * model.vocab * model.hidden
    layer = (sample_work(job) - head + flops_again(job)) / model.layers
    joined = 12.0 * job.sequence * model.hidden**2
    return (head + model.mtp_layers * (head + joined + layer)) / layer


def compute_at(job: Job, changed: Job) -> Compute:
    """Compute times of a job that another shape or recompute mode makes of ``job``.

    A measured time follows the work of a micro-batch on one GPU, and both it and a rate
    how well products use a GPU (`product_efficiency`) and how even stages are
    (`evenness`).
    """
    compute, axes = job.compute, changed.parallelism
    if job.model is None:
        return compute
    before = product_efficiency(job, tp=job.parallelism.tp, cp=job.parallelism.cp)
    better = product_efficiency(changed, tp=axes.tp, cp=axes.cp) / before
    better *= evenness(changed) / evenness(job)
    if compute.micro_batch_time:
        work = micro_batch_work(changed) / micro_batch_work(job)
        time = compute.micro_batch_time * work / better
        return replace(compute, micro_batch_time=time)
    return replace(compute, tflops_per_gpu=compute.tflops_per_gpu * better)
