"""The pipeline's time: longest path through the work of all ranks and their messages.

The order of the work is that of `pipeline_order`. With ``v > 1`` the last rank also
sends to the first: the stages form a closed ring.

In a long run each repetition of a block of work turns the state of a pipeline before it
into the state after it, by the same matrix of max-plus algebra, where "plus" is the
maximum and "times" the sum: ``(A x)_i = max over j of A_ij + x_j``. Mostly a state soon
returns, only later, and so do all that follow (Baccelli et al. 1992, *Synchronization
and Linearity*, 2 and 3.7). Where none does, the few repetitions left are walked, or the
matrix is raised to the power of many. All of it is exact but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.pipeline_order import Block, blocks

Time = TypeVar("Time", float, FloatArray)

# Groups that are walked one by one: three to get going, then (in long runs, after as
# many repetitions of the third as are needed) three to run out.
HEAD, WALKED = 3, 6
# Repetitions that are walked to see whether a state returns.
TRIED = 16
# Entries of the matrices that are raised to a power together.
TOGETHER = 1 << 20
SAME = 1e-12  # relative difference that rounding may make


class Stages(NamedTuple):
    """One replica's pipeline."""

    # forward and backward, length p, s: time of one chunk of one micro-batch on each
    # pipeline rank.
    forward: tuple[float, ...]
    backward: tuple[float, ...]
    # Length p, s: message from each rank to the next; the last entry closes the ring.
    hop: tuple[float, ...]
    # Length 4, s: forward and backward of the very first chunk, then of the very last;
    # a pipeline of one chunk has but the first.
    ends: tuple[float, ...]


@dataclass
class PipelineWalk(Generic[Time]):
    """What has been done so far; times are floats, or arrays of many replicas."""

    # work_s and hop_s, length 2 p + 4 and 2 p, s: time of each kind of work and each
    # link of `Operation`.
    work_s: Sequence[Time]
    hop_s: Sequence[Time]
    overlap: bool  # whether a rank computes on while its message travels
    largest: Callable[[Time, Time], Time]  # maximum of two times
    clock: list[Time]  # length p: when each rank has finished what it was given
    # When each link has, unless its sender has waited for it.
    free: dict[int, Time] = field(default_factory=dict)
    # When results arrive that nobody has used yet, by key.
    arrived: dict[int, Time] = field(default_factory=dict)

    def do(self, block: Block) -> None:
        """Run the operations of a block."""
        clock, free, arrived = self.clock, self.free, self.arrived
        largest, overlap = self.largest, self.overlap
        for stage, work, source, key, link in block:
            end = clock[stage]
            if source >= 0:
                end = largest(end, arrived.pop(source))
            end = end + self.work_s[work]
            clock[stage] = end
            if link >= 0:
                if link in free:
                    end = largest(end, free[link])
                end = end + self.hop_s[link]
                if overlap:
                    free[link] = end
                else:
                    clock[stage] = end
            if key >= 0:
                arrived[key] = end

    def do_next(self, block: Block, group: int) -> None:
        """Run a block for the group after the one that it was last run for.

        A group's keys are larger by ``group`` than those of the group before.
        """
        self.arrived = {key - group: time for key, time in self.arrived.items()}
        self.do(block)

    def state(self) -> list[Time]:
        """Everything that the future depends on, in a fixed order."""
        free = [self.free[link] for link in sorted(self.free)]
        arrived = [self.arrived[key] for key in sorted(self.arrived)]
        return self.clock + free + arrived

    def resume(self, state: Sequence[Time]) -> None:
        """Go on from another state of the same order."""
        times = iter(state)
        self.clock = [next(times) for _ in self.clock]
        self.free = {link: next(times) for link in sorted(self.free)}
        self.arrived = {key: next(times) for key in sorted(self.arrived)}


@lru_cache(maxsize=65536)
def pipeline_time(
    stages: Stages, micro_batches: int, chunks: int, overlap: bool
) -> float:
    """Seconds from the first forward to the last backward of a replica.

    ``micro_batches`` and ``chunks``: ``m`` and ``v``. ``overlap``: whether a rank
    computes on while its message travels.

    Exact but for rounding, in a time that hardly grows with ``m``.
    """
    work_s = (*stages.forward, *stages.backward, *stages.ends)
    start = [0.0] * len(stages.hop)
    walk = PipelineWalk[float](work_s, stages.hop * 2, overlap, max, start)
    return _end(walk, micro_batches, chunks)


