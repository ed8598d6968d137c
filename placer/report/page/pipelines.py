"""The pipelines of a report: each side's slowest replica, on one clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from placer.base.units import format_seconds
from placer.draw.pipeline import Run, band, micro_batches_text, slowest_run
from placer.report.page.bars import permille
from placer.report.page.side import Side

# Pixels of all stages of a side, unless these are many, and of one.
_HIGH, _LEAST_ROW, _MOST_ROW = 96, 11, 14
_APART = 0.06  # of the width: times closer than that would cover each other
_SAME_S = 1e-6


def pipelines(sides: Sequence[Side]) -> dict[str, Any]:
    """What the page says of pipelines, and draws; no ``runs`` where times are unknown.

    A run has ``bands``: names of stages, pixels of each, and the SVG of their work.
    """
    steps = [(side.name, side.step) for side in sides]
    runs = [
        (name, slowest_run(step))
        for name, step in steps
        if step is not None and step.model.job.model is not None
    ]
    if not runs:
        return {"runs": []}
    longest = max(run.total_s for _, run in runs)
    stages = max(len(run.stages) for _, run in runs)
    row = max(_LEAST_ROW, min(_MOST_ROW, _HIGH // stages))
    return {
        "runs": [_shown(name, run, longest, row) for name, run in runs],
        "pipe_heading": _heading([run for _, run in runs]),
        "pipe_line": _line([run for _, run in runs]),
        "pipe_legend": dict(entry for _, run in runs for entry in run.legend),
    }


def _shown(name: str, run: Run, longest_s: float, row: int) -> dict[str, Any]:
    total, pipeline = (s / longest_s for s in (run.total_s, run.pipeline_s))
    return {
        "name": name,
        "bands": [(own, row, band(run, own, longest_s)) for own in run.bands],
        "left_out": run.left_out,
        "total": (permille(total), format_seconds(run.total_s)),
        "pipeline": (permille(pipeline), format_seconds(run.pipeline_s))
        if total - pipeline > _APART
        else None,
    }


def _heading(runs: Sequence[Run]) -> str:
    change = runs[0].pipeline_s - runs[-1].pipeline_s
    if abs(change) <= _SAME_S:
        last = format_seconds(runs[-1].pipeline_s)
        return f"The slowest replica's pipeline takes {last}"
    word = "sooner" if change > 0 else "later"
    return f"The slowest replica's pipeline ends {format_seconds(abs(change))} {word}"


def _line(runs: Sequence[Run]) -> str:
    first, last = runs[0].replica, runs[-1].replica
    which = f"{first} before, {last} after" if first != last else f"{last}"
    return f"Replica {which}. A row is a stage, {micro_batches_text(runs[-1])}."
