"""Tables as HTML, for notebooks.

They have no colours of their own but the page's, so they fit dark pages and light ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

_TABLE = "border-collapse:collapse;margin:.4em 0;font-variant-numeric:tabular-nums"
_CELL = "padding:.15em .8em .15em 0;border:0;vertical-align:top"
_HEAD = f"{_CELL};font-weight:600;border-bottom:1px solid"
_ONE_LINE = f"{_CELL};white-space:nowrap"


def html_table(rows: Sequence[Sequence[str]], above: str = "", below: str = "") -> str:
    """Rows under their head, the first, with a sentence above and one below.

    A column is aligned to the right where its cells begin with digits.
    """
    head, *body = rows
    sides = [_side([row[i] for row in body if i < len(row)]) for i in range(len(head))]
    lines = [_line("th", head, sides, _HEAD)]
    lines += [_line("td", row, sides, _ONE_LINE) for row in body]
    return f"{_sentence(above, bold=True)}{_table(lines)}{_sentence(below)}"


def html_facts(title: str, facts: Mapping[str, str]) -> str:
    """A title, and a line with name and value for each fact that is not empty."""
    lines = [
        _line("td", (name, value), ("left", "left"), _CELL)
        for name, value in facts.items()
        if value
    ]
    return f"{_sentence(title, bold=True)}{_table(lines)}"


def _table(lines: Sequence[str]) -> str:
    return f'<table style="{_TABLE}">{"".join(lines)}</table>'


def _line(tag: str, cells: Sequence[str], sides: Sequence[str], style: str) -> str:
    inside = "".join(
        f'<{tag} style="{style};text-align:{side}">{escape(cell)}</{tag}>'
        for cell, side in zip(cells, sides, strict=False)
    )
    return f"<tr>{inside}</tr>"


def _side(cells: Sequence[str]) -> str:
    """Where the cells of a column are aligned."""
    texts = [cell for cell in cells if cell not in ("", "-")]
    is_numeric = texts and all(cell.lstrip("+-")[:1].isdigit() for cell in texts)
    return "right" if is_numeric else "left"


def _sentence(text: str, bold: bool = False) -> str:
    inside = f"<strong>{escape(text)}</strong>" if bold else escape(text)
    return f"<p>{inside}</p>" if text else ""
