"""A GPU's memory by part, for every pipeline rank.

All bytes. Rank ``s`` of the pipeline stands for all GPUs of that stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.cost.volumes import volumes
from placer.footprint.in_flight import most_held
from placer.footprint.layer import LayerActivations
from placer.footprint.layout import layers_by_chunk
from placer.footprint.outside import outside
from placer.footprint.parameters import (
    Held,
    held_at_ends,
    held_of_layer,
    padded_vocabulary,
)
from placer.footprint.states import states

if TYPE_CHECKING:
    from placer.footprint.layout import FloatArray
    from placer.job.model import Job, Model

PARTS = ("parameters", "gradients", "optimizer", "activations", "other")


@dataclass(frozen=True)
class Footprint:
    """Memory of one GPU of a pipeline rank, bytes.

    Attributes
    ----------
    parameters, gradients, optimizer : float
        States of training, gathered weights included.
    activations : float
        What micro-batches in flight keep, the logits, and one layer computed again.
    other : float
        Outside the framework's allocator; the rest is inside.
    stage : int
        The pipeline rank.
    kept : float
        The part of ``activations`` that layers keep for their backward passes.
    """

    parameters: float
    gradients: float
    optimizer: float
    activations: float
    other: float
    stage: int
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
    rank; the parts are those of the fullest.
    """
    stages = footprints(job)
    if not stages:
        return {}
    fullest = max(stages, key=lambda stage: stage.total)
    needs = fullest.to_dict() | {"by_stage": [stage.total for stage in stages]}
    return {"memory_bytes": needs} | ({"memory_limit_bytes": limit} if limit else {})


def footprint(job: Job) -> Footprint | None:
    """Memory of a GPU of the fullest stage; None for a job without a model."""
    return max(footprints(job), key=lambda stage: stage.total, default=None)


def footprints(job: Job) -> tuple[Footprint, ...]:
    """Memory of a GPU of every pipeline rank; none for a job without a model."""
    model = job.model
    if model is None:
        return ()
    sizes = volumes(job)
    dense, moe = layers_by_chunk(job, model, sizes)
    held, ends = _held_by_stage(job, model, dense, moe)
    unit = _largest_layer(job, model)
    kept, activations = _activations(job, model, dense, moe, sizes.cp_block)
    how = states(job)
    beside = outside(job)
    return tuple(
        Footprint(
            parameters=how.parameters(held[stage], unit, ends[stage]),
            gradients=how.gradients(held[stage], unit),
            optimizer=how.optimizers(held[stage]),
            activations=activations[stage],
            other=beside,
            stage=stage,
            kept=kept[stage],
        )
        for stage in range(job.parallelism.pp)
    )


def _held_by_stage(
    job: Job, model: Model, dense: FloatArray, moe: FloatArray
) -> tuple[list[Held], list[Held]]:
    """Parameters of a GPU of each stage, and those of them outside layers.

    ``dense`` and ``moe`` are the layers of each chunk; shape (P, V).
    """
    axes = job.parallelism
    of_dense = held_of_layer(model, axes, moe=False)
    of_moe = held_of_layer(model, axes, moe=True) if model.experts else Held()
    layers = zip(dense.sum(axis=1).tolist(), moe.sum(axis=1).tolist(), strict=True)
    held = [of_dense * d + of_moe * e for d, e in layers]
    ends = [Held()] * axes.pp
    for stage, end in zip((0, -1), held_at_ends(model, axes), strict=True):
        held[stage] += end
        ends[stage] += end
    return held, ends


def _largest_layer(job: Job, model: Model) -> Held:
    """The layer of the most parameters on a GPU."""
    kinds = {model.moe_layers > 0, model.moe_layers == model.layers}
    layers = (held_of_layer(model, job.parallelism, moe=moe) for moe in kinds)
    return max(layers, key=lambda held: held.total)


