"""Compute times that were fitted, and how well they explain the measurements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from placer.calibrate.measurements import timed, work_ratio
from placer.job.read import job_digest
from placer.job.work import micro_batch_work

if TYPE_CHECKING:
    from placer.calibrate.measurements import Point
    from placer.job.model import Job

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Prediction:
    """What the model says about one measured step.

    Attributes
    ----------
    point : Point
    step_s : float, s
        Predicted with the fitted times.
    interval_s : pair of float or None, s
        Where the step of one more run would lie.
    left_out_s : float or None, s
        Predicted by the other points alone; None when they cannot, or the point is not
        fitted anyway.
    left_out_interval_s : pair of float or None, s
        Where the others say one run would lie.
    """

    point: Point
    step_s: float
    interval_s: Interval | None = None
    left_out_s: float | None = None
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
        """The same of what the others predict; None when they do not."""
        if self.left_out_s is None:
            return None
        return self.left_out_s / self.point.step_s - 1


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
    micro_batch_interval_s, fixed_interval_s : pair of float or None, s
    step_error : float
        Half the interval of one run of ``job``, as a share of its step; 0 when unknown.
    run_scatter : float
        Standard deviation of one run, relative; 0 when unknown.
    model_error : float
        Standard deviation of what the model misses, relative.
    warnings : tuple of str
        What the points leave open.
    """

    job: Job
    micro_batch_s: float
    fixed_s: float
    predictions: tuple[Prediction, ...]
    micro_batch_interval_s: Interval | None = None
    fixed_interval_s: Interval | None = None
    step_error: float = 0.0
    run_scatter: float = 0.0
    model_error: float = 0.0
    warnings: tuple[str, ...] = ()

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
