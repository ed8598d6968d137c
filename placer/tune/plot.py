"""Step time over the memory of a GPU, and over GPUs, of choices that were placed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from placer.base.units import format_bytes, format_seconds
from placer.draw.line_plot import Panel, Series, line_plot
from placer.report.tune_words import degrees, sharding

if TYPE_CHECKING:
    from placer.tune.tuning import Tuning

    Row = dict[str, Any]

_TITLE = "Step time against memory and GPUs"


def tune_plot(found: Tuning, theme: str = "auto") -> str:
    """SVG: the choices that none beats in both joined by a line, the others as points.

    GPUs have a panel of their own where choices differ in them.

    ``theme``: ``auto``, ``light`` or ``dark``.
    """
    content = found.to_dict()
    fronts, own = content["fronts"], content["own"]
    yours = [own] if own and "error" not in own else []
    placed = found.placed_rows
    by_memory = fronts["memory"] or placed[:1]
    longest = max(row["step_time_s"] for row in (*by_memory, *yours))
    near = [row for row in placed if row["step_time_s"] <= longest]
    panels = [_panel("memory of a GPU", "memory_bytes", by_memory, near, yours)]
    if len({row["gpus"] for row in placed}) > 1:
        front = fronts["gpus"] or placed[:1]
        panels.append(_panel("GPUs", "gpus", front, placed, yours))
    title = _TITLE if len(panels) > 1 else _TITLE.removesuffix(" and GPUs")
    return line_plot(panels, f"{title}: {found.job.name}", theme)


def _panel(
    label: str, key: str, front: Sequence[Row], placed: Sequence[Row], own: list[Row]
) -> Panel:
    """Step time over one key of rows."""
    is_bytes = key.endswith("bytes")
    text: Callable[[float], str] = format_bytes if is_bytes else "{:,.0f}".format
    series = [
        Series("placed too", _points(placed, key, text, front), is_line=False),
        Series("none is better in both", _points(front, key, text)),
    ]
    if own:
        name = "the job's own degrees"
        series.append(Series(name, _points(own, key, text), is_line=False))
    return Panel("step time", tuple(series), format_seconds, label, text)


def _points(
    rows: Sequence[Row],
    key: str,
    text: Callable[[float], str],
    without: Sequence[Row] = (),
) -> tuple[tuple[float, float | None, str], ...]:
    """A point a row, by value; on hover what was chosen."""
    shown = sorted((row for row in rows if row not in without), key=lambda r: r[key])
    return tuple(
        (row[key], row["step_time_s"], _hover(row, key, text)) for row in shown
    )


def _hover(row: Row, key: str, text: Callable[[float], str]) -> str:
    value = f"{text(row[key])}{' GPUs' if key == 'gpus' else ''}"
    return (
        f"{degrees(row)}, {sharding(row)}, recompute {row['recompute']}: "
        f"{value}, {format_seconds(row['step_time_s'])}"
    )
