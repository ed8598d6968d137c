"""A GPU's memory by part, for every pipeline rank.

All bytes. Rank ``s`` of the pipeline stands for all GPUs of that stage; its chunk ``v``
is the ``v P + s``-th of the model. Shapes: P pipeline ranks, V chunks a rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from placer.base.arrays import FloatArray
from placer.cost.footprint.activations import activations
from placer.cost.footprint.parameters import (
    Held,
    States,
    adapters_of,
    held_at_ends,
    held_of_layer,
)
from placer.cost.volumes import Volumes, volumes
from placer.job.model import Job
from placer.job.models import Model

_GIB = 2.0**30
# Context and kernels, 0.5 to 1.8 GiB by framework and GPU: stas00/ml-engineering
# 744d01e1, training/performance/README.md. A communicator of NCCL, 0.5 to 1.6 GB by its
# size: NVIDIA/nccl issues 864, 964 and 1685.
_CONTEXT = 1.0 * _GIB
_COMMUNICATOR = 0.7 * _GIB

PARTS = ("parameters", "gradients", "optimizer", "activations", "other")


@dataclass(frozen=True)
class Footprint:
    """Memory of one GPU of a pipeline rank, bytes."""

    # parameters, gradients and optimizer: states of training, gathered weights
    # included.
    parameters: float
    gradients: float
    optimizer: float
    # What micro-batches in flight keep, the logits, and one layer computed again.
    activations: float
    other: float  # outside the framework's allocator; the rest is inside
    stage: int  # the pipeline rank
    # The part of ``activations`` that layers keep for their backward passes.
    kept: float

    @property
    def total(self) -> float:
        """All parts."""
        return sum(float(getattr(self, part)) for part in PARTS)

    @property
    def allocated(self) -> float:
        """Without what lies outside the allocator: what frameworks report."""
        return self.total - self.other

    def to_dict(self) -> dict[str, float]:
        """The parts, their sum and the stage, as in a score."""
        parts = {part: float(getattr(self, part)) for part in PARTS}
        return {**parts, "total": self.total, "stage": self.stage}


def memory_score(job: Job, limit: float) -> dict[str, Any]:
    """Keys of a score about memory: what a GPU needs, and its ``limit`` if known.

    Nothing for a job without a model. ``by_stage`` holds the total of every pipeline
    rank; the parts are those of the fullest. Of a workload they are those of the
    ``role`` that needs most.
    """
    needs = [needs_of(job)]
    needs += [need | {"role": r.name} for r in job.roles if (need := needs_of(r.job))]
    fullest = max(needs, key=lambda need: need.get("total", 0.0))
    if not fullest:
        return {}
    return {"memory_bytes": fullest} | ({"memory_limit_bytes": limit} if limit else {})


def needs_of(job: Job) -> dict[str, Any]:
    """``memory_bytes`` of a score; empty for a job without a model."""
    stages = footprints(job)
    if not stages:
        return {}
    fullest = max(stages, key=lambda stage: stage.total)
    return fullest.to_dict() | {"by_stage": [stage.total for stage in stages]}


def footprint(job: Job) -> Footprint | None:
    """Memory of a GPU of the fullest stage; None for a job without a model."""
    return max(footprints(job), key=lambda stage: stage.total, default=None)


def footprints(job: Job) -> tuple[Footprint, ...]:
    """Memory of a GPU of every pipeline rank; none for a job without a model."""
    model = job.model
    if model is None:
        return ()
    sizes, how, other = volumes(job), States(job), _outside(job)
    layers = _layers_by_chunk(job, model, sizes)
    held, ends, beside, trained = _held_by_stage(job, model, *layers)
    unit, of_unit = _largest_layer(job, model)
    kept, most = activations(job, model, *layers, sizes.cp_block)
    return tuple(
        Footprint(
            parameters=how.parameters(held[stage], unit, ends[stage], beside[stage]),
            gradients=how.gradients(trained[stage], of_unit),
            optimizer=how.optimizers(trained[stage]),
            activations=most[stage],
            other=other,
            stage=stage,
            kept=kept[stage],
        )
        for stage in range(job.parallelism.pp)
    )


def restart_bytes(job: Job) -> float:
    """Bytes that a rank reads back after a failure: weights and optimizer states.

    Every rank of the job does, as all start again from the last checkpoint. A rank
    reads what it keeps between steps, of the stage where that is the most; gradients
    and activations are made anew. 0 for a job without a model.
    """
    model = job.model
    if model is None:
        return 0.0
    layers, how = _layers_by_chunk(job, model, volumes(job)), States(job)
    held, _, beside, trained = _held_by_stage(job, model, *layers)
    return max(
        how.weights(*weights) + how.optimizers(states)
        for *weights, states in zip(held, beside, trained, strict=True)
    )


def _layers_by_chunk(
    job: Job, model: Model, sizes: Volumes
) -> tuple[FloatArray, FloatArray]:
    """Dense and MoE layers of each chunk; two arrays of shape (P, V).

    Layers are spread as for the step time (`placer.cost.volumes`): what embedding and
    loss count for is missing from the first and the last chunk. The dense layers of a
    mixture of experts come first, or are spread evenly. Layers that predict further
    tokens stand in the last chunk (Megatron-LM d98e8a64,
    ``core/transformer/multi_token_prediction.py``).
    """
    axes = job.parallelism
    layers = sizes.layers_per_chunk * sizes.layer_share
    dense_layers = model.layers - model.moe_layers
    if model.dense_first:
        in_order = layers.T.ravel()
        before = in_order.cumsum() - in_order
        dense = np.minimum(np.maximum(dense_layers - before, 0.0), in_order)
        dense = np.ascontiguousarray(dense.reshape(axes.vp, axes.pp).T)
    else:
        dense = layers * (dense_layers / model.layers)
    moe = layers - dense
    (moe if model.moe_layers else dense)[-1, -1] += model.mtp_layers
    return dense, moe


def _outside(job: Job) -> float:
    """Bytes outside the allocator: as the job says, or 1 GiB and 0.7 a communicator."""
    if job.memory.reserve is not None:
        return job.memory.reserve
    axes = job.parallelism
    sizes = [axes.tp, axes.cp, axes.pp, axes.dp * axes.cp]
    if axes.divides_experts:
        sizes += [axes.ep, axes.etp, axes.edp]
    communicators = sum(size > 1 for size in sizes) + len(job.groups)
    return _CONTEXT + _COMMUNICATOR * communicators


def _held_by_stage(
    job: Job, model: Model, dense: FloatArray, moe: FloatArray
) -> tuple[list[Held], list[Held], list[Held], list[Held]]:
    """Parameters of a GPU of each stage, and those of them outside layers.

    Then those of adapters beside them, and those of all that are trained. ``dense`` and
    ``moe`` are the layers of each chunk; shape (P, V).
    """
    axes, adapters = job.parallelism, job.adapters

    def of_layers(one: Callable[[bool], Held]) -> list[Held]:
        counts = zip(dense.sum(axis=1).tolist(), moe.sum(axis=1).tolist(), strict=True)
        each = one(False), one(True)
        return [each[0] * d + each[1] * e for d, e in counts]

    held = of_layers(
        lambda is_moe: (
            held_of_layer(model, axes, moe=is_moe)
            if model.experts or not is_moe
            else Held()
        )
    )
    ends = [Held()] * axes.pp
    for stage, end in zip((0, -1), held_at_ends(model, axes), strict=True):
        held[stage] += end
        ends[stage] += end
    if adapters is None:
        return held, ends, [Held()] * axes.pp, held
    beside = of_layers(lambda is_moe: adapters_of(model, axes, adapters, moe=is_moe))
    return held, ends, beside, beside


def _largest_layer(job: Job, model: Model) -> tuple[Held, Held]:
    """The layer of the most parameters on a GPU, and what of it is trained."""
    kinds = {model.moe_layers > 0, model.moe_layers == model.layers}
    axes, adapters = job.parallelism, job.adapters
    layers = [(held_of_layer(model, axes, moe=moe), moe) for moe in kinds]
    held, moe = max(layers, key=lambda layer: layer[0].total)
    if adapters is None:
        return held, held
    trained = adapters_of(model, axes, adapters, moe=moe)
    return held + trained, trained
