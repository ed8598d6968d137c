"""A table as HTML, for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def html_table(rows: Sequence[Sequence[str]], above: str = "", below: str = "") -> str:
    """Rows under their head, the first, with a sentence above and one below."""
    head, *body = rows
    lines = [_line("th", head), *(_line("td", row) for row in body)]
    before, after = (
        f"<p>{escape(text)}</p>" if text else "" for text in (above, below)
    )
    return f"{before}<table>{''.join(lines)}</table>{after}"


def _line(tag: str, cells: Sequence[str]) -> str:
    inside = "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)
    return f"<tr>{inside}</tr>"
