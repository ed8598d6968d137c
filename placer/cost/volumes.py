"""Bytes that one GPU sends, from the shape of the model and the job alone.

Symbols: t, c, p, e are the TP, CP, PP and EP degrees, v the chunks of a pipeline rank,
``act = (s/c) b h w`` the activation slab of one context-parallel rank. Sources:
Megatron-LM d98e8a64, ``core/tensor_parallel/``, ``core/pipeline_parallel/schedules.py``
(``get_tensor_shapes``) and ``core/transformer/transformer_config.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from placer.job.models import expert_parameters, layer_parameters

if TYPE_CHECKING:
    from placer.job.model import Job, Model

# A layer's forward pass runs two all-gathers and two reduce-scatters over TP with
# sequence parallelism, its backward the same; the gathers that backward repeats for the
# weight gradients run beside the input-gradient product (Megatron-LM, layers.py).
TP_OPERATIONS_PER_PASS = 4
# Dispatch and combine, once in each pass of an MoE layer.
EP_OPERATIONS_PER_PASS = 2


@dataclass(frozen=True)
class Volumes:
    """Bytes of each operation, per GPU.

    Attributes
    ----------
    layers_per_chunk, moe_layers_per_chunk : float
        Layers that one GPU holds in one chunk.
    tp_slab : float, bytes
        Full slab that a TP all-gather assembles or a reduce-scatter takes.
    cp_block : float, bytes
        Keys and values that one hop of the CP ring carries.
    pp_message : float, bytes
        Activation sent from a stage to the next.
    ep_buffer : float, bytes
        Tokens one GPU hands to an all-to-all, before the share it keeps is taken out.
    dense_chunk, expert_chunk : float
        Parameters of one chunk that one GPU holds, outside and inside experts.
    """

    layers_per_chunk: float = 0.0
    moe_layers_per_chunk: float = 0.0
    tp_slab: float = 0.0
    cp_block: float = 0.0
    pp_message: float = 0.0
    ep_buffer: float = 0.0
    dense_chunk: float = 0.0
    expert_chunk: float = 0.0


def volumes(job: Job) -> Volumes:
    """The job's volumes; all zero without a model."""
    model = job.model
    if model is None:
        return Volumes()
    axes = job.parallelism
    chunks = axes.pp * axes.vp
    width = job.bytes.activation
    slab = job.sequence / axes.cp * job.micro_batch * model.hidden * width
    return Volumes(
        layers_per_chunk=model.layers / chunks,
        moe_layers_per_chunk=model.moe_layers / chunks,
        tp_slab=slab,
        cp_block=_key_value_block(job, model),
        pp_message=slab / axes.tp,
        ep_buffer=slab * model.top_k / axes.tp,
        dense_chunk=_dense_parameters(model) / chunks / axes.tp,
        expert_chunk=model.moe_layers
        * model.experts
        * expert_parameters(model)
        / (chunks * axes.etp * axes.ep),
    )


def _key_value_block(job: Job, model: Model) -> float:
    """``2 (s/c) b (k/t) (h/a) w``: keys and values of one context-parallel rank."""
    axes = job.parallelism
    head = model.hidden / model.heads
    heads = max(model.kv_heads / axes.tp, 1.0)
    tokens = job.sequence / axes.cp * job.micro_batch
    return 2.0 * tokens * heads * head * job.bytes.activation


def _dense_parameters(model: Model) -> float:
    """Parameters of all layers outside routed experts."""
    dense = (model.layers - model.moe_layers) * layer_parameters(model)
    moe = model.moe_layers * layer_parameters(model, moe=True)
    return dense + moe - model.moe_layers * model.experts * expert_parameters(model)
