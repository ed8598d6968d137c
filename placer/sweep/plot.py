"""Step time and exposed scale-out time of a sweep, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from placer.base.errors import InputError
from placer.base.units import format_seconds
from placer.documents import Section, open_document
from placer.documents.keys import number
from placer.draw.line_plot import Panel, Series, line_plot
from placer.report.sweep_table import cell, label
from placer.sweep.grid import MAX_POINTS, NIC_RATE, OVERSUBSCRIPTION, SIZES

_TIMES = ("step_time_s", "exposed_scale_out_s")
# Above zero: a value may lie on a logarithmic axis.
_LEAST = 1e-9


def read_rows(source: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows that ``placer sweep --format json`` printed, and the keys that it swept.

    Of a row only what a plot shows is kept.
    """
    document = open_document(source)
    hint = "this wants what `placer sweep --format json` prints"
    document.root.has("assumed")  # what is drawn does not show it
    if not document.root.has("rows"):
        raise InputError("no rows of a sweep", source, hint=hint)
    values = document.root.items("rows", required=True)
    if len(values) > MAX_POINTS:
        document.root.problem(f"{len(values):,} rows; at most {MAX_POINTS:,}", "rows")
    sections = [value.section() for value in values[:MAX_POINTS]]
    swept = _swept(sections[0]) if sections else []
    if not swept and not document.problems:
        document.root.problem("no rows of a sweep", "rows", hint)
    rows = [_row(section, swept) for section in sections]
    document.finish()
    return rows, swept


def _swept(section: Section) -> list[str]:
    """The keys of a point: they stand before what follows from them."""
    keys = (key for key, _ in section.entries())
    found = [*takewhile(lambda key: key != "world_size", keys)]
    fixed = [key for key in (*SIZES, NIC_RATE) if key in found]
    return fixed + [key for key in found if key.startswith(OVERSUBSCRIPTION)]


def _row(section: Section, swept: list[str]) -> dict[str, Any]:
    values = dict(section.entries())
    row: dict[str, Any] = {key: section.take(number(_LEAST), key) for key in swept}
    if "step_time_s" in values:
        return row | {key: section.take(number(), key) for key in _TIMES}
    error = values.get("error")
    return row | {"error": str(error.content) if error else "no placement"}


Row = Mapping[str, Any]

_PANELS = {"step_time_s": "step time", "exposed_scale_out_s": "exposed scale-out time"}


def sweep_plot(rows: Sequence[Row], swept: Sequence[str], theme: str = "auto") -> str:
    """SVG with a point a row in both panels; rows without a placement are crosses.

    ``swept``: keys that vary. The first with two values or more is the horizontal axis;
    every combination of the others is a line. ``theme``: ``auto``, ``light`` or
    ``dark``.
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
