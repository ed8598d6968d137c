"""Activations that wait for their backward pass, by the schedule of the pipeline.

A rank runs ``w`` forwards before its first backward and then one of each in turn, so it
holds at most ``w + 1`` chunks of micro-batches. Without virtual stages ``w = p-s-1`` on
rank ``s``; with them ``w = 2 (p-s-1) + (v-1) N``, one more where expert traffic is
overlapped (Megatron-LM d98e8a64, ``core/pipeline_parallel/schedules.py``,
``get_pp_rank_microbatches`` and ``get_schedule_table``). Micro-batches go in groups of
``N``, the chunks of a group one after the other; backwards take the chunks the other
way round.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray

if TYPE_CHECKING:
    from placer.base.arrays import FloatArray
    from placer.job.model import Job

# Groups that are walked after the warm-up: they are all alike but for the last.
_REPEATED = 3


def most_held(job: Job, stage: int, weights: FloatArray) -> float:
    """The most that a pipeline rank holds at once, bytes.

    Parameters
    ----------
    job : Job
    stage : int
        The rank.
    weights : ndarray, shape (V,), bytes
        What a micro-batch leaves in each of its chunks.
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
