"""Step time and exposed scale-out time of a sweep, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from placer.base.units import format_seconds
from placer.draw.line_plot import Panel, Series, line_plot
from placer.report.sweep_table import cell, label

Row = Mapping[str, Any]

_PANELS = {
    "step_time_s": "step time",
    "exposed_scale_out_s": "exposed scale-out time",
}


def sweep_plot(rows: Sequence[Row], swept: Sequence[str], theme: str = "auto") -> str:
    """SVG with a point a row in both panels; rows without a placement are crosses.

    Parameters
    ----------
    rows : sequence of mapping, at least one
    swept : sequence of str
        Keys that vary. The first with two values or more is the horizontal axis; every
        combination of the others is a line.
    theme : str
        ``auto``, ``light`` or ``dark``.
    """
    x_key = next((k for k in swept if len({row[k] for row in rows}) > 1), swept[0])
    others = [key for key in swept if key != x_key]
    lines: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row[x_key]):
        name = ", ".join(f"{label(key)} {cell(row, key)}" for key in others)
        lines.setdefault(name, []).append(row)
    panels = [
        Panel(
            title,
            tuple(
                Series(name, tuple(_point(row, x_key, y_key) for row in line))
                for name, line in lines.items()
            ),
            format_seconds,
            label(x_key),
            lambda value: cell({x_key: value}, x_key),
        )
        for y_key, title in _PANELS.items()
    ]
    return line_plot(panels, f"Best placement by {label(x_key)}", theme)


def _point(row: Row, x_key: str, y_key: str) -> tuple[float, float | None, str]:
    """One point with its text on hover."""
    seconds = row.get(y_key)
    text = row["error"] if seconds is None else cell(row, y_key)
    return row[x_key], seconds, f"{label(x_key)} {cell(row, x_key)}: {text}"
