"""Micro-batch time and fixed time from measured steps, by least relative squares.

The model says ``step = t n + rest(t) + fixed`` with ``t`` the micro-batch time, ``n``
the `rounds` of it, micro-batches and bubble, and ``rest`` the exposed
communication, which depends on ``t`` a little: longer work hides more. So the constants
solve a linear problem (`placer.calibrate.estimate`) in which ``rest`` is that of the
last ``t``, again and again until ``t`` stays. How sure they are, and what is predicted
for a point that is left out, follows from the lines that touch the model there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from placer.assumed import FIXED
from placer.base.arrays import BoolArray, FloatArray
from placer.base.errors import InputError
from placer.calibrate.configuration import (
    Configuration,
    Scatter,
    configurations,
    scatter_of,
)
from placer.calibrate.estimate import Estimate, estimate
from placer.calibrate.measurements import Measurements, Point, timed, work_ratio
from placer.job.decode import job_digest
from placer.job.fixed import with_fixed_time
from placer.job.model import Job
from placer.job.paces import rounds
from placer.job.work import micro_batch_work

Interval = tuple[float, float]
Chosen = BoolArray

SETTLED = 1e-12  # relative change of the micro-batch time that ends the iteration
MOST_ROUNDS = 200
LEAST = 1e-6  # of the first guess: no micro-batch time is shorter


@dataclass(frozen=True, eq=False)
class Prediction:
    """What the model says about one measured step."""

    point: Point
    step_s: float  # s: predicted with the fitted times
    interval_s: Interval | None = None  # s: where the step of one more run would lie
    # s: predicted by the other points alone; None when they cannot, or the point is not
    # fitted anyway.
    left_out_s: float | None = None
    # s: where the others say one run would lie.
    left_out_interval_s: Interval | None = None

    @property
    def residual_s(self) -> float:
        """Predicted less measured, s."""
        return self.step_s - self.point.step_s

    @property
    def error(self) -> float:
        """Residual as a share of the measured step."""
        return self.residual_s / self.point.step_s

    @property
    def left_out_error(self) -> float | None:
        """Error of what the others predict; None when they do not."""
        if self.left_out_s is None:
            return None
        return self.left_out_s / self.point.step_s - 1


@dataclass(frozen=True, eq=False)
class Calibration:
    """Compute times of a job, and how well they explain the measurements."""

    job: Job  # the job the times are of
    micro_batch_s: float
    fixed_s: float
    predictions: tuple[Prediction, ...]  # one a point, kept-out points included
    micro_batch_interval_s: Interval | None = None
    fixed_interval_s: Interval | None = None
    # Half the interval of one run of ``job``, as a share of its step; 0 when unknown.
    step_error: float = 0.0
    run_scatter: float = 0.0  # standard deviation of one run, relative; 0 when unknown
    model_error: float = 0.0  # standard deviation of what the model misses, relative
    warnings: tuple[str, ...] = ()  # what the points leave open

    @property
    def tflops_per_gpu(self) -> float:
        """The micro-batch time as a sustained rate, 1e12 FLOP/s; 0 without a model."""
        return micro_batch_work(self.job) / self.micro_batch_s / 1e12

    @property
    def left_out_errors(self) -> tuple[float, ...]:
        """Errors of the points that the others predict."""
        errors = (prediction.left_out_error for prediction in self.predictions)
        return tuple(error for error in errors if error is not None)

    def applied_to(self, job: Job) -> Job:
        """``job`` with the fitted times.

        A job of another shape takes its share of the micro-batch time by its FLOPs.
        """
        time = self.micro_batch_s * work_ratio(job, self.job)
        found = timed(job, time, self.fixed_s, self.step_error)
        return replace(found, sha256=job_digest(found))


def calibrate(measurements: Measurements) -> Calibration:
    """Micro-batch time and fixed time that fit the measured steps best.

    Every point is scored as its hosts were filled, in the order given. When the points
    to fit do not differ in micro-batches, the fixed time stays that of the job.
    """
    job, points = measurements.job, measurements.points
    if any(point.is_layout for point in points):
        hint = "efficiencies of links are fitted with it: --links"
        raise InputError("points are of several layouts", hint=hint)
    measured, place = configurations(points, job)
    chosen = np.array([one.point.fit for one in measured])
    job = measurements.job
    kept = None
    if not _differ(measured, chosen):
        job = with_fixed_time(job)
        kept = job.compute.fixed_s
    series, found = _settled(measured, chosen, kept)
    sides = {
        int(index): series.left_out(measured, chosen, int(index))
        for index in np.flatnonzero(chosen)
    }
    predictions = tuple(
        Prediction(point, *series.predicted(index, found), *sides.get(index, ()))
        for point, index in zip(points, place, strict=True)
    )
    time, fixed = found.values if kept is None else (found.values[0], kept)
    return Calibration(
        job=measurements.job,
        micro_batch_s=float(time),
        fixed_s=float(fixed),
        predictions=predictions,
        micro_batch_interval_s=_around(found, 0),
        fixed_interval_s=None if kept is not None else _around(found, 1),
        step_error=_step_error(job, found, fixed, series.noise),
        run_scatter=sqrt(series.noise.run),
        model_error=sqrt(found.lack),
        warnings=tuple(_warnings(kept, found, series.noise, int(chosen.sum()), job)),
    )


@dataclass(frozen=True, eq=False)
class _Series:
    """Every configuration as a line in the micro-batch time, and what was measured."""

    # start and rise, (n,): step without the fixed time: ``start + rise t``, in s.
    start: FloatArray
    rise: FloatArray
    measured: FloatArray  # (n,), s
    kept: float | None  # s: the fixed time, unless it is asked for
    noise: Scatter

    @classmethod
    def of(
        cls,
        measured: Sequence[Configuration],
        time: float,
        kept: float | None,
        rise: FloatArray,
    ) -> _Series:
        """The lines of these slopes through the model's steps at ``time``."""
        steps = np.array([one.predicted_s(time) for one in measured])
        runs = [one.runs_s for one in measured]
        noise = scatter_of(runs, [one.point.spread_s for one in measured])
        start = steps - rise * time + (kept or 0.0)
        return cls(start, rise, np.array([one.step_s for one in measured]), kept, noise)

    @property
    def rows(self) -> FloatArray:
        """What a second of each constant adds to each step, relative to it."""
        columns = [self.rise, np.ones_like(self.rise)][: 1 if self.is_kept else 2]
        return np.stack(columns, axis=1) / self.measured[:, None]

    @property
    def is_kept(self) -> bool:
        """Whether the fixed time is not asked for."""
        return self.kept is not None

    def estimate(self, chosen: Chosen) -> Estimate:
        """The constants from the configurations that are ``chosen``."""
        targets = 1 - self.start / self.measured
        return estimate(
            self.rows[chosen],
            targets[chosen],
            self.noise.medians[chosen],
            self.noise.degrees,
        )

    def predicted(self, index: int, known: Estimate) -> tuple[float, Interval | None]:
        """The step of a configuration, and where that of one more run would lie, s."""
        measured, row = self.measured[index], self.rows[index]
        step = float(self.start[index] + measured * (row @ known.values))
        half = known.half_width(row, known.lack + self.noise.run)
        if half is None:
            return step, None
        return step, (step - half * measured, step + half * measured)

    def left_out(
        self, measured: Sequence[Configuration], chosen: Chosen, index: int
    ) -> tuple[float | None, Interval | None]:
        """`predicted` from the other configurations alone; None if they cannot tell."""
        others = chosen.copy()
        others[index] = False
        enough = others.any() if self.is_kept else _differ(measured, others)
        if not enough:
            return None, None
        step, interval = self.predicted(index, self.estimate(others))
        # As many constants as values would hide what the model misses.
        return step, interval if others.sum() > self.rows.shape[1] else None


