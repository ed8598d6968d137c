"""What one placement of a job saves beside another, and how sure that is.

The noise of a time is not the noise of a difference: two placements of a job share
their work, the rates of their links and most of their traffic. So uncertain inputs
(`placer.explain.uncertain`) are drawn for both at once, and what is left apart is what
the model does not know of the difference.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost import JITTER
from placer.cost.step import StepModel
from placer.explain.uncertain import drawn_times

# Draws for jobs of at most so many ranks, and of more: a draw scores two placements.
_DRAWS = ((4_096, 64), (16_384, 32), (65_536, 16))
_FEWEST_DRAWS = 8
_RANKS_OF_GROUP = 100  # whose score takes as long as a communicator of the user's own
# Quantiles of the draws between which the truth lies 19 times of 20; with the fewest
# draws 7 times of 8.
_ENDS = (0.03, 0.97)


class Saving(NamedTuple):
    """What a placement saves.

    Attributes
    ----------
    before_s : float, s
        The step of the other one.
    saved_s : float, s
        Negative where it is longer.
    low_s, high_s : float, s
        Between which it lies, with 95 % confidence.
    """

    before_s: float
    saved_s: float
    low_s: float
    high_s: float

    @classmethod
    def of(cls, before_s: float, after_s: float, drawn: FloatArray) -> Saving:
        """What is saved, and draws of it, each the middle of its range."""
        saved = before_s - after_s
        low, high = np.quantile(drawn, _ENDS, method="hazen").tolist()
        return cls(before_s, saved, min(low, saved), max(high, saved))

    @property
    def is_measurable(self) -> bool:
        """Whether it is shorter by more than steps differ from run to run."""
        return self.low_s > JITTER * self.before_s

    @property
    def can_be_measured(self) -> bool:
        """Whether it is shorter, or longer, by more than that."""
        return self.is_measurable or self.high_s < -JITTER * self.before_s

    def to_dict(self) -> dict[str, Any]:
        """As verdicts have it: in s, and as a share of the step before."""
        share = self.saved_s / self.before_s if self.before_s else 0.0
        return {
            "saved_s": float(self.saved_s),
            "saved_s_interval": [float(self.low_s), float(self.high_s)],
            "saved_share": float(share),
        }


def saving(
    model: StepModel,
    before: IntArray,
    after: IntArray,
    seed: int = 0,
    *,
    thin: bool = False,
) -> Saving:
    """What the placement ``after`` saves of a step of ``before``.

    Both are the GPU of every rank, shape (R,). A function of its arguments alone; with
    ``thin`` uplinks may be thinner than assumed (`placer.explain.uncertain`).
    """
    step, then = model.step(before).step_time_s, model.step(after).step_time_s
    if np.array_equal(before, after):
        return Saving(step, 0.0, 0.0, 0.0)
    ranks = len(before) + _RANKS_OF_GROUP * len(model.job.groups)
    count = next((n for most, n in _DRAWS if ranks <= most), _FEWEST_DRAWS)
    times = drawn_times(model, (before, after), count, seed, thin=thin)
    return Saving.of(step, then, times[:, 0] - times[:, 1])
