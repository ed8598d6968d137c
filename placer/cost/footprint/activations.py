"""Activations of every pipeline rank: what waits in all, and what is there beside it.

Shapes: P pipeline ranks, V chunks a rank.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.footprint.layer import LayerActivations
from placer.cost.footprint.parameters import held_vocabulary
from placer.job.model import Job
from placer.job.models import Model

# Groups that are walked after the warm-up: they are all alike but for the last.
_REPEATED = 3


def activations(
    job: Job, model: Model, dense: FloatArray, moe: FloatArray, cp_block: float
) -> tuple[list[float], list[float]]:
    """What the layers of each stage keep, and that with what is there beside it; bytes.

    Beside it is the loss, from the forward of the last chunk to its backward, or one
    layer at work: the rest of what is computed again, and blocks of other context
    ranks. A measurement that the job names stands for both.

    ``dense`` and ``moe`` ((P, V)): layers of each chunk. ``cp_block`` (bytes): keys and
    values of one context rank.
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
    message = job.micro_batches * axes.vp * width * model.hidden * job.norm_tokens
    logits = job.tokens * _words(job, model)
    found = [2 * message] * axes.pp
    found[0] = message * (2 - 1 / axes.vp)
    found[-1] = message * (2 - 1 / axes.vp) + job.micro_batches * width * logits
    return found


def _loss(job: Job, model: Model) -> float:
    """Final norm and logits, once more for each further token that is predicted."""
    logits = job.tokens * _words(job, model)
    gathered = job.tokens if job.memory.keep_gathered else job.norm_tokens
    inputs = job.norm_tokens + gathered
    size = job.memory.logit_bytes * logits
    size += job.bytes.activation * model.hidden * inputs
    return size * (1 + model.mtp_layers)


def _words(job: Job, model: Model) -> float:
    """Logits of a token that one rank of the last stage has."""
    words = held_vocabulary(model, job.parallelism)
    return words / (job.parallelism.tp if job.tensor_parallel.loss == "parallel" else 1)


def _context_blocks(job: Job, cp_block: float) -> float:
    """Keys and values of other context ranks while a layer attends.

    Two blocks in flight around a ring; those of all ranks and their gradients when they
    are gathered.
    """
    cp, how = job.parallelism.cp, job.context_parallel.communication
    if cp == 1 or how == "a2a":
        return 0.0
    return (2 if how == "p2p" else 2 * cp) * cp_block


def most_held(job: Job, stage: int, weights: FloatArray) -> float:
    """The most that a pipeline rank holds at once, bytes.

    ``stage``: the rank. ``weights`` ((V,), bytes): what a micro-batch leaves in each of
    its chunks.
    """
    axes = job.parallelism
    if axes.pp == 1:
        # All chunks run forward, then all backward.
        return float(weights.sum())
    if axes.vp == 1:
        return float(weights[0]) * min(axes.pp - stage, job.micro_batches)
    group = job.memory.micro_batch_group or axes.pp
    warm_up = 2 * (axes.pp - stage - 1) + (axes.vp - 1) * group
    warm_up += int(job.overlap.ep and axes.ep > 1)
    warm_up = min(warm_up, job.micro_batches * axes.vp - 1)
    if (weights == weights[0]).all():
        return float(weights[0]) * (warm_up + 1)
    alike = _like(job.micro_batches, group, warm_up)
    chunks = _chunk_of_forward(alike, axes.vp, group)
    return _most(weights, chunks, warm_up)


def _most(weights: FloatArray, chunks: IntArray, warm_up: int) -> float:
    """The most held right after a forward, once the warm-up is over."""
    came = weights[chunks].cumsum()[warm_up:]
    gone = weights[len(weights) - 1 - chunks].cumsum()
    came[1:] -= gone[: len(came) - 1]
    return float(came.max())


@lru_cache(maxsize=1024)
def _chunk_of_forward(micro_batches: int, chunks: int, group: int) -> IntArray:
    """Chunk of each forward, in order; shape (m v,)."""
    whole, rest = divmod(micro_batches, group)
    order = np.repeat(np.arange(chunks), group)
    last = np.repeat(np.arange(chunks), rest)
    return np.concatenate([np.tile(order, whole), last])


def _like(micro_batches: int, group: int, warm_up: int) -> int:
    """The least number of micro-batches that is held like so many.

    After the warm-up a schedule repeats itself with every group.
    """
    walked = _REPEATED + -(-warm_up // group)
    return micro_batches - max(0, micro_batches // group - walked) * group
