"""The least time of a pipeline whose messages take none, without walking it.

With F and B a chunk's forward and backward, those of rank r together w, and m
micro-batches, for any r

    pipeline >= sum over s < r of (F_s + B_s) + m w_r + idle_r        s: first chunks

Rank r can begin when the ranks before it have passed one forward on, and after its last
backward they have one more each. In between it works on all micro-batches, and waits:
the first one comes back from the ranks after it only when they have worked on it, while
rank r has but the forwards of its warm-up to do. Without interleaving the last one
comes back in the same way, while rank r has as many backwards to do:

    idle_r = max(0, A - (k-1) F_r) + max(0, A - (k-1) B_r),    A = sum over s > r

of k = p - r forwards, or backwards, in a row; with no more micro-batches than that both
are of the same stretch, and the longer one counts. By hand: two stages, two
micro-batches. F, B = 1, 2 and then 2, 4: rank 1 waits 1 s, works 12 s and rank 0 ends
2 s later, 15 s. F, B = 2, 4 and then 1, 2: rank 0 works 12 s and waits 3 - 2 = 1 s
between its second forward and its first backward, 13 s. Both are what a walk takes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placer.base.arrays import FloatArray


class ChunkTimes(NamedTuple):
    """Forward and backward of chunks, s."""

    # (2, P): of each rank, but for the first and the last chunk of all.
    full: FloatArray
    # first and last, (2,): those; a pipeline of one chunk has but the first.
    first: FloatArray
    last: FloatArray


def least_pipeline(times: ChunkTimes, micro_batches: int, chunks: int) -> float:
    """No walk through such a pipeline is shorter, s."""
    return float(_ends(times, times, micro_batches, chunks).max())


def least_with_slow_rank(
    times: ChunkTimes, slow: ChunkTimes, micro_batches: int, chunks: int
) -> float:
    """No walk is shorter where one rank, whichever it is, has slow chunks, s."""
    return float(_ends(times, slow, micro_batches, chunks).min())


def _ends(
    times: ChunkTimes, own: ChunkTimes, micro_batches: int, chunks: int
) -> FloatArray:
    """When each rank lets the pipeline end, its chunks taking ``own``; shape (P,)."""
    of_chunk, busy = _chunks(times, chunks)
    of_own, busy_own = (of_chunk, busy) if own is times else _chunks(own, chunks)
    passed = of_chunk[:, 0].sum(axis=0)
    before = np.cumsum(passed) - passed
    if chunks == 1:
        idle = _idle(of_chunk[:, 0], of_own[:, 0], micro_batches)
    else:
        idle = _idle_between(of_chunk, busy, of_own[0], chunks, micro_batches)
    return np.asarray(before + micro_batches * busy_own.sum(axis=0) + idle)


def _chunks(times: ChunkTimes, chunks: int) -> tuple[FloatArray, FloatArray]:
    """First chunk, one between and last of each rank, (2, C, P), and all, (2, P)."""
    of_chunk = np.repeat(times.full[:, None], min(chunks, 3), axis=1)
    of_chunk[:, -1, -1] = times.last
    of_chunk[:, 0, 0] = times.first
    return of_chunk, of_chunk.sum(axis=1) + max(0, chunks - 3) * times.full


def _idle(once: FloatArray, own: FloatArray, micro_batches: int) -> FloatArray:
    """What each rank waits without interleaving; shape (P,), s."""
    ahead = np.arange(once.shape[1], 0, -1)
    after = _after(once.sum(axis=0))
    both = np.maximum(after - (np.minimum(ahead, micro_batches) - 1) * own, 0.0)
    seconds = np.where(micro_batches > ahead, both.sum(axis=0), both.max(axis=0))
    return np.asarray(seconds)


def _idle_between(
    of_chunk: FloatArray,
    busy: FloatArray,
    own: FloatArray,
    chunks: int,
    micro_batches: int,
) -> FloatArray:
    """What each rank of an interleaved pipeline waits before its first backward, s.

    ``of_chunk`` ((2, C, P)): of the first chunk of a rank, one between where there is
    one, and the last. ``busy`` ((2, P)): of all chunks of a rank. ``own`` ((C, P)):
    forwards of the rank that waits.
    """
    ranks = busy.shape[1]
    forward, backward = of_chunk
    # The first micro-batch goes on to the last chunk of all, and back to its rank.
    way = busy[0].sum() - np.cumsum(forward[0]) + _after(backward[-1])
    ahead = 2 * np.arange(ranks - 1, -1, -1) + (chunks - 1) * ranks + 1
    ahead = np.minimum(ahead, chunks * ranks * -(-micro_batches // ranks))
    # Forwards go chunk by chunk, so many of each in a row.
    of_first = np.minimum(ahead, ranks) + np.maximum(ahead - chunks * ranks, 0)
    of_last = np.clip(ahead - (chunks - 1) * ranks, 0, ranks)
    others = ahead - of_first - of_last
    between = own[1] if chunks > 2 else 0.0
    done = (of_first - 1) * own[0] + of_last * own[-1] + others * between
    return np.asarray(np.maximum(way - done, 0.0))


def _after(seconds: FloatArray) -> FloatArray:
    """Sum of those of the ranks after each."""
    return np.asarray(seconds.sum() - np.cumsum(seconds))
