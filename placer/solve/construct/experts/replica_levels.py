"""Replicas with stages of several levels: how long all-to-alls of each may take.

Shapes: C replicas, P stages, L levels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from placer.solve.bounds.experts.expert_parts import StageParts

MOST_LEVELS = 20
MOST_ALIKE = 300  # replicas of as many slow stages


class Replicas(NamedTuple):
    """Replicas that may be had.

    Attributes
    ----------
    times : ndarray, shape (L,), s
        Of the all-to-all of a stage of each level, the slowest first.
    levels : ndarray, shape (C, P)
        Level of each stage.
    seconds : ndarray, shape (C,), s
        Least step with such a replica, ascending.
    """

    times: FloatArray
    levels: IntArray
    seconds: FloatArray

    def up_to(self, seconds: float) -> Replicas:
        """Those with no longer a step."""
        count = int(np.searchsorted(self.seconds, seconds, side="right"))
        return Replicas(self.times, self.levels[:count], self.seconds[:count])


def replicas(parts: StageParts, times: FloatArray, value: float) -> Replicas:
    """Replicas with a step below ``value``, s.

    Stages slow down one after the other, the slowest first, each where it costs least.
    """
    if len(times) > MOST_LEVELS:
        times = times[np.linspace(0, len(times) - 1, MOST_LEVELS).round().astype(int)]
    top, stages = len(times) - 1, parts.step.model.job.parallelism.pp
    rows = np.full((1, stages), top)
    last = np.zeros(1, dtype=np.int64)
    found = [(rows, parts.step_times(times[rows]))]
    for _ in range(stages if top else 0):
        if not len(rows):
            break
        place = [
            _slowed(parts, times, rows[last <= level], level) for level in range(top)
        ]
        rows = np.concatenate([one for one, _ in place])
        seconds = np.concatenate([one for _, one in place])
        last = np.repeat(np.arange(top), [len(one) for one, _ in place])
        kept = np.argsort(seconds, kind="stable")[:MOST_ALIKE]
        kept = kept[seconds[kept] < value]
        rows, last = rows[kept], last[kept]
        found.append((rows, seconds[kept]))
    levels = np.concatenate([one for one, _ in found])
    seconds = np.concatenate([one for _, one in found])
    order = np.argsort(seconds, kind="stable")
    return Replicas(times, levels[order], seconds[order])


def _slowed(
    parts: StageParts, times: FloatArray, rows: IntArray, level: int
) -> tuple[IntArray, FloatArray]:
    """Rows with one more stage at a level, where it costs least, and their steps."""
    stages = rows.shape[1]
    tried = np.repeat(rows, stages, axis=0)
    place = np.arange(len(tried)), np.tile(np.arange(stages), len(rows))
    is_free = tried[place] == len(times) - 1
    tried[place] = level
    seconds = np.where(is_free, parts.step_times(times[tried]), np.inf)
    best = np.arange(len(rows)) * stages + seconds.reshape(-1, stages).argmin(axis=1)
    return tried[best], seconds[best]
