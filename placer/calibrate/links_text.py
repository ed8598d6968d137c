"""Efficiencies that layouts showed, for people and as plain data."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

from placer.base.units import format_seconds
from placer.calibrate.text import rms
from placer.report.columns import columns

if TYPE_CHECKING:
    from placer.calibrate.links import Interval, LinkFit


def compute_line(fit: LinkFit) -> str:
    """The ``compute`` line of the job file: a rate if the job has one, else a time."""
    fixed = fit.job.compute.fixed_s * 1e3
    work = f"micro_batch_time: {fit.micro_batch_s * 1e3:.6g}ms"
    if fit.by_rate:
        work = f"tflops_per_gpu: {fit.tflops_per_gpu:.6g}"
    return f"compute: {{{work}, fixed_time: {fixed:.6g}ms}}"


def as_text(fit: LinkFit) -> str:
    """The ``compute`` line, tiers, and every point."""
    low, high = map(format_seconds, fit.micro_batch_interval_s)
    constants: list[tuple[str, ...]] = [
        (
            "  micro-batch time",
            format_seconds(fit.micro_batch_s),
            f"95%: {low} to {high}",
        )
    ]
    constants += [
        (
            f"  efficiency of {one.tier}",
            f"{one.after:.3f} (was {one.before:.3g})",
            f"95%: {_between(one.interval)}",
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
    blocks = [[compute_line(fit)], columns(constants), columns(rows), [last]]
    return "\n\n".join(filter(None, ("\n".join(block) for block in blocks)))


def as_data(fit: LinkFit) -> dict[str, Any]:
    """The same with numbers in SI."""
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


def _between(interval: Interval) -> str:
    low, high = interval
    return f"{low:.3f} to {min(high, 1.0):.3f}"
