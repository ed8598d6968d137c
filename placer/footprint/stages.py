"""A GPU's memory by part, for every pipeline rank.

All bytes. Rank ``s`` of the pipeline stands for all GPUs of that stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placer.cost.volumes import volumes
from placer.footprint.activations import activations
from placer.footprint.layout import layers_by_chunk
from placer.footprint.outside import outside
from placer.footprint.parameters import (
    Held,
    adapters_of,
    held_at_ends,
    held_of_layer,
)
from placer.footprint.states import states

if TYPE_CHECKING:
    from placer.arrays import FloatArray
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
    sizes = volumes(job)
    dense, moe = layers_by_chunk(job, model, sizes)
    held, ends = _held_by_stage(job, model, dense, moe)
    beside = _adapters_by_stage(job, model, dense, moe)
    trained = held if job.adapters is None else beside
    unit, of_unit = _largest_layer(job, model)
    kept, most = activations(job, model, dense, moe, sizes.cp_block)
    how = states(job)
    other = outside(job)
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
    dense, moe = layers_by_chunk(job, model, volumes(job))
    how = states(job)
    held, _ = _held_by_stage(job, model, dense, moe)
    beside = _adapters_by_stage(job, model, dense, moe)
    trained = held if job.adapters is None else beside
    return max(
        how.weights(*weights) + how.optimizers(states)
        for *weights, states in zip(held, beside, trained, strict=True)
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


def _adapters_by_stage(
    job: Job, model: Model, dense: FloatArray, moe: FloatArray
) -> list[Held]:
    """Parameters of the adapters of a GPU of each stage, arguments as above."""
    axes, adapters = job.parallelism, job.adapters
    if adapters is None:
        return [Held()] * axes.pp
    of_dense, of_moe = (
        adapters_of(model, axes, adapters, moe=is_moe) for is_moe in (False, True)
    )
    layers = zip(dense.sum(axis=1).tolist(), moe.sum(axis=1).tolist(), strict=True)
    return [of_dense * d + of_moe * e for d, e in layers]


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
