"""What backward computes again, because the forward pass did not keep it.

FLOPs of one sample, in those of matrix products (a FLOP of attention proper takes
``1 / attention_rate`` times as long). A forward pass multiplies each parameter by
``2 s`` FLOPs and attends for ``4 L h s^2`` (Narayanan et al. 2021, arXiv 2104.04473,
appendix). Norms and activation functions are no products and cost nothing here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.job.adapters import visited_adapters
from placer.job.models import (
    Model,
    active_parameters,
    attention_flops,
    expert_parameters,
    feed_forward_parameters,
)

if TYPE_CHECKING:
    from placer.job.model import Job


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
    attention = attention_flops(model, job.sequence, causal=False) / 3
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