def _differ(measured: Sequence[Configuration], chosen: Chosen) -> bool:
    """Whether micro-batches tell the micro-batch time from the fixed time."""
    slopes = np.array([one.slope for one in measured])[chosen]
    return len(slopes) > 0 and bool(np.ptp(slopes) > 1e-9 * slopes.max())


def _settled(
    measured: Sequence[Configuration], chosen: Chosen, kept: float | None
) -> tuple[_Series, Estimate]:
    """The lines at the micro-batch time that they give, and the constants."""
    slopes = np.array([one.slope for one in measured])
    steps = np.array([one.step_s for one in measured])
    first = time = float((steps / slopes)[chosen].min())
    for _ in range(MOST_ROUNDS):
        values = _Series.of(measured, time, kept, slopes).estimate(chosen).values
        reached = float(values[0])
        if abs(reached - time) <= SETTLED * reached:
            rises = np.array([one.rise(time) for one in measured])
            series = _Series.of(measured, time, kept, rises)
            return series, replace(series.estimate(chosen), values=values)
        time = reached or time / 4
        if time < LEAST * first:
            raise InputError(
                "no micro-batch time above 0 fits: the measured steps do not grow with "
                "micro-batches, or communication alone takes longer than they do"
            )
    raise InputError(
        "the fit does not settle: exposed communication changes faster than compute"
    )


def _step_error(job: Job, known: Estimate, fixed: float, noise: Scatter) -> float:
    """Half the interval of one run of ``job``, as a share of its step; 0: unknown."""
    step = rounds(job) * float(known.values[0]) + fixed
    row = np.array([rounds(job), 1.0])[: len(known.values)] / step
    return known.half_width(row, known.lack + noise.run) or 0.0


def _around(known: Estimate, index: int) -> Interval | None:
    """The interval of one constant, s."""
    row = np.zeros(len(known.values))
    row[index] = 1.0
    half = known.half_width(row)
    if half is None:
        return None
    value = float(known.values[index])
    return max(value - half, 0.0), value + half


def _warnings(
    kept: float | None, known: Estimate, noise: Scatter, count: int, job: Job
) -> Iterator[str]:
    """What the points leave open."""
    assumed = any(each.key == FIXED for each in job.assumed)
    if kept is not None:
        yield (
            "the points do not differ in micro-batches and cannot tell the fixed time; "
            f"it is {kept:g} s, {'assumed' if assumed else 'as in the job'}"
        )
    elif not known.values[1]:
        yield (
            "the fixed time is held at 0, and would be negative otherwise: the larger "
            "steps take longer than micro-batches and communication explain"
        )
    if noise.degrees and count <= len(known.values):
        yield (
            "there are as many constants as configurations: the intervals hold the "
            "scatter of runs alone, not what the model misses"
        )
