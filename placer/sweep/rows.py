"""Rows of an earlier sweep, read back to be drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placer.base.errors import InputError, Problem
from placer.documents import open_document
from placer.sweep.grid import MAX_POINTS, NIC_RATE, OVERSUBSCRIPTION, SIZES

if TYPE_CHECKING:
    from placer.documents import Section

_TIMES = ("step_time_s", "exposed_scale_out_s")
# Above zero: a value may lie on a logarithmic axis.
_LEAST = 1e-9


def read_rows(source: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows that ``placer sweep --format json`` printed, and the keys that it swept.

    Of a row only what a plot shows is kept.

    Raises
    ------
    InputError
        If it cannot be read, or holds no such rows.
    """
    document = open_document(source)
    hint = "this wants what `placer sweep --format json` prints"
    if not document.root.has("rows"):
        raise InputError([Problem("no rows of a sweep", source, hint=hint)])
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
    """The keys of a point, in the order of rows."""
    found = [key for key, _ in section.entries()]
    fixed = [key for key in (*SIZES, NIC_RATE) if key in found]
    return fixed + [key for key in found if key.startswith(OVERSUBSCRIPTION)]


def _row(section: Section, swept: list[str]) -> dict[str, Any]:
    values = dict(section.entries())
    row: dict[str, Any] = {key: section.number(key, minimum=_LEAST) for key in swept}
    if "step_time_s" in values:
        return row | {key: section.number(key) for key in _TIMES}
    error = values.get("error")
    return row | {"error": str(error.content) if error else "no placement"}
