"""Repeats a block of a pipeline's work, in a time that hardly grows with how often.

Each repetition turns the state of a pipeline before it into the state after it, by the
same max-plus matrix. Mostly a state soon returns, only later, and so do all that follow
(Baccelli et al. 1992, *Synchronization and Linearity*, 3.7). Where none does, the few
repetitions left are walked, or the matrix is raised to the power of many. All of it is
exact but for rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.cost.max_plus import identity, times_power
from placer.cost.pipeline_walk import PipelineWalk, Time

if TYPE_CHECKING:
    from placer.cost.pipeline_order import Block

# Repetitions that are walked to see whether a state returns.
TRIED = 16
# Entries of the matrices that are raised to a power together.
TOGETHER = 1 << 20
SAME = 1e-12  # relative difference that rounding may make


def repeat(
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
    units = [np.broadcast_to(row, (len(some), size)) for row in identity(size)]
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
