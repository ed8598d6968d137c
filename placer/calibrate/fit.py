"""Micro-batch time and fixed time from measured steps, by least squares.

The model says ``step = t (m + (p-1)/v) + rest(t) + fixed`` with ``t`` the micro-batch
time, ``m`` micro-batches, ``p`` stages, ``v`` chunks, and ``rest`` the exposed
communication, which depends on ``t`` a little: longer work hides more. So ``t`` and
``fixed`` solve a linear least-squares problem in which ``rest`` is that of the last
``t``, again and again until ``t`` stays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.cost.step import StepModel
from placer.errors import InputError
from placer.job.read import job_digest
from placer.job.work import micro_batch_work
from placer.placement.baselines import baseline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.calibrate.measurements import Measurements, Point
    from placer.job.model import Job

FloatArray = npt.NDArray[np.float64]

SETTLED = 1e-12  # relative change of the micro-batch time that ends the iteration
MOST_ROUNDS = 200


@dataclass(frozen=True, eq=False)
class Prediction:
    """What the model says about one measured step.

    Attributes
    ----------
    point : Point
    step_s : float, s
        Predicted with the fitted times.
    """

    point: Point
    step_s: float

    @property
    def residual_s(self) -> float:
        """Predicted less measured, s."""
        return self.step_s - self.point.step_s

    @property
    def error(self) -> float:
        """Residual as a share of the measured step."""
        return self.residual_s / self.point.step_s


@dataclass(frozen=True, eq=False)
class Calibration:
    """Compute times of a job, and how well they explain the measurements.

    Attributes
    ----------
    job : Job
        The job the times are of.
    micro_batch_s, fixed_s : float, s
    predictions : tuple of Prediction
        One a point, kept-out points included.
    warnings : tuple of str
        What the points leave open.
    """

    job: Job
    micro_batch_s: float
    fixed_s: float
    predictions: tuple[Prediction, ...]
    warnings: tuple[str, ...] = ()

    @property
    def tflops_per_gpu(self) -> float:
        """The micro-batch time as a sustained rate, 1e12 FLOP/s; 0 without a model."""
        return micro_batch_work(self.job) / self.micro_batch_s / 1e12

    def applied_to(self, job: Job) -> Job:
        """``job`` with the fitted times.

        A job of another shape takes its share of the micro-batch time by its FLOPs.
        """
        time = self.micro_batch_s * _work_ratio(job, self.job)
        found = _with_times(job, time, self.fixed_s)
        return replace(found, sha256=job_digest(found))


def calibrate(measurements: Measurements) -> Calibration:
    """Micro-batch time and fixed time that fit the measured steps best.

    Every point is scored as its hosts were filled, in the order given. When the points
    to fit do not differ in micro-batches, the fixed time stays that of the job.

    Raises
    ------
    InputError
        If no positive micro-batch time fits, or the iteration does not settle.
    """
    job = measurements.job
    fitted = [_Row(point, job) for point in measurements.points if point.fit]
    slopes = np.array([row.slope for row in fitted])
    both = bool(np.ptp(slopes) > 1e-9 * slopes.max())
    kept = None if both else job.compute.fixed_time
    time, fixed = _solve(fitted, kept)
    predictions = tuple(
        Prediction(point, _Row(point, job).step_s(time) + fixed)
        for point in measurements.points
    )
    warnings = []
    if not both:
        warnings.append(
            "the points do not differ in micro-batches and cannot tell the fixed time; "
            f"it stays {fixed:g} s, as in the job"
        )
    if fixed < 0:
        warnings.append(
            "the fixed time is negative, which a job file refuses: the larger steps "
            "take longer than micro-batches and communication explain"
        )
    return Calibration(job, time, fixed, predictions, tuple(warnings))


class _Row:
    """One point as an equation: its slope in the micro-batch time, and the rest."""

    def __init__(self, point: Point, base: Job) -> None:
        self.point = point
        self.ratio = _work_ratio(point.job, base)
        axes = point.job.parallelism
        rounds = point.job.micro_batches + (axes.pp - 1) / axes.vp
        self.slope = self.ratio * rounds
        self._gpus = baseline("given-order", point.topology, point.job).gpu_of_rank

    def step_s(self, time: float) -> float:
        """Predicted step without fixed time, s."""
        job = _with_times(self.point.job, time * self.ratio, 0.0)
        return StepModel(self.point.topology, job).step(self._gpus).step_time_s


def _solve(rows: Sequence[_Row], kept: float | None) -> tuple[float, float]:
    """Micro-batch time and fixed time; the latter is ``kept`` unless None."""
    slopes = np.array([row.slope for row in rows])
    measured = np.array([row.point.step_s for row in rows])
    time, fixed = float((measured / slopes).min()), 0.0
    for _ in range(MOST_ROUNDS):
        rest = np.array([row.step_s(time) for row in rows]) - slopes * time
        previous = time
        time, fixed = _least_squares(slopes, measured - rest, kept)
        if not time > 0:
            raise InputError(
                "no micro-batch time above 0 fits: the measured steps do not grow with "
                "micro-batches, or communication alone takes longer than they do"
            )
        if abs(time - previous) <= SETTLED * time:
            return time, fixed
    raise InputError(
        "the fit does not settle: exposed communication changes faster than compute"
    )


def _least_squares(
    slopes: FloatArray, values: FloatArray, kept: float | None
) -> tuple[float, float]:
    if kept is not None:
        return float(slopes @ (values - kept) / (slopes @ slopes)), kept
    columns = np.stack((slopes, np.ones_like(slopes)), axis=1)
    time, fixed = np.linalg.lstsq(columns, values, rcond=None)[0]
    return float(time), float(fixed)


def _with_times(job: Job, time: float, fixed: float) -> Job:
    compute = replace(
        job.compute, micro_batch_time=time, tflops_per_gpu=0.0, fixed_time=fixed
    )
    return replace(job, compute=compute)


def _work_ratio(job: Job, base: Job) -> float:
    """Work of a micro-batch of ``job`` on one GPU, in that of ``base``."""
    if job.model is None or base.model is None:
        return 1.0
    return micro_batch_work(job) / micro_batch_work(base)
