"""A calibration as text, as lines of a job file, and as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placer.report.columns import columns
from placer.units import format_seconds

if TYPE_CHECKING:
    from placer.calibrate.fit import Calibration, Prediction


def compute_line(calibration: Calibration) -> str:
    """The ``compute`` line of the job file: a rate if the job has one, else a time."""
    work = f"micro_batch_time: {_milliseconds(calibration.micro_batch_s)}"
    if calibration.job.compute.tflops_per_gpu:
        work = f"tflops_per_gpu: {calibration.tflops_per_gpu:.6g}"
    return f"compute: {{{work}, fixed_time: {_milliseconds(calibration.fixed_s)}}}"


def as_text(calibration: Calibration) -> str:
    """The ``compute`` line and every point, for people; without a final newline."""
    rows: list[tuple[str, ...]] = [("", "measured", "predicted", "error")]
    rows += [_row(prediction) for prediction in calibration.predictions]
    return "\n".join((compute_line(calibration), "", *columns(rows)))


def as_yaml(calibration: Calibration) -> str:
    """The ``compute`` line under comments that say what it explains, and how well."""
    comments = [
        f"# {p.point.name}: {p.point.step_s:.6g} s measured, {p.step_s:.6g} s "
        f"{'fitted' if p.point.fit else 'predicted'} ({p.error:+z.2%})"
        for p in calibration.predictions
    ]
    return "\n".join((*comments, compute_line(calibration)))


def as_data(calibration: Calibration) -> dict[str, Any]:
    """The calibration ready for JSON; times in seconds."""
    return {
        "job": calibration.job.name,
        "compute": {
            "micro_batch_time_s": calibration.micro_batch_s,
            "fixed_time_s": calibration.fixed_s,
            "tflops_per_gpu": calibration.tflops_per_gpu,
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
                "residual_s": prediction.residual_s,
                "error": prediction.error,
            }
            for prediction in calibration.predictions
        ],
        "warnings": list(calibration.warnings),
    }


def _row(prediction: Prediction) -> tuple[str, ...]:
    return (
        f"  {prediction.point.name}",
        format_seconds(prediction.point.step_s),
        format_seconds(prediction.step_s),
        f"{prediction.error:+z.2%}",
        "fitted" if prediction.point.fit else "not used",
    )


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.6g}ms"
