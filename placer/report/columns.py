"""Plain text in columns, and wrapped to the width of a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

WIDTH = 80


def columns(rows: Sequence[Sequence[str]], gap: int = 2) -> Iterator[str]:
    """One line a row, the first column to the left, the others to the right.

    Rows may be of different lengths; the missing cells are empty.
    """
    width_of = [
        max((len(row[i]) for row in rows if i < len(row)), default=0)
        for i in range(max(map(len, rows), default=0))
    ]
    for row in rows:
        cells = [row[0].ljust(width_of[0])]
        cells += [
            cell.rjust(width)
            for cell, width in zip(row[1:], width_of[1:], strict=False)
        ]
        yield (" " * gap).join(cells).rstrip()


def wrapped(text: str, indent: str = "") -> list[str]:
    """Lines of ``text`` within the width; all but the first start with ``indent``."""
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)
