"""Exposed data-parallel time: what no compute hides of reduction and gather.

Symbols of the cost model: ``t_f``, ``t_b`` forward and backward of one chunk of one
micro-batch, ``v`` chunks, ``m`` micro-batches, ``p`` stages, ``n_k`` buckets a chunk.
Source of the schedule facts: Megatron-LM d98e8a64,
``core/distributed/distributed_data_parallel.py`` and
``core/pipeline_parallel/schedules.py``: only pipeline rank 0 splits its gradients into
buckets; the reduction of a chunk starts after the backward of its last micro-batch,
shifted by the rank so that all stages start together; chunks 0 and 1 are gathered with
the step and each later one a chunk ahead of its use.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Windows:
    """The compute that data-parallel traffic can hide behind.

    Attributes
    ----------
    forward_s, backward_s : float, s
        One chunk of one micro-batch, ``t_f`` and ``t_b``.
    concurrent : int
        ``min(m, p)``: micro-batches that pass a chunk before the next chunk.
    chunks : int
        ``v``.
    buckets : float
        ``n_k``, at least 1.
    """

    forward_s: float
    backward_s: float
    concurrent: int
    chunks: int
    buckets: float


def exposed_reduce(seconds: FloatArray, windows: Windows, overlap: bool) -> float:
    """Exposed seconds of the gradient reduction.

    Parameters
    ----------
    seconds : ndarray, shape (p,), s
        Reduction of one chunk on each pipeline rank, its slowest group.
    windows : Windows
    overlap : bool
        False exposes all of it.

    Notes
    -----
    ``(v-1) max(0, T - t_b min(m, p))`` in mid-step, and a tail of
    ``max(T_0 - (1 - 1/n_k) t_b, max_r (T_r - r t_b), 0)``.
    """
    if not overlap:
        return windows.chunks * float(seconds.max())
    window = windows.backward_s * windows.concurrent
    excess = (windows.chunks - 1) * max(0.0, float(seconds.max()) - window)
    started = (1.0 - 1.0 / windows.buckets) * windows.backward_s
    shifted = seconds - np.arange(len(seconds)) * windows.backward_s
    shifted[0] = seconds[0] - started
    return excess + max(0.0, float(shifted.max()))


def exposed_gather(
    seconds: FloatArray, first_bucket_s: float, windows: Windows, overlap: bool
) -> float:
    """Exposed seconds of the parameter gather.

    Parameters
    ----------
    seconds : ndarray, shape (p,), s
        Gather of one chunk on each pipeline rank, its slowest group.
    first_bucket_s : float, s
        Gather of one bucket on rank 0, ``T_k``: nothing runs before it.
    windows : Windows
    overlap : bool

    Notes
    -----
    ``(v-1) max(0, T - t_f min(m, p))`` in mid-step, and a head of
    ``max(T_k, max_r (T_r - r t_f - T_k), 0)``, ``r >= 1``.
    """
    if not overlap:
        return windows.chunks * float(seconds.max())
    window = windows.forward_s * windows.concurrent
    excess = (windows.chunks - 1) * max(0.0, float(seconds.max()) - window)
    later = seconds - np.arange(len(seconds)) * windows.forward_s - first_bucket_s
    head = float(later[1:].max()) if len(later) > 1 else 0.0
    return excess + max(first_bucket_s, head)
