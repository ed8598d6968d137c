"""The step of a replica as the largest of some linear functions of its stages' times.

A pipeline takes as long as its longest path, and a path passes each stage so often.
Shapes: N paths, P stages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray

if TYPE_CHECKING:
    from placer.solve.bounds.experts.expert_parts import StageParts

SAMPLES = 400
SMALL, APART = 1e-7, 1e-3  # shares of the range of times
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Pace:
    """Paths through the pipelines of replicas.

    Attributes
    ----------
    passes : ndarray, shape (N, P)
    rest : ndarray, shape (N,), s
    """

    passes: FloatArray
    rest: FloatArray

    @classmethod
    def of(cls, parts: StageParts, low: float, high: float) -> Pace:
        """Paths that are longest where stages take from ``low`` to ``high``, s."""
        stages = parts.step.model.job.parallelism.pp
        rng = np.random.default_rng(0)
        share = rng.random((SAMPLES, stages)) ** rng.choice((1 / 3, 1, 3), (SAMPLES, 1))
        share *= (rng.random(share.shape) < 0.5) | (np.arange(SAMPLES) % 2 == 0)[
            :, None
        ]
        # Stages that take exactly as long would have several longest paths.
        share += APART * rng.random(share.shape)
        times = low + (high - low) * share
        little = SMALL * (high - low)
        rows = times[:, None] + little * np.eye(stages + 1, stages, -1)
        steps = parts.step_times(rows.reshape(-1, stages)).reshape(SAMPLES, -1)
        passes = (steps[:, 1:] - steps[:, :1]) / little
        rest = steps[:, 0] - (passes * times).sum(axis=1)
        _, first = np.unique(np.round(passes, 2), axis=0, return_index=True)
        passes, rest = passes[first], rest[first]
        longest = steps[:, 0] * (1 + ROUNDING)
        is_path = (passes @ times.T + rest[:, None] <= longest).all(axis=1)
        return cls(passes[is_path], rest[is_path])

    def steps(self, times: FloatArray) -> FloatArray:
        """Steps of replicas whose stages take so long, (..., P) s; shape (...,)."""
        rows = times.reshape(-1, times.shape[-1])
        steps: FloatArray = (self.passes @ rows.T + self.rest[:, None]).max(axis=0)
        return steps.reshape(times.shape[:-1])
