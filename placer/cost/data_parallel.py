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

from typing import NamedTuple

import numpy as np

from placer.base.arrays import FloatArray
from placer.job.parallel import DataParallel


class Window(NamedTuple):
    """The compute that reductions of gradients, or gathers, can hide behind."""

    chunk_s: float  # s: one chunk of one micro-batch, ``t_b`` or ``t_f``
    # Micro-batches that pass a chunk before the next chunk: ``min(m, p)``, or 1 where
    # each of them has its own reduction, or gather.
    in_a_row: int
    overlap: bool  # whether any of it hides
    each: bool  # whether each micro-batch has its own

    @property
    def seconds(self) -> float:
        """Compute beside the traffic of a chunk in mid-step."""
        return self.chunk_s * self.in_a_row


class Windows(NamedTuple):
    """What data-parallel traffic hides behind, and what it adds to a step."""

    reduce: Window
    gather: Window
    buckets: float  # ``n_k``, at least 1
    mode: DataParallel
    micro_batches: int

    def reductions_s(self, last: FloatArray, again: FloatArray) -> float:
        """What all reductions of gradients add to a step, s.

        ``last`` and ``again`` ((P, V), s): of each chunk on each pipeline rank, its
        slowest group: the last one of a step, and each before it where every
        micro-batch has its own.
        """
        return self._added(last, again, self.reduce, 0.0)

    def gathers_s(self, first: FloatArray, first_bucket_s: float) -> float:
        """What all gathers of parameters add to a step, s.

        ``first`` ((P, V), s): of each chunk on each pipeline rank, its slowest group.
        ``first_bucket_s`` (s): gather of one bucket on rank 0, ``A_k``: nothing runs
        before it.
        """
        return self._added(first, first, self.gather, first_bucket_s)

    def _added(
        self, one: FloatArray, others: FloatArray, window: Window, least: float
    ) -> float:
        """What one at an end of the step, and the others in it, add to a step."""
        seconds = self._beside_work(one, self._exposed(one, window, least))
        if window.each:
            seen = _in_between(others, window)
            seconds += (self.micro_batches - 1) * self._beside_work(others, seen)
        return seconds / self.mode.sync_every

    def _beside_work(self, seconds: FloatArray, seen: float) -> float:
        """What traffic adds of which work hides all but ``seen``.

        While it is hidden, work has fewer multiprocessors, on the stage that sends
        most. By hand, with 0.12 of them: of 3 s and 1 s on two chunks 1 s is seen, and
        the other 3 s cost 0.36 s.
        """
        total = float(seconds.sum(axis=1).max())
        return seen + self.mode.sm_share * max(0.0, total - seen)

    def _exposed(self, seconds: FloatArray, window: Window, least: float) -> float:
        """Exposed seconds of the last reduction of a step, or of the first gather.

        ``sum over chunks but the first of max(0, T - t_b min(m, p))`` in mid-step, and
        for the first chunk a tail of ``max(T_0 - (1 - 1/n_k) t_b, max_r (T_r - r t_b),
        0)``: rank 0 moves its chunk in buckets beside its own compute, all of which but
        one bucket's hides them; rank ``r`` moves its chunk whole, beside that of the
        ``r`` ranks before it. The head of a gather is alike, with ``t_f``, but no
        shorter than its first bucket: rank 0 starts when that is there and goes on as
        the others come, rank ``r`` starts ``r t_f`` later and needs its whole chunk.
        """
        if not window.overlap:
            return _in_between(seconds, window)
        hidden = np.arange(float(len(seconds)))
        hidden[0] = 1.0 - 1.0 / self.buckets
        late = float((seconds[:, 0] - hidden * window.chunk_s).max())
        return _in_between(seconds[:, 1:], window) + max(least, late)


def _in_between(seconds: FloatArray, window: Window) -> float:
    """Exposed seconds of chunks whose traffic runs beside a full window of compute.

    ``seconds`` has shape (P, V); a chunk waits for its slowest stage. All are seen
    where nothing hides.
    """
    if not window.overlap:
        return float(seconds.sum(axis=1).max())
    return float(np.maximum(seconds.max(axis=0) - window.seconds, 0.0).sum())
