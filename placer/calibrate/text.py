"""What was calibrated: as text, lines of a job file, and plain data in SI."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan, sqrt
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from placer.base.units import format_seconds
from placer.calibrate.estimate import CONFIDENCE
from placer.calibrate.fit import Calibration, Interval, Prediction
from placer.calibrate.links import LinkFit
from placer.report.columns import columns

if TYPE_CHECKING:
    from placer.calibrate.hardware import HardwareFit, Reading, TierFit


def compute_line(calibration: Calibration) -> str:
    """The ``compute`` line of the job file: a rate if the job has one, else a time."""
    by_rate = calibration.job.compute.tflops_per_gpu > 0
    line = _compute(calibration, calibration.fixed_s, by_rate=by_rate)
    error = calibration.step_error
    return f"{line}, step_error: {error:.2g}}}" if error else f"{line}}}"


def use_options(calibration: Calibration) -> str:
    """The options of other commands that say what was found, whatever has the job."""
    compute = calibration.job.compute
    settings = {"micro_batch_time": _milliseconds(calibration.micro_batch_s)}
    if compute.tflops_per_gpu:
        settings = {"tflops_per_gpu": f"{calibration.tflops_per_gpu:.6g}"}
    if calibration.fixed_s != compute.fixed_s:
        settings["fixed_time"] = _milliseconds(calibration.fixed_s)
    return " ".join(f"--set job.compute.{key}={v}" for key, v in settings.items())


def as_text(calibration: Calibration) -> str:
    """The ``compute`` line, what is known of it, every point, and what to do next."""
    rows: list[tuple[str, ...]] = [
        ("", "measured", "predicted", "error", "", "left out", f"{CONFIDENCE:.0%}")
    ]
    rows += [_row(prediction) for prediction in calibration.predictions]
    return _blocks(
        [compute_line(calibration)],
        columns(_constants(calibration)),
        columns(rows),
        [left_out_line(calibration)],
        [f"use: {use_options(calibration)}"],
    )


def _blocks(*blocks: Iterable[str]) -> str:
    return "\n\n".join(filter(None, ("\n".join(lines) for lines in blocks)))


def left_out_line(calibration: Calibration) -> str:
    """How well the points predict each other; empty when they do not."""
    errors = calibration.left_out_errors
    if not errors:
        return ""
    worst = max(errors, key=abs)
    (name, *_) = (
        prediction.point.name
        for prediction in calibration.predictions
        if prediction.left_out_error == worst
    )
    return (
        f"each point from the others: rms error {rms(errors):.2%}, "
        f"worst {worst:+.2%} ({name})"
    )


def rms(errors: tuple[float, ...]) -> float:
    """Root of the mean square."""
    return sqrt(sum(error**2 for error in errors) / len(errors))


def _constants(calibration: Calibration) -> list[tuple[str, ...]]:
    """The constants with their intervals, where these are known."""
    found = (
        (
            "micro-batch time",
            calibration.micro_batch_s,
            calibration.micro_batch_interval_s,
        ),
        ("fixed time", calibration.fixed_s, calibration.fixed_interval_s),
    )
    return [
        (f"  {name}", format_seconds(value), *_between(interval))
        for name, value, interval in found
        if interval
    ]


def _between(interval: Interval) -> tuple[str, ...]:
    low, high = map(format_seconds, interval)
    return (f"{CONFIDENCE:.0%}: {low} to {high}",)


def as_yaml(calibration: Calibration) -> str:
    """The ``compute`` line under comments that say what it explains, and how well."""
    comments = [
        f"# {p.point.name}: {p.point.step_s:.6g} s measured, {p.step_s:.6g} s "
        f"{'fitted' if p.point.fit else 'predicted'} ({p.error:+z.2%})"
        for p in calibration.predictions
    ]
    return "\n".join((*comments, compute_line(calibration)))


def as_data(calibration: Calibration) -> dict[str, Any]:
    """The calibration ready for JSON; times in seconds, an unknown interval is null."""
    errors = calibration.left_out_errors
    return {
        "job": calibration.job.name,
        "compute": {
            "micro_batch_time_s": calibration.micro_batch_s,
            "micro_batch_time_interval_s": calibration.micro_batch_interval_s,
            "fixed_time_s": calibration.fixed_s,
            "fixed_time_interval_s": calibration.fixed_interval_s,
            "tflops_per_gpu": calibration.tflops_per_gpu,
            "step_error": calibration.step_error,
        },
        "confidence": CONFIDENCE,
        "run_scatter": calibration.run_scatter,
        "model_error": calibration.model_error,
        "left_out": {
            "rms": rms(errors) if errors else None,
            "worst": max(errors, key=abs) if errors else None,
        },
        "points": [
            {
                "name": prediction.point.name,
                "ranks": prediction.point.job.world_size,
                "dp": prediction.point.job.parallelism.dp,
                "micro_batches": prediction.point.job.micro_batches,
                "fit": prediction.point.fit,
                "measured_s": prediction.point.step_s,
                "predicted_s": prediction.step_s,
                "interval_s": prediction.interval_s,
                "residual_s": prediction.residual_s,
                "error": prediction.error,
                "left_out_s": prediction.left_out_s,
                "left_out_interval_s": prediction.left_out_interval_s,
                "left_out_error": prediction.left_out_error,
            }
            for prediction in calibration.predictions
        ],
        "warnings": list(calibration.warnings),
    }


def _row(prediction: Prediction) -> tuple[str, ...]:
    point, error = prediction.point, prediction.left_out_error
    if error is None:
        left_out = ("", half_width(prediction.interval_s, point.step_s))
    else:
        width = half_width(prediction.left_out_interval_s, point.step_s)
        left_out = (f"{error:+z.2%}", width)
    return (
        f"  {point.name}",
        format_seconds(point.step_s),
        format_seconds(prediction.step_s),
        f"{prediction.error:+z.2%}",
        "fitted" if point.fit else "not used",
        *left_out,
    )


def half_width(interval: Interval | None, step_s: float) -> str:
    """Half an interval as a share of a step; empty when unknown."""
    if interval is None:
        return ""
    low, high = interval
    return f"+-{(high - low) / 2 / step_s:.2%}"


def _compute(found: Calibration | LinkFit, fixed_s: float, *, by_rate: bool) -> str:
    """Work and fixed time of a ``compute`` line that is still open."""
    work = f"micro_batch_time: {_milliseconds(found.micro_batch_s)}"
    if by_rate:
        work = f"tflops_per_gpu: {found.tflops_per_gpu:.6g}"
    return f"compute: {{{work}, fixed_time: {_milliseconds(fixed_s)}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.6g}ms"


def links_line(fit: LinkFit) -> str:
    """The ``compute`` line of the same."""
    line = _compute(fit, fit.job.compute.fixed_s, by_rate=fit.by_rate)
    return f"{line}}}"


def links_text(fit: LinkFit) -> str:
    """The ``compute`` line, tiers, and every point."""
    low, high = map(format_seconds, fit.micro_batch_interval_s)
    time = format_seconds(fit.micro_batch_s)
    constants = [("  micro-batch time", time, f"95%: {low} to {high}")]
    constants += [
        (
            f"  efficiency of {one.tier}",
            f"{one.after:.3f} (was {one.before:.3g})",
            f"95%: {one.interval[0]:.3f} to {min(one.interval[1], 1.0):.3f}",
        )
        for one in fit.tiers
    ]
    rows: list[tuple[str, ...]] = [("", "measured", "predicted", "error", "left out")]
    rows += [
        (
            f"  {point.name}",
            format_seconds(point.step_s),
            format_seconds(step),
            f"{step / point.step_s - 1:+z.2%}",
            "" if isnan(left_out) else f"{left_out / point.step_s - 1:+z.2%}",
        )
        for point, step, left_out in zip(
            fit.points, fit.steps_s, fit.left_out_s, strict=True
        )
    ]
    errors = fit.left_out_errors()
    last = f"each point from the others: rms error {rms(errors):.2%}" if errors else ""
    return _blocks([links_line(fit)], columns(constants), columns(rows), [last])


def links_data(fit: LinkFit) -> dict[str, Any]:
    """A fit of links as data, with numbers in SI."""
    errors = fit.left_out_errors()
    return {
        "job": fit.job.name,
        "compute": {
            "micro_batch_time_s": fit.micro_batch_s,
            "micro_batch_time_interval_s": fit.micro_batch_interval_s,
            "fixed_time_s": fit.job.compute.fixed_s,
            "tflops_per_gpu": fit.tflops_per_gpu,
        },
        "tiers": [
            {
                "tier": one.tier,
                "efficiency": one.after,
                "efficiency_before": one.before,
                "interval": one.interval,
            }
            for one in fit.tiers
        ],
        "left_out": {"rms": rms(errors) if errors else None},
        "points": [
            {
                "name": point.name,
                "ranks": point.job.world_size,
                "measured_s": point.step_s,
                "predicted_s": step,
                "left_out_s": None if isnan(left_out) else left_out,
            }
            for point, step, left_out in zip(
                fit.points, fit.steps_s, fit.left_out_s, strict=True
            )
        ],
    }


def hardware_text(fit: HardwareFit) -> str:
    """A table of tiers, then one of what was measured."""
    tiers: list[tuple[str, ...]] = [
        ("tier", "line rate", "efficiency", "rms error", "latency", "")
    ]
    tiers += [_tier_row(one) for one in fit.tiers]
    head = ("", "test", "GPUs", "nodes", "tier", "long", "bus", "of its line", "")
    rows = [head, *(_table_row(fit, reading) for reading in fit.readings)]
    return _blocks(columns(tiers), columns(rows))


def hardware_data(fit: HardwareFit) -> dict[str, Any]:
    """Tiers and measurements as data, with numbers in SI."""
    return {
        "tiers": [
            {
                "tier": one.after.name,
                "bandwidth_bytes_per_s": one.after.bandwidth,
                "efficiency": one.after.efficiency,
                "efficiency_before": one.before.efficiency,
                "rms_error": one.error,
                "tables": len(one.readings),
                "latency_s": one.after.latency,
                "latency_before_s": one.before.latency,
                "latency_from": one.latency_words,
            }
            for one in fit.tiers
        ],
        "tables": [
            {
                "source": reading.table.source,
                "test": reading.table.test,
                "gpus": reading.table.ranks,
                "nodes": reading.nodes,
                "tier": fit.topology.tiers[reading.tier].name,
                "line_rate_bytes_per_s": reading.line,
                "share_of_line_rate": reading.share,
                "long_messages": len(reading.shares),
                "short_message_s": reading.start_s,
                "used": _is_used(fit, reading),
            }
            for reading in fit.readings
        ],
    }


def _tier_row(one: TierFit) -> tuple[str, ...]:
    changed = one.after.efficiency != one.before.efficiency
    was = f" (was {one.before.efficiency:.3g})" if changed else ""
    return (
        one.after.name,
        _rate(one.after.bandwidth),
        f"{one.after.efficiency:.3g}{was}" if one.readings else "not told",
        f"{one.error:.1%}" if one.readings else "",
        format_seconds(one.after.latency),
        one.latency_words,
    )


def _table_row(fit: HardwareFit, reading: Reading) -> tuple[str, ...]:
    return (
        PurePath(reading.table.source).name,
        reading.table.test,
        f"{reading.table.ranks:,}",
        f"{reading.nodes:,}",
        fit.topology.tiers[reading.tier].name,
        str(len(reading.shares)),
        _rate(reading.share * reading.line),
        f"{reading.share:.3g}",
        _why(fit, reading),
    )


def _why(fit: HardwareFit, reading: Reading) -> str:
    if not reading.shares:
        return "no message of 256 MiB"
    if not reading.tells_rate:
        return "beats a ring: a switch or a tree; use alltoall or sendrecv"
    return "fitted" if _is_used(fit, reading) else "beside tests without a tree"


def _is_used(fit: HardwareFit, reading: Reading) -> bool:
    return any(reading is one for tier in fit.tiers for one in tier.readings)


def _rate(value: float) -> str:
    return f"{value / 1e9:.4g} GB/s"
