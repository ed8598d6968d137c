"""Which of many pipelines is the slowest, without walking each of them.

A pipeline's time is the largest of many sums, one a path through its work and messages
(`placer.cost.schedule`), so it is convex and piecewise linear in the times of the
stages: the paths that are critical at some times bound it from below at all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placer.arrays import FloatArray
from placer.cost.schedule import pipeline_times

# Times at which paths are looked for, and how far each stage is moved to find which
# path is critical there: less than what tells the paths apart.
PLACES = 64
MOVED = 1e-8
# Replicas of each sample that are walked in full.
WALKED = 4


@dataclass(frozen=True)
class Schedule:
    """Micro-batches, chunks, and whether messages overlap with compute."""

    micro_batches: int
    chunks: int
    overlap: bool

    def times(self, patterns: FloatArray) -> FloatArray:
        """Seconds of each pipeline; shape (D,)."""
        return pipeline_times(patterns, self.micro_batches, self.chunks, self.overlap)


@dataclass(frozen=True, eq=False)
class CriticalPaths:
    """Paths of one schedule: how often each passes each stage.

    Attributes
    ----------
    schedule : Schedule
    counts : ndarray, shape (K, 3 p + 4)
    constant : ndarray, shape (K,), s
        Zero but for rounding.
    """

    schedule: Schedule
    counts: FloatArray
    constant: FloatArray

    @classmethod
    def near(cls, schedule: Schedule, patterns: FloatArray) -> CriticalPaths:
        """The paths that are critical at some ``patterns``; shape (D, 3 p + 4)."""
        step = -(-len(patterns) // PLACES)
        places = patterns[::step]
        width = patterns.shape[1]
        move = MOVED * float(places.max())
        moves = np.concatenate((np.zeros((1, width)), move * np.eye(width)))
        moved = (places[:, None, :] + moves).reshape(-1, width)
        times = schedule.times(moved).reshape(len(places), width + 1)
        slopes = (times[:, 1:] - times[:, :1]) / move
        _, kept = np.unique(np.round(slopes, 2), axis=0, return_index=True)
        constant = times[:, 0] - (slopes * places).sum(axis=1)
        return cls(schedule, slopes[kept], constant[kept])

    def slowest(self, patterns: FloatArray) -> FloatArray:
        """Seconds of the slowest replica of every sample; shape (S,).

        The paths tell which few replicas it may be; those are then walked in full.

        Parameters
        ----------
        patterns : ndarray, shape (S, D, 3 p + 4), s
        """
        along = (patterns @ self.counts.T + self.constant).max(axis=2)
        few = np.argsort(-along, axis=1)[:, :WALKED]
        walked = np.take_along_axis(patterns, few[:, :, None], axis=1)
        times = self.schedule.times(walked.reshape(-1, walked.shape[2]))
        slowest: FloatArray = times.reshape(few.shape).max(axis=1)
        return slowest
