"""Bytes that one GPU sends, from the shape of the model and the job alone.

Symbols: t, c, p, e are the TP, CP, PP and EP degrees, v the chunks of a pipeline rank,
``act = (s/c) b h w`` the activation slab of one context-parallel rank. Sources:
Megatron-LM d98e8a64, ``core/tensor_parallel/``, ``core/pipeline_parallel/schedules.py``
(``get_tensor_shapes``) and ``core/transformer/transformer_config.py``. Shapes: P
stages, V chunks a stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placer.base.arrays import FloatArray
from placer.job.adapters import Adapters, adapters_of_layer
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.models import (
    Model,
    attention_widths,
    expert_parameters,
    layer_parameters,
    padded_vocabulary,
)

# Dispatch and combine, once in each pass of an MoE layer.
EP_OPERATIONS_PER_PASS = 2


@dataclass(frozen=True)
class Volumes:
    """Bytes of each operation, per GPU.

    Layers, embedding and loss (at what the job counts them for) are spread evenly over
    all chunks. A full chunk holds layers alone; in the first and the last one embedding
    and loss take the place of some.
    """

    # stages and chunks: P and V.
    stages: int
    chunks: int
    # layers_per_chunk and moe_layers_per_chunk: layers that one GPU holds in a full
    # chunk.
    layers_per_chunk: float = 0.0
    moe_layers_per_chunk: float = 0.0
    # embedding_share and loss_share: share of the first chunk that the embedding, and
    # of the last chunk that the loss takes.
    embedding_share: float = 0.0
    loss_share: float = 0.0
    # Bytes: full slab that a TP all-gather assembles, a reduce-scatter or an all-reduce
    # takes.
    tp_slab: float = 0.0
    cp_block: float = 0.0  # bytes: keys and values of one context-parallel rank
    # cp_queries and cp_outputs, bytes: queries, and attention outputs, of one.
    cp_queries: float = 0.0
    cp_outputs: float = 0.0
    pp_message: float = 0.0  # bytes: activation sent from a stage to the next
    # Bytes: tokens the busiest GPU hands to an all-to-all, before the share it keeps is
    # taken out.
    ep_buffer: float = 0.0
    # dense_chunk and expert_chunk: parameters of a full chunk that one GPU holds,
    # outside and inside experts.
    dense_chunk: float = 0.0
    expert_chunk: float = 0.0
    # embedding_parameters and output_parameters: of the vocabulary, on one GPU of the
    # first and of the last stage.
    embedding_parameters: float = 0.0
    output_parameters: float = 0.0
    tied_parameters: float = 0.0  # those that first and last stage hold both, and train
    # Parameters of adapters in a full chunk, outside and inside experts, where nothing
    # else is trained.
    adapters: tuple[float, float] | None = None

    @cached_property
    def layer_share(self) -> FloatArray:
        """Layers of each chunk, in those of a full one; shape (P, V)."""
        share = np.ones((self.stages, self.chunks))
        share[0, 0] -= self.embedding_share
        share[-1, -1] -= self.loss_share
        # 1 - 1/3 - 2/3 is not quite 0.
        return np.where(share < 1e-12, 0.0, share)

    def dense_parameters(self, *, frozen: bool = False) -> FloatArray:
        """Parameters outside experts that one GPU trains of each chunk; shape (P, V).

        With ``frozen`` all that it holds.
        """
        trained = 0.0 if self.adapters is None else self.adapters[0]
        if self.adapters is not None and not frozen:
            return trained * self.layer_share
        held = (self.dense_chunk + trained) * self.layer_share
        held[0, 0] += self.embedding_parameters
        held[-1, -1] += self.output_parameters
        return held

    def expert_parameters(self, *, frozen: bool = False) -> FloatArray:
        """Parameters inside experts that one GPU trains of each chunk; shape (P, V)."""
        trained = 0.0 if self.adapters is None else self.adapters[1]
        if self.adapters is not None and not frozen:
            return trained * self.layer_share
        return (self.expert_chunk + trained) * self.layer_share


def volumes(job: Job) -> Volumes:
    """The job's volumes; all zero without a model."""
    model = job.model
    axes = job.parallelism
    if model is None:
        return Volumes(axes.pp, axes.vp)
    counted = model.layers + job.stages.embedding + job.stages.loss
    layers = counted / (axes.pp * axes.vp)
    moe_layers = layers * model.moe_layers / model.layers
    width = job.bytes.activation
    slab = job.tokens * model.hidden * width
    # Without sequence parallelism every tp rank holds all tokens.
    slice_ = slab / axes.tp if job.tensor_parallel.sequence else slab
    vocabulary = padded_vocabulary(model, axes.tp) * model.hidden / axes.tp
    queries, values = attention_widths(model)
    of_heads = job.tokens * width / axes.tp
    kept = max(model.kv_heads, axes.tp) / model.heads
    is_tied = model.tied_embeddings and axes.pp > 1 and job.adapters is None
    one_copy = model.tied_embeddings and axes.pp == 1
    return Volumes(
        stages=axes.pp,
        chunks=axes.vp,
        layers_per_chunk=layers,
        moe_layers_per_chunk=moe_layers,
        embedding_share=job.stages.embedding / layers,
        loss_share=job.stages.loss / layers,
        tp_slab=slab,
        cp_block=of_heads * kept * (queries + values),
        cp_queries=of_heads * queries,
        cp_outputs=of_heads * values,
        pp_message=slice_,
        ep_buffer=slice_ * model.top_k * job.expert_parallel.imbalance,
        dense_chunk=layers / model.layers * _dense_parameters(model) / axes.tp,
        expert_chunk=moe_layers
        * model.experts
        * expert_parameters(model)
        / (axes.etp * axes.ep),
        embedding_parameters=vocabulary,
        output_parameters=0.0 if one_copy else vocabulary,
        tied_parameters=vocabulary if is_tied else 0.0,
        adapters=None
        if job.adapters is None
        else _adapters(model, axes, job.adapters, layers / model.layers),
    )


def _adapters(
    model: Model, axes: Parallelism, adapters: Adapters, share: float
) -> tuple[float, float]:
    """Parameters of the adapters of so many layers, cut as the matrices beside them."""
    one = adapters_of_layer(model, adapters)
    dense, experts = (model.layers - model.moe_layers) * one.dense, 0.0
    if model.moe_layers:
        one = adapters_of_layer(model, adapters, moe=True)
        dense += model.moe_layers * one.dense
        experts = model.moe_layers * one.experts
    return share * dense / axes.tp, share * experts / (axes.etp * axes.ep)


def _dense_parameters(model: Model) -> float:
    """Parameters of all layers outside routed experts."""
    dense = (model.layers - model.moe_layers) * layer_parameters(model)
    moe = model.moe_layers * layer_parameters(model, moe=True)
    return dense + moe - model.moe_layers * model.experts * expert_parameters(model)
