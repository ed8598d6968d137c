"""The pipeline's time: longest path through the work of all ranks and their messages.

The order of the work is that of `pipeline_order`. With ``v > 1`` the last rank also
sends to the first: the stages form a closed ring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from placer.cost.pipeline_order import Block, blocks

FloatArray = npt.NDArray[np.float64]
Time = TypeVar("Time", float, FloatArray)

# Groups that are walked one by one: three to get going, then (in long runs, after as
# many repetitions of the third as are needed) three to run out.
HEAD, WALKED = 3, 6
# A long run that has not become periodic after so many repetitions goes on at its mean
# pace.
MOST_REPETITIONS = 64
SAME = 1e-12  # relative difference that rounding may make


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
    A max-plus linear system becomes periodic (Baccelli et al. 1992, *Synchronization
    and Linearity*, 3.7): a long run is walked until its state recurs, and the rest
    skipped.
    """
    work_s = (*stages.forward, *stages.backward, *stages.ends)
    walk = _Walk[float](work_s, stages.hop * 2, overlap, max, 0.0)
    return float(walk.run(micro_batches, chunks))


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
    start = np.zeros(len(patterns))
    walk = _Walk[FloatArray](work_s, hop_s * 2, overlap, np.maximum, start)
    return walk.run(micro_batches, chunks)


@dataclass
class _Walk(Generic[Time]):
    """Walks the work of one replica (times are floats) or of many (arrays).

    Attributes
    ----------
    work_s, hop_s : sequence, length 2 p + 4 and 2 p, s
        Time of each kind of work and each link of `Operation`.
    overlap : bool
    largest : callable
        Maximum of two times.
    start : time
    clock, free : list
        When each rank, and each link, has finished what it was given.
    arrived : dict
        When results arrive that nobody has used yet, by key.
    """

    work_s: Sequence[Time]
    hop_s: Sequence[Time]
    overlap: bool
    largest: Callable[[Time, Time], Time]
    start: Time
    clock: list[Time] = field(init=False)
    free: list[Time] = field(init=False)
    arrived: dict[int, Time] = field(init=False)

    def run(self, micro_batches: int, chunks: int) -> Time:
        """When the last backward ends."""
        num_stages = len(self.hop_s) // 2
        self.clock = [self.start] * num_stages
        self.free = [self.start] * len(self.hop_s)
        self.arrived = {}
        repetitions = max(0, -(-micro_batches // num_stages) - WALKED)
        walked = blocks(num_stages, micro_batches - repetitions * num_stages, chunks)
        for block in walked[:HEAD]:
            self._do(block)
        if repetitions:
            self._repeat(walked[HEAD - 1], repetitions, chunks * num_stages)
        for block in walked[HEAD:]:
            self._do(block)
        return self.clock[0]

    def _do(self, block: Block) -> None:
        clock, free, arrived = self.clock, self.free, self.arrived
        largest, overlap = self.largest, self.overlap
        for stage, work, source, key, link in block:
            end = clock[stage]
            if source >= 0:
                end = largest(end, arrived.pop(source))
            end = end + self.work_s[work]
            clock[stage] = end
            if link >= 0:
                end = largest(end, free[link]) + self.hop_s[link]
                free[link] = end
                if not overlap:
                    clock[stage] = end
            if key >= 0:
                arrived[key] = end

    def _repeat(self, block: Block, repetitions: int, group: int) -> None:
        """Do a block many times, each time for the next group."""
        links = sorted({operation.link for operation in block if operation.link >= 0})
        states = [self._state(links)]
        while repetitions:
            self.arrived = {key - group: time for key, time in self.arrived.items()}
            self._do(block)
            repetitions -= 1
            states.append(self._state(links))
            lag = _lag(states)
            if lag:
                skipped = repetitions // lag
                self._shift((states[-1][0] - states[-1 - lag][0]) * skipped)
                repetitions -= skipped * lag
                states = [self._state(links)] if skipped else states
            elif len(states) > MOST_REPETITIONS:
                pace = (states[-1][0] - states[0][0]) / (len(states) - 1)
                self._shift(pace * repetitions)
                return

    def _state(self, links: list[int]) -> npt.NDArray[Any]:
        """Everything that the future depends on, as one array."""
        return np.array(
            self.clock
            + [self.free[link] for link in links]
            + [self.arrived[key] for key in sorted(self.arrived)]
        )

    def _shift(self, seconds: Time) -> None:
        """Let the same state come ``seconds`` later."""
        self.clock = [time + seconds for time in self.clock]
        self.free = [time + seconds for time in self.free]
        self.arrived = {key: time + seconds for key, time in self.arrived.items()}


def _lag(states: list[npt.NDArray[Any]]) -> int:
    """Repetitions after which the last state came again, only later; 0 for never."""
    now = states[-1]
    tolerance = SAME * now.max()
    for lag in range(1, len(states)):
        later = now - states[-1 - lag]
        if (np.abs(later - later[0]) <= tolerance).all():
            return lag
    return 0
