"""Step times of public runs: what all points of a series say, and all but one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from math import sqrt
from statistics import fmean
from typing import TYPE_CHECKING

from placer.calibrate.estimate import quantile
from placer.calibrate.fit import calibrate
from placer.calibrate.measurements import step_flops
from placer.calibrate.text import CONFIDENCE, rms
from validation.files import RATES, SERIES, series
from validation.markdown import milliseconds, percent, seconds, table

if TYPE_CHECKING:
    from placer.calibrate.fit import Calibration, Interval, Prediction
    from placer.calibrate.measurements import Point

# Series whose points may be held against each other: more than two configurations, and
# medians of whole runs.
JUDGED = tuple(
    name
    for name in SERIES
    if name not in (RATES, "llama3.1-405b-theia", "deepseek-v3-gb300")
)


@cache
def calibrated(name: str) -> Calibration:
    """The fit of a series on the points its file says."""
    return calibrate(series(name))


def fits(names: Sequence[str]) -> str:
    """The fitted times of every series, and the point that the others miss most."""
    rows = []
    for name in names:
        fit = calibrated(name)
        rows.append(
            (
                f"`{name}`",
                _sure(fit.micro_batch_s, fit.micro_batch_interval_s),
                _sure(fit.fixed_s, fit.fixed_interval_s),
                f"{fit.tflops_per_gpu:.0f}",
                _shown(max(fit.predictions, key=lambda p: abs(_off(p)))),
            )
        )
    head = ("series", "micro-batch", "fixed time", "TFLOP/s a GPU", "worst point")
    return table(head, rows)


def _shown(prediction: Prediction) -> str:
    """A point: what was measured, and the error of what the others predict."""
    point = prediction.point
    return f"{point.name}: {_measured(point, point.step_s)} {percent(_off(prediction))}"


def _off(prediction: Prediction) -> float:
    """The error when the point is left out; of the fit where that says nothing."""
    error = prediction.left_out_error
    return published_error(prediction) if error is None else error


def _sure(value: float, interval: Interval | None) -> str:
    """A time with its interval."""
    if interval is None:
        return milliseconds(value)
    low, high = (milliseconds(end).removesuffix(" ms") for end in interval)
    return f"{milliseconds(value)} ({low} to {high})"


def left_out_summary() -> str:
    """Errors of every judged series when each point is predicted by the others."""
    rows = []
    errors: list[float] = []
    for name in JUDGED:
        own = calibrated(name).left_out_errors
        errors += own
        rows.append(_summary_row(name, own))
    rows.append(_summary_row("all four", tuple(errors)))
    head = ("series", "points", "rms error", "worst", "within 1 %")
    return table(head, rows)


def _summary_row(name: str, errors: tuple[float, ...]) -> tuple[str, ...]:
    near = sum(abs(error) <= 0.01 for error in errors)
    return (
        name,
        str(len(errors)),
        percent(rms(errors)).lstrip("+"),
        percent(max(errors, key=abs)),
        str(near),
    )


def left_out_rms() -> float:
    """Root mean square of the errors of all judged series."""
    return rms(tuple(e for name in JUDGED for e in calibrated(name).left_out_errors))


def covered() -> tuple[int, int]:
    """Judged points inside the interval that the others give, and all of them."""
    inside = [
        low <= prediction.point.step_s <= high
        for name in JUDGED
        for prediction in calibrated(name).predictions
        if prediction.left_out_interval_s
        for low, high in (prediction.left_out_interval_s,)
    ]
    return sum(inside), len(inside)


def difference_noise() -> tuple[float, int]:
    """Half the interval of a difference of two steps with one compute, and its degrees.

    Points of one system with the same micro-batches share their compute and fixed time,
    as two placements do. The residuals around the mean of such points have a pooled
    variance; a difference of two has twice that.
    """
    groups: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for name in JUDGED:
        for prediction in calibrated(name).predictions:
            point = prediction.point
            system, _, _ = point.name.partition(",")
            groups[name, system, point.job.micro_batches].append(prediction.error)
    return _pooled(groups.values())


def run_noise() -> tuple[float, int]:
    """The same of two runs of one configuration, from all that ran more than once."""
    points = [point for name in SERIES for point in series(name).points]
    return _pooled([[run / point.step_s for run in point.runs_s] for point in points])


def _pooled(groups: Iterator[list[float]] | list[list[float]]) -> tuple[float, int]:
    groups = [group for group in groups if len(group) > 1]
    degrees = sum(len(group) - 1 for group in groups)
    squares = sum((one - fmean(group)) ** 2 for group in groups for one in group)
    return quantile(CONFIDENCE, degrees) * sqrt(2 * squares / degrees), degrees


def published_error(prediction: Prediction) -> float:
    """Error of what was published: the step, or the rate, which is its inverse."""
    error = prediction.error
    return 1 / (1 + error) - 1 if prediction.point.by_rate else error


def _measured(point: Point, step_s: float) -> str:
    """A step, and its rate where rates are what was published."""
    if not point.by_rate:
        return seconds(step_s)
    rate = step_flops(point.job) / point.job.world_size / step_s / 1e12
    return f"{rate:.0f} TFLOP/s"
