"""Whether the parts that domains hold make replicas faster than a step.

A replica is faster than a step where the all-to-alls of its stages are of certain
levels; `part_counts` says whether domains hold parts for so many. Shapes: C choices, P
stages, L levels.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations
from math import comb, inf
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.arrays import FloatArray, IntArray
from placer.solve.bounds.experts.level_boxes import Boxes, BoxValues
from placer.solve.count.blocks import solved_in_blocks
from placer.solve.count.engine import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from placer.solve.bounds.experts.expert_parts import StageParts
    from placer.solve.bounds.experts.part_counts import Counts, Stated
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

    # Whether no placement has a step below a value, and the work of saying so.
    IsHopeless = Callable[[float, Limits], tuple[bool, float]]

ROUNDING = 1e-9
BISECTIONS = 50
MOST_STEPS = 4_096  # of replicas, looked at one by one
MOST_SETS = 256  # of slow stages, likewise


class PartSteps:
    """Programs of parts by the step that all replicas must stay below.

    Parameters
    ----------
    counts : Counts
        Of its units and domains.
    choices : int
        Boxes of replicas that are told apart.
    columns : float
        Of a program that is asked, at most.

    Attributes
    ----------
    steps : ndarray, s
        Of some replicas, ascending.
    """

    def __init__(
        self,
        parts: StageParts,
        counts: Counts,
        choices: int,
        columns: float = inf,
    ) -> None:
        self.parts, self.counts, self._columns = parts, counts, columns
        self.stages = parts.step.model.job.parallelism.pp
        times = self.counts.times()
        gradients = parts.gradients(self.counts.least_parts())
        step_times = partial(parts.least_steps, times, gradients)
        self._boxes = Boxes(self.stages, len(times), step_times, choices)
        self.steps = self._some(times, step_times)

    @classmethod
    def finest(cls, parts: StageParts, params: Params) -> PartSteps:
        """Where outer domains are told apart if that matters."""
        counts, columns = parts.all_counts(params.expert_far_columns)[-1]
        return cls(parts, counts, params.expert_choices, columns)

    def stated(self, value: float) -> Stated | None:
        """What replicas below a value ask for; None if it is too much to be counted."""
        found = self.counts.stated(self.levels(value), self._slowest(value))
        return found if found and len(found.program.most) <= self._columns else None

    def levels(self, value: float) -> IntArray:
        """Levels of the stages of all replicas below a value, or slower; (C, P)."""
        return self._boxes.below(value)

    def is_hopeless(self, value: float, limits: Limits) -> tuple[bool, float]:
        """Whether no placement has a step below a value, and the work of that."""
        if not len(self.levels(value)):
            return True, 0.0
        stated = self.stated(value)
        if stated is None:
            return False, 0.0
        answer = solved_in_blocks(stated.program, limits)
        return answer.is_proved and answer.counts is None, answer.work

    def _some(self, times: FloatArray, step_times: BoxValues) -> FloatArray:
        """Steps of some replicas, ascending: of all if there are few, s."""
        stages, count = self.stages, len(times)
        if count**stages <= MOST_STEPS:
            levels = np.indices((count,) * stages).reshape(stages, -1).T
        else:
            at, level = np.divmod(np.arange(stages * count), count)
            levels = np.full((stages * count, stages), count - 1)
            levels[np.arange(len(levels)), at] = level
            alike = np.repeat(np.arange(count)[:, None], stages, axis=1)
            levels = np.concatenate((levels, alike))
        return np.unique(step_times(levels, levels))

    def _slowest(self, value: float) -> list[float]:
        """By 1, 2 .. stages: all-to-alls that make a step as long as a value, s.

        So many of its stages that take longer are too slow for any replica.
        """
        stages = self.stages
        found: list[float] = []
        for count in range(1, stages + 1):
            if found and comb(stages, count) > MOST_SETS:
                found.append(found[-1])
                continue
            chosen = np.array(list(combinations(range(stages), count)))
            slow = np.zeros((len(chosen), stages), dtype=bool)
            np.put_along_axis(slow, chosen, True, axis=1)
            found.append(self._as_slow(value, slow))
        return found

    def _as_slow(self, value: float, slow: npt.NDArray[np.bool_]) -> float:
        """An all-to-all of some stages, of each row, that makes any step so long; s."""
        times = self.counts.times()
        low, high = float(times[-1]), float(times[0])

        def step(seconds: float) -> float:
            return float(
                self.parts.step_times(np.where(slow, seconds, times[-1])).min()
            )

        while step(high) < value:
            low, high = high, 2 * high
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if step(middle) < value else (low, middle)
        return high


def raised(
    known: float,
    steps: FloatArray,
    is_hopeless: IsHopeless,
    params: Params,
    budget: Budget,
) -> float:
    """A known bound, or the last of some steps that no placement stays below, s.

    The next ones are tried first, ever further apart; then bisection. The work is
    limited, of each program and in all, and so is the time.
    """
    steps = steps[steps > known * (1 + ROUNDING)]
    work = params.expert_count_work
    first, last = 0, len(steps)
    while first < last and work > 0 and not budget.is_over():
        tried = 2 * first if last == len(steps) else (first + last) // 2
        tried = min(tried, last - 1)
        most = min(work, params.expert_program_work)
        limits = Limits(most, budget.seconds_left)
        is_out, used = is_hopeless(float(steps[tried]), limits)
        work -= used
        first, last = (tried + 1, last) if is_out else (first, tried)
    return float(steps[first - 1]) if first else known
