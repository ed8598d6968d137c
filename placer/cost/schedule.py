"""The pipeline's time: longest path through the work of all ranks and their messages.

The order of the work is that of `pipeline_order`. With ``v > 1`` the last rank also
sends to the first: the stages form a closed ring.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from placer.arrays import FloatArray
from placer.cost.long_run import repeat
from placer.cost.pipeline_order import blocks
from placer.cost.pipeline_walk import PipelineWalk, Time

# Groups that are walked one by one: three to get going, then (in long runs, after as
# many repetitions of the third as are needed) three to run out.
HEAD, WALKED = 3, 6


class Stages(NamedTuple):
    """One replica's pipeline.

    Attributes
    ----------
    forward, backward : tuple of float, length p, s
        Time of one chunk of one micro-batch on each pipeline rank.
    hop : tuple of float, length p, s
        Message from each rank to the next; the last entry closes the ring.
    ends : tuple of float, length 4, s
        Forward and backward of the very first chunk, then of the very last; a pipeline
        of one chunk has but the first.
    """

    forward: tuple[float, ...]
    backward: tuple[float, ...]
    hop: tuple[float, ...]
    ends: tuple[float, ...]


@lru_cache(maxsize=65536)
def pipeline_time(
    stages: Stages, micro_batches: int, chunks: int, overlap: bool
) -> float:
    """Seconds from the first forward to the last backward of a replica.

    Parameters
    ----------
    stages : Stages
    micro_batches, chunks : int
        ``m`` and ``v``.
    overlap : bool
        Whether a rank computes on while its message travels.

    Notes
    -----
    Exact but for rounding, in a time that hardly grows with ``m``: see
    `placer.cost.long_run`.
    """
    work_s = (*stages.forward, *stages.backward, *stages.ends)
    start = [0.0] * len(stages.hop)
    walk = PipelineWalk[float](work_s, stages.hop * 2, overlap, max, start)
    return _end(walk, micro_batches, chunks)


def pipeline_times(
    patterns: FloatArray, micro_batches: int, chunks: int, overlap: bool
) -> FloatArray:
    """The same for many replicas at once; shape (D,), s.

    Parameters
    ----------
    patterns : ndarray, shape (D, 3 p + 4), s
        Forward, backward and hop times and ends of each replica side by side.
    micro_batches, chunks : int
    overlap : bool
    """
    num_stages = (patterns.shape[1] - 4) // 3
    columns = list(np.ascontiguousarray(patterns.T))
    hop_s = columns[2 * num_stages : 3 * num_stages]
    work_s = columns[: 2 * num_stages] + columns[3 * num_stages :]
    start = [np.zeros(len(patterns))] * num_stages
    walk = PipelineWalk[FloatArray](work_s, hop_s * 2, overlap, np.maximum, start)
    return _end(walk, micro_batches, chunks)


def _end(walk: PipelineWalk[Time], micro_batches: int, chunks: int) -> Time:
    """When the last backward of all ends."""
    num_stages = len(walk.clock)
    repetitions = max(0, -(-micro_batches // num_stages) - WALKED)
    walked = blocks(num_stages, micro_batches - repetitions * num_stages, chunks)
    for block in walked[:HEAD]:
        walk.do(block)
    if repetitions:
        repeat(walk, walked[HEAD - 1], chunks * num_stages, repetitions)
    for block in walked[HEAD:]:
        walk.do(block)
    return walk.clock[0]