def _activations(
    job: Job, model: Model, dense: FloatArray, moe: FloatArray, cp_block: float
) -> tuple[list[float], list[float]]:
    """What the layers of each stage keep, and that with what is there beside it.

    Beside it is the loss, from the forward of the last chunk to its backward, or one
    layer at work: the rest of what is computed again, and blocks of other context
    ranks.
    """
    measured, stages = job.memory.activations, range(job.parallelism.pp)
    if measured is not None:
        return [measured for _ in stages], [measured for _ in stages]
    chunks, again = 0.0 * dense, 0.0 * dense
    for layers, is_moe in ((dense, False), (moe, True)):
        if layers.any():
            for share, gemm in _precisions(job, model):
                layer = LayerActivations(job, model, is_moe, gemm)
                size, rest = _kept_of_chunks(job, layer, share * layers)
                chunks += size
                again = np.maximum(again, rest)
    kept = [most_held(job, stage, chunks[stage]) for stage in stages]
    at_work = (again.max(axis=1) + _context_blocks(job, cp_block)).tolist()
    peak = [size + rest for size, rest in zip(kept, at_work, strict=True)]
    chunks[-1, -1] += _loss(job, model)
    peak[-1] = max(peak[-1], most_held(job, stages[-1], chunks[-1]))
    if job.memory.keep_outputs and len(stages) > 1:
        peak = [
            size + messages
            for size, messages in zip(peak, _messages(job, model), strict=True)
        ]
    return kept, peak


def _precisions(job: Job, model: Model) -> list[tuple[float, str]]:
    """Share of the layers in each precision."""
    memory = job.memory
    share = min((memory.gemm_layers or model.layers) / model.layers, 1.0)
    return [(share, memory.gemm)] + [(1 - share, "bf16")] * (share < 1)


def _kept_of_chunks(
    job: Job, layer: LayerActivations, layers: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bytes that chunks of so many layers keep, and what recomputing brings back.

    A layer at a time is computed again, or as many as have one input.
    """
    memory = job.memory
    one = np.minimum(layers, 1.0)
    if memory.recompute != "full":
        return layers * layer.kept, one * (layer.whole - layer.kept)
    count = float(memory.recompute_layers)
    if memory.recompute_method == "block":
        again = np.minimum(layers, count)
        size = again * layer.kept + (layers - again) * layer.whole
        return size, one * (layer.whole - layer.kept)
    inputs = np.maximum(layers / count, one) * layer.kept
    return inputs, np.minimum(layers, count) * layer.whole - one * layer.kept


def _messages(job: Job, model: Model) -> list[float]:
    """What stages receive in a step, forward and backward; of the last its logits.

    ``torch.distributed.pipelining`` (PyTorch 2.6, ``stage.py``, ``schedules.py``) has a
    buffer for each micro-batch and keeps the outputs of the last stage to return them.
    """
    axes, width = job.parallelism, job.bytes.activation
    tokens = job.sequence / axes.cp * job.micro_batch
    slice_ = tokens / axes.tp if job.tensor_parallel.sequence else tokens
    message = job.micro_batches * axes.vp * width * model.hidden * slice_
    logits = tokens * padded_vocabulary(model, axes) / axes.tp
    found = [2 * message] * axes.pp
    found[0] = message * (2 - 1 / axes.vp)
    found[-1] = message * (2 - 1 / axes.vp) + job.micro_batches * width * logits
    return found


def _loss(job: Job, model: Model) -> float:
    """Final norm and logits, once more for each further token that is predicted."""
    axes = job.parallelism
    tokens = job.sequence / axes.cp * job.micro_batch
    slice_ = tokens / axes.tp if job.tensor_parallel.sequence else tokens
    logits = tokens * padded_vocabulary(model, axes) / axes.tp
    inputs = slice_ + (tokens if job.memory.keep_gathered else slice_)
    size = job.memory.logit_bytes * logits
    size += job.bytes.activation * model.hidden * inputs
    return size * (1 + model.mtp_layers)


def _context_blocks(job: Job, cp_block: float) -> float:
    """Keys and values of other context ranks while a layer attends.

    Two blocks in flight around a ring; those of all ranks and their gradients when they
    are gathered.
    """
    cp, how = job.parallelism.cp, job.context_parallel.communication
    if cp == 1 or how == "a2a":
        return 0.0
    return (2 if how == "p2p" else 2 * cp) * cp_block