def pipeline_times(
    patterns: FloatArray, micro_batches: int, chunks: int, overlap: bool
) -> FloatArray:
    """Times of many replicas' pipelines at once; shape (D,), s.

    ``patterns`` ((D, 3 p + 4), s): forward, backward and hop times and ends of each
    replica side by side.
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
        _repeat(walk, walked[HEAD - 1], chunks * num_stages, repetitions)
    for block in walked[HEAD:]:
        walk.do(block)
    return walk.clock[0]


def _repeat(
    walk: PipelineWalk[Time], block: Block, group: int, repetitions: int
) -> None:
    """Run a block many times, each time for the next group."""
    states = [_array(walk)]
    after = np.empty_like(states[0])
    unsteady = np.arange(after.shape[1])
    left = repetitions
    while left and len(states) <= TRIED and len(unsteady):
        walk.do_next(block, group)
        left -= 1
        unsteady = _returned(states, _array(walk), after, unsteady, left)
    if left * after.shape[1] <= len(unsteady) * len(after):
        # No more to walk than a matrix takes, which is a replica for every entry.
        for _ in range(left):
            walk.do_next(block, group)
        after[:, unsteady] = _array(walk)[:, unsteady]
        unsteady = unsteady[:0]
    for some in _portions(unsteady, len(after)):
        matrices = _matrices(walk, block, group, some)
        after[:, some] = times_power(matrices, left, states[-1][:, some].T).T
    is_one = isinstance(walk.clock[0], float)
    walk.resume(after[:, 0].tolist() if is_one else list(after))


def _array(walk: PipelineWalk[Time]) -> FloatArray:
    """The state of D replicas; shape (n, D)."""
    state = walk.state()
    return np.array(state).reshape(len(state), -1)


def _returned(
    states: list[FloatArray],
    now: FloatArray,
    after: FloatArray,
    unsteady: IntArray,
    left: int,
) -> IntArray:
    """The replicas whose state did not return; the others' last is put in ``after``.

    ``now`` joins the ``states`` so far; ``left`` repetitions follow it.
    """
    states.append(now)
    for lag in range(1, len(states)):
        later = (now - states[-1 - lag])[:, unsteady]
        off = np.abs(later - later[0]).max(axis=0)
        returns = off <= SAME * now[:, unsteady].max(axis=0)
        some = unsteady[returns]
        rounds, rest = divmod(left, lag)
        shift = later[0, returns] * (1 + rounds)
        after[:, some] = states[rest - lag - 1][:, some] + shift
        unsteady = unsteady[~returns]
    return unsteady


def _matrices(
    walk: PipelineWalk[Time], block: Block, group: int, some: IntArray
) -> FloatArray:
    """What a block does to the state of some replicas; shape (len(some), n, n).

    Column ``j`` is the state after the block when only entry ``j`` of the state before
    it is waited for, and came at time 0.
    """

    def of_some(time: Any) -> FloatArray:
        return np.atleast_1d(time)[some, None]

    size = len(walk.state())
    identity = np.full((size, size), -np.inf)
    np.fill_diagonal(identity, 0.0)
    units = [np.broadcast_to(row, (len(some), size)) for row in identity]
    alone = PipelineWalk[FloatArray](
        [of_some(time) for time in walk.work_s],
        [of_some(time) for time in walk.hop_s],
        walk.overlap,
        np.maximum,
        units[: len(walk.clock)],
        dict.fromkeys(walk.free, units[0]),
        dict.fromkeys(walk.arrived, units[0]),
    )
    alone.resume(units)
    alone.do_next(block, group)
    return np.stack(alone.state(), axis=1)


def _portions(replicas: IntArray, size: int) -> list[IntArray]:
    """The replicas, few enough at a time for the memory of their matrices."""
    count = -(-len(replicas) * size * size // TOGETHER)
    return np.array_split(replicas, count) if count else []


def times_power(matrices: FloatArray, power: int, vectors: FloatArray) -> FloatArray:
    """``A^power x`` of each matrix and vector; shape (D, n).

    By repeated squaring: ``D n^3 log2(power)`` sums.

    ``matrices``: shape (D, n, n). ``vectors``: shape (D, n).
    """
    while power:
        if power & 1:
            vectors = (matrices + vectors[:, None, :]).max(axis=2)
        power >>= 1
        if power:
            matrices = _squares(matrices)
    return vectors


def _squares(matrices: FloatArray) -> FloatArray:
    """``A A`` of each matrix."""
    squares = np.full_like(matrices, -np.inf)
    for middle in range(matrices.shape[1]):
        through = matrices[:, :, middle, None] + matrices[:, None, middle, :]
        np.maximum(squares, through, out=squares)
    return squares
