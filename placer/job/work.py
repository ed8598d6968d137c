"""Work of a micro-batch on one GPU, and how well its matrix products use the GPU.

FLOPs are in those of matrix products (a FLOP of attention proper takes ``1 /
attention_rate`` times as long). A forward pass multiplies each parameter by ``2 s``
FLOPs and attends for ``4 L h s^2`` (Narayanan et al. 2021, arXiv 2104.04473, appendix).
Norms and activation functions are no products and cost nothing here.
"""

from __future__ import annotations

from itertools import pairwise
from math import log
from typing import TYPE_CHECKING

from placer.job.adapters import visited_adapters
from placer.job.models import (
    Model,
    active_parameters,
    attention_flops,
    attention_widths,
    expert_parameters,
    feed_forward_parameters,
    flops_per_sample,
)

if TYPE_CHECKING:
    from placer.job.model import Job

TILE = 256, 128


def fill(job: Job, model: Model) -> float:
    """Share of the peak that a dense layer reaches as ranks cut its products.

    Attention proper has a rate of its own.
    """
    compute, axes = job.compute, job.parallelism
    tokens = job.micro_batch * -(-job.sequence // axes.cp)
    depth = 0.0
    if compute.peak_tflops and compute.memory_bandwidth:
        ridge = compute.peak_tflops * 1e12 / compute.memory_bandwidth
        depth = job.bytes.activation * ridge / 2
    useful = taken = 0.0
    for into, out in _widths(model, axes.tp):
        # Forward, gradient of the inputs and, of weights that are trained, their own.
        products = [(tokens, out, into), (tokens, into, out), (out, into, tokens)]
        for m, n, k in products[: 3 if job.adapters is None else 2]:
            useful += m * n * k
            taken += _tiles(m, n, compute.multiprocessors) * (k + depth)
    attention = attention_flops(model, job.sequence)
    share = attention / compute.attention_rate / sample_work(job)
    return 1 / ((1 - share) * taken / useful + share)


def _widths(model: Model, tp: int) -> list[tuple[int, int]]:
    """Inputs and outputs of a layer's products on one of ``tp`` ranks."""
    queries, values = (int(width) for width in attention_widths(model))
    kept = model.kv_heads / model.heads
    heads = int(queries + kept * (queries + values)) // tp
    width, ffn = model.hidden, model.ffn // tp
    up = [(width, ffn)] * (2 if model.gated else 1)
    return [(width, heads), (values // tp, width), *up, (ffn, width)]


def _tiles(m: int, n: int, multiprocessors: int) -> int:
    """Results that all waves of a product have room for, the tile either way round."""
    waves = min(
        -(-(-(-m // high) * -(-n // wide)) // multiprocessors)
        for high, wide in (TILE, TILE[::-1])
    )
    return waves * multiprocessors * TILE[0] * TILE[1]


# Share of the best rate that a product reaches which takes so many seconds at its GPU's
# peak (Calculon, caa4b11f, `systems/h100_80g_nvl8.json`: steps at 1, 16 and 128 GFLOP
# of an H100), on straight lines over the logarithm.
PEAK = 989.0  # of an H100 in bf16, 10^12 FLOP/s, where a GPU's own is not known
EFFICIENCY = ((1e-3 / PEAK, 0.60), (16e-3 / PEAK, 0.90), (128e-3 / PEAK, 0.95))
LEAST_EFFICIENCY = 0.10  # of still smaller products, same source


def micro_batch_work(job: Job) -> float:
    """FLOPs of one micro-batch on one GPU, in those of matrix products.

    A FLOP of attention proper takes ``1 / attention_rate`` times as long; what backward
    computes again counts too. 0 without a model.
    """
    axes = job.parallelism
    sample = sample_work(job) + flops_again(job)
    return job.micro_batch * sample / (axes.tp * axes.cp * axes.pp)


def micro_batch_time(job: Job) -> float:
    """Seconds a micro-batch keeps one stage busy, measured or from FLOPs and rate."""
    if job.compute.micro_batch_time or job.model is None:
        return job.compute.micro_batch_time
    return micro_batch_work(job) / (job.compute.tflops_per_gpu * 1e12)


def sample_work(job: Job) -> float:
    """FLOPs of one sample on all GPUs of a replica, nothing computed again."""
    if job.model is None:
        return 0.0
    longer = 1 / job.compute.attention_rate - 1
    sample = flops_per_sample(job.model, job.sequence)
    if job.adapters is not None:
        # A weight that stays as it is needs no gradient of its own.
        frozen = 2.0 * active_parameters(job.model)
        trained = 6.0 * visited_adapters(job.model, job.adapters)
        sample += (trained - frozen) * job.sequence
    return sample + longer * attention_flops(job.model, job.sequence)


def forward_work(job: Job, model: Model) -> float:
    """The part of `sample_work` that is the forward pass."""
    if job.adapters is None:
        return sample_work(job) / 3
    products = active_parameters(model) + visited_adapters(model, job.adapters)
    attention = attention_flops(model, job.sequence) / 3
    return 2.0 * products * job.sequence + attention / job.compute.attention_rate


def product_efficiency(job: Job) -> float:
    """Share of the best rate that a layer's products reach as ranks cut them.

    Of all of them, by the time that each takes at the GPU's peak; 1 without a model.
    What small products of routed experts cost goes beside them (`placer.job.beside`).
    Where a job says its GPU's multiprocessors, what a dense layer fills of them.
    """
    if job.model is None:
        return 1.0
    latent_or_moe = job.model.kv_lora_rank or job.model.moe_layers
    if job.compute.multiprocessors and not latent_or_moe:
        return fill(job, job.model)
    peak = (job.compute.peak_tflops or PEAK) * 1e12
    axes = job.parallelism
    tokens = job.sequence * job.micro_batch / (axes.tp * axes.cp)
    products = [2.0 * tokens * size for size in _products(job.model)]
    taken = sum(flops / _efficiency(flops / peak) for flops in products)
    dense = sum(products) / taken
    share = _share_of_experts(job.model, job.sequence)
    if share == 0.0:
        return dense
    return 1 / ((1 - share) / dense + share)


def _efficiency(seconds: float) -> float:
    """Share of the peak of a product that takes so many seconds at it."""
    for (small, low), (large, high) in pairwise(EFFICIENCY):
        if seconds < large:
            slope = (high - low) / log(large / small)
            return max(LEAST_EFFICIENCY, high + slope * log(seconds / large))
    return EFFICIENCY[-1][1]


def _share_of_experts(model: Model, sequence: int) -> float:
    """Share of a sample's FLOPs that are those of routed experts."""
    visited = model.moe_layers * model.top_k * expert_parameters(model)
    return 6.0 * sequence * visited / flops_per_sample(model, sequence)


def _products(model: Model) -> list[float]:
    """Parameters of each matrix of a dense layer, those that share an input as one.

    Queries, keys and values; what attention gives; up and down again.
    """
    queries, values = attention_widths(model)
    heads = queries + model.kv_heads / model.heads * (queries + values)
    shared = model.shared_experts * model.expert_ffn
    ffn = model.ffn if model.moe_layers < model.layers else shared
    up = 2 if model.gated else 1
    widths = [heads, values, up * ffn, ffn]
    return [model.hidden * width for width in widths if width]


def layers_again(job: Job) -> float:
    """Share of the layers whose whole forward pass runs twice, its traffic too.

    All with ``recompute: full``; so many of each chunk with its method ``block``.
    """
    memory, model = job.memory, job.model
    if memory.recompute != "full" or model is None:
        return 0.0
    if memory.recompute_method == "uniform":
        return 1.0
    axes = job.parallelism
    layers = model.layers + job.stages.embedding + job.stages.loss
    return min(1.0, memory.recompute_layers * axes.pp * axes.vp / layers)


def experts_again(job: Job) -> float:
    """Share of the expert layers whose dispatch and combine run twice forward."""
    return 1.0 if job.memory.recomputes("moe") else layers_again(job)


def flops_again(job: Job) -> float:
    """FLOPs that backward repeats of one sample's forward pass."""
    model = job.model
    if model is None or job.memory.recompute == "none":
        return 0.0
    products = 2.0 * (active_parameters(model) - model.vocab * model.hidden)
    if job.adapters is not None:
        products += 2.0 * visited_adapters(model, job.adapters)
    products *= job.sequence
    if job.memory.recompute == "op":
        # Every second product is kept, and so is what attention gave.
        return products / 2
    attention = attention_flops(model, job.sequence) / 3
    attention /= job.compute.attention_rate
    if job.memory.recompute == "full":
        return layers_again(job) * (products + attention)
    again = attention if job.memory.recomputes("core_attn") else 0.0
    return again + 2.0 * job.sequence * _parameters_again(job, model)


def _parameters_again(job: Job, model: Model) -> float:
    """Parameters of the modules that ``selective`` computes again, in all layers."""
    dense = model.layers - model.moe_layers
    shared = model.shared_experts * expert_parameters(model)
    visited = model.hidden * model.experts + model.top_k * expert_parameters(model)
    up = model.kv_lora_rank * (model.qk_head_dim + model.v_head_dim)
    up += model.q_lora_rank * (model.qk_head_dim + model.rope_head_dim)
    parameters = {
        "mla_up_proj": model.layers * model.heads * up,
        "mlp": dense * feed_forward_parameters(model),
        "moe": model.moe_layers * visited,
        "shared_experts": model.moe_layers * shared,
    }
    return float(
        sum(size for key, size in parameters.items() if job.memory.recomputes(key))
    )
