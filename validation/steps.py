"""Step times of public runs: fitted on some points, predicted at the others."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

from placer.calibrate.fit import Calibration, calibrate
from placer.calibrate.measurements import Measurements, step_flops
from placer.errors import InputError
from validation.files import SERIES, series
from validation.markdown import milliseconds, percent, seconds, table

if TYPE_CHECKING:
    from placer.calibrate.fit import Prediction
    from placer.calibrate.measurements import Point


@cache
def calibrated(name: str) -> Calibration:
    """The fit of a series on the points its file says."""
    return calibrate(series(name))


def section(name: str) -> str:
    """One series: the fitted times and every point."""
    fit, measured = calibrated(name), series(name)
    parts = [
        f"### {measured.description}",
        "\n".join(f"- {source}" for source in measured.sources),
        f"Fitted ({_fitted_names(measured)}): micro-batch time "
        f"{milliseconds(fit.micro_batch_s)}, fixed time {milliseconds(fit.fixed_s)}"
        f"; as a rate {fit.tflops_per_gpu:.0f} TFLOP/s a GPU. `placer calibrate "
        f"validation/points/{name}.yaml`",
    ]
    parts += [f"Note: {warning}." for warning in fit.warnings]
    rows = [
        (
            f"{point.name}: {point.source}",
            str(point.job.parallelism.dp),
            str(point.job.micro_batches),
            _measured(point, point.step_s),
            _measured(point, prediction.step_s),
            "fitted" if point.fit else percent(published_error(prediction)),
        )
        for prediction in fit.predictions
        for point in (prediction.point,)
    ]
    head = ("run", "dp", "micro-batches", "measured", "predicted", "error")
    return "\n\n".join([*parts, table(head, rows)])


def other_pairs() -> str:
    """Errors at the other points for every choice of two points to fit."""
    rows = []
    for name in SERIES:
        measured = series(name)
        if len(measured.points) < 3 or name == "llama3-405b-rates":
            continue
        rows += [
            (_pair(measured, pair), *_pair_errors(measured, pair))
            for pair in combinations(range(len(measured.points)), 2)
        ]
    head = ("fitted pair", "micro-batch", "fixed", "errors at the others")
    return table(head, rows)


def _pair(measured: Measurements, pair: tuple[int, ...]) -> str:
    return f"{measured.name}: " + " and ".join(
        measured.points[index].name for index in pair
    )


def _pair_errors(measured: Measurements, pair: tuple[int, ...]) -> tuple[str, str, str]:
    points = tuple(
        replace(point, fit=index in pair) for index, point in enumerate(measured.points)
    )
    try:
        fit = calibrate(replace(measured, points=points))
    except InputError:
        return "-", "-", "no time above 0 fits"
    if fit.warnings and fit.fixed_s >= 0:
        return "-", "-", "the same number of micro-batches"
    errors = [percent(p.error) for p in fit.predictions if not p.point.fit]
    return milliseconds(fit.micro_batch_s), milliseconds(fit.fixed_s), ", ".join(errors)


def published_error(prediction: Prediction) -> float:
    """Error of what was published: the step, or the rate, which is its inverse."""
    error = prediction.error
    return 1 / (1 + error) - 1 if prediction.point.by_rate else error


def _fitted_names(measured: Measurements) -> str:
    return " and ".join(point.name for point in measured.points if point.fit)


def _measured(point: Point, step_s: float) -> str:
    """A step, and its rate where rates are what was published."""
    if not point.by_rate:
        return seconds(step_s)
    rate = step_flops(point.job) / point.job.world_size / step_s / 1e12
    return f"{rate:.0f} TFLOP/s"
