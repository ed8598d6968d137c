"""Exposed data-parallel time: what no compute hides of reduction and gather.

Symbols of the cost model: ``t_f``, ``t_b`` forward and backward of one chunk of one
micro-batch, ``v`` chunks, ``m`` micro-batches, ``p`` stages, ``n_k`` buckets of the
first chunk. Source of the schedule facts: Megatron-LM d98e8a64,
``core/distributed/distributed_data_parallel.py`` and
``core/pipeline_parallel/schedules.py``: only pipeline rank 0 splits its gradients into
buckets; the reduction of a chunk starts after the backward of its last micro-batch,
shifted by the rank so that all stages start together; chunks 0 and 1 are gathered with
the step and each later one a chunk ahead of its use. Shapes: P stages, V chunks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placer.base.arrays import FloatArray
from placer.job.parallel import DataParallel


@dataclass(frozen=True)
class Windows:
    """The compute that data-parallel traffic can hide behind."""

    # forward_s and backward_s, s: one chunk of one micro-batch, ``t_f`` and ``t_b``.
    forward_s: float
    backward_s: float
    # forwards and backwards: micro-batches that pass a chunk before the next chunk:
    # ``min(m, p)``, or 1 when each of them gathers its parameters, or reduces its
    # gradients.
    forwards: int
    backwards: int
    buckets: float  # ``n_k``, at least 1

    @property
    def forward_window_s(self) -> float:
        """Compute that a gather hides behind."""
        return self.forward_s * self.forwards

    @property
    def backward_window_s(self) -> float:
        """Compute that a reduction hides behind."""
        return self.backward_s * self.backwards


def reductions_s(
    last: FloatArray,
    again: FloatArray,
    windows: Windows,
    mode: DataParallel,
    micro_batches: int,
) -> float:
    """What all reductions of gradients add to a step.

    ``last`` and ``again`` ((P, V), s): the last one of a step, and each before it where
    every micro-batch has its own.
    """
    overlap = mode.overlap_reduce
    seconds = beside_work(last, exposed_reduce(last, windows, overlap), mode)
    if mode.reduces_each:
        seen = exposed_in_between(again, windows.backward_window_s, overlap)
        seconds += (micro_batches - 1) * beside_work(again, seen, mode)
    return seconds / mode.sync_every


def gathers_s(
    first: FloatArray,
    first_bucket_s: float,
    windows: Windows,
    mode: DataParallel,
    micro_batches: int,
) -> float:
    """What all gathers of parameters add to a step, as `reductions_s`."""
    overlap = mode.overlap_gather
    seen = exposed_gather(first, first_bucket_s, windows, overlap)
    seconds = beside_work(first, seen, mode)
    if mode.gathers_each:
        seen = exposed_in_between(first, windows.forward_window_s, overlap)
        seconds += (micro_batches - 1) * beside_work(first, seen, mode)
    return seconds / mode.sync_every


def beside_work(seconds: FloatArray, seen: float, mode: DataParallel) -> float:
    """What traffic adds of which work hides all but ``seen``.

    While it is hidden, work has fewer multiprocessors, on the stage that sends most. By
    hand, with 0.12 of them: of 3 s and 1 s on two chunks 1 s is seen, and the other 3 s
    cost 0.36 s.
    """
    total = float(seconds.sum(axis=1).max())
    return seen + mode.sm_share * max(0.0, total - seen)


def exposed_reduce(seconds: FloatArray, windows: Windows, overlap: bool) -> float:
    """Exposed seconds of the gradient reduction, the last of a step.

    ``seconds`` ((P, V), s): reduction of each chunk on each pipeline rank, its slowest
    group. ``overlap``: false exposes all of it.

    ``sum over chunks but the first of max(0, T - t_b min(m, p))`` in mid-step, and for
    the first chunk a tail of ``max(T_0 - (1 - 1/n_k) t_b, max_r (T_r - r t_b), 0)``.
    """
    if not overlap:
        return float(seconds.sum(axis=1).max())
    excess = exposed_in_between(seconds[:, 1:], windows.backward_window_s, overlap)
    late = _beside_buckets(seconds[:, 0], windows.backward_s, windows.buckets)
    return excess + max(0.0, late)


def exposed_gather(
    seconds: FloatArray, first_bucket_s: float, windows: Windows, overlap: bool
) -> float:
    """Exposed seconds of the parameter gather, the first of a step.

    ``seconds`` ((P, V), s): gather of each chunk on each pipeline rank, its slowest
    group. ``first_bucket_s`` (s): gather of one bucket on rank 0, ``A_k``: nothing runs
    before it.

    ``sum over chunks but the first of max(0, A - t_f min(m, p))`` in mid-step, and for
    the first chunk a head: rank 0 starts when its first bucket is there and goes on as
    the others come, rank ``r`` starts ``r t_f`` later and needs its whole chunk:
    ``max(A_k, A_0 - (1 - 1/n_k) t_f, max_r (A_r - r t_f))``, ``r >= 1``.
    """
    if not overlap:
        return float(seconds.sum(axis=1).max())
    excess = exposed_in_between(seconds[:, 1:], windows.forward_window_s, overlap)
    late = _beside_buckets(seconds[:, 0], windows.forward_s, windows.buckets)
    return excess + max(first_bucket_s, late)


def _beside_buckets(seconds: FloatArray, chunk_s: float, buckets: float) -> float:
    """What one chunk's traffic takes longer than the compute that runs beside it.

    ``seconds`` has shape (P,). Rank 0 moves its chunk in ``buckets`` beside its own
    compute of ``chunk_s``, all of which but one bucket's hides them; rank ``r`` moves
    its chunk whole, beside that of the ``r`` ranks before it.
    """
    hidden = np.arange(float(len(seconds)))
    hidden[0] = 1.0 - 1.0 / buckets
    return float((seconds - hidden * chunk_s).max())


def exposed_in_between(seconds: FloatArray, window_s: float, overlap: bool) -> float:
    """Exposed seconds of chunks whose traffic runs beside a full window of compute.

    ``seconds`` has shape (P, V); a chunk waits for its slowest stage.
    """
    if not overlap:
        return float(seconds.sum(axis=1).max())
    return float(np.maximum(seconds.max(axis=0) - window_s, 0.0).sum())
