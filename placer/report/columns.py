"""Plain text in columns, and wrapped to the width of a terminal.

How text for people may look: its width, and on a terminal colours and bars.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

WIDTH = 80

_INDENT = "      "

_NO_BREAK = "\N{NO-BREAK SPACE}"
_BEFORE_UNIT = re.compile(r"(?<=[0-9]) (?=(?:[mun]?s|[kMGTP]?B|%)(?![A-Za-z]))")

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def columns(rows: Sequence[Sequence[str]], gap: int = 2) -> Iterator[str]:
    """One line a row, the first column to the left, the others to the right.

    Rows may be of different lengths; the missing cells are empty.
    """
    width_of = [
        max((seen(row[i]) for row in rows if i < len(row)), default=0)
        for i in range(max(map(len, rows), default=0))
    ]
    for row in rows:
        cells = [row[0] + " " * (width_of[0] - seen(row[0]))]
        cells += [
            " " * (width - seen(cell)) + cell
            for cell, width in zip(row[1:], width_of[1:], strict=False)
        ]
        yield (" " * gap).join(cells).rstrip()


def narrowed(rows: Sequence[Sequence[str]], once: Iterable[str]) -> Iterator[str]:
    """Rows in columns, the first of them a head, narrower where they are too wide.

    Columns called as in ``once`` that are alike in all rows are then said below, gaps
    are narrow, and long words with ``+`` have letters: each only where the one before
    was not enough.
    """
    said, letters = [], {}
    for name in once:
        index = rows[0].index(name) if name in rows[0] else 0
        cells = {row[index] for row in rows[1:]}
        if index and len(cells) == 1 and _is_wide(rows):
            rows = [[*row[:index], *row[index + 1 :]] for row in rows]
            said.append(f"{name} {cells.pop()}")
    gap = 1 if _is_wide(rows) else 2
    if _is_wide(rows, gap):
        words = (word for row in rows for word in row if "+" in word[1:])
        letters = dict(zip(dict.fromkeys(words), "ABCDEFGH", strict=False))
        rows = [[letters.get(word, word) for word in row] for row in rows]
    yield from columns(rows, gap)
    yield from (f"{letter}: {word}" for word, letter in letters.items())
    if said:
        yield from wrapped(f"in every row: {', '.join(said)}")


def _is_wide(rows: Sequence[Sequence[str]], gap: int = 2) -> bool:
    return max(map(seen, columns(rows, gap))) > WIDTH


def table(
    rows: Sequence[Sequence[str]], head: Sequence[str] = (), width: int = WIDTH
) -> Iterator[str]:
    """Rows under their head in columns, or a sentence each where that is too wide.

    A sentence names its cells as the head does, and leaves out those that say nothing.
    """
    lines = list(columns([head, *rows] if head else rows))
    if max(map(seen, lines), default=0) <= width:
        yield from lines
        return
    if head:
        yield from wrapped(head[0], _INDENT, width)
    names = [*head[1:], *[""] * max(map(len, rows), default=0)]
    for row in rows:
        cells = [
            f"{cell} {name}".strip()
            for name, cell in zip(names, row[1:], strict=False)
            if cell not in ("", "-")
        ]
        # Colours would count as text here.
        sentence = _COLOUR.sub("", f"{row[0]}: {', '.join(cells)}")
        yield from wrapped(sentence, _INDENT, width)


def paragraphs(blocks: Iterable[Iterable[str]]) -> str:
    """Blocks of lines with an empty line between; those without lines are left out."""
    return "\n\n".join(text for lines in blocks if (text := "\n".join(lines)))


def seen(text: str) -> int:
    """Columns that a text takes on a terminal: colours take none."""
    return len(_COLOUR.sub("", text))


def wrapped(text: str, indent: str = "", width: int = WIDTH) -> list[str]:
    """Lines of ``text`` within the width; all but the first start with ``indent``.

    A number stays with its unit.
    """
    bound = _BEFORE_UNIT.sub(_NO_BREAK, text)
    lines = textwrap.wrap(
        bound, width, subsequent_indent=indent, break_on_hyphens=False
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]


def told(texts: Iterable[str], width: int = WIDTH) -> Iterator[str]:
    """Lines of texts within the width, each text continued two columns further in."""
    for text in texts:
        yield from wrapped(text, "  ", width)


def fitted(lines: Iterable[str], width: int = WIDTH) -> Iterator[str]:
    """The lines, those that are too wide continued four columns further in."""
    for line in lines:
        text = line.lstrip()
        indent = line[: len(line) - len(text)]
        first, *rest = wrapped(text, "    ", max(5, width - len(indent))) or [""]
        yield indent + first
        yield from (indent + part for part in rest)


# Colours of the terminal's own palette (ECMA-48, SGR), so that they fit any background.
_STYLES = {"title": 1, "quiet": 2, "bad": 31, "good": 32, "work": 34}
_EIGHTHS = ("", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589")
_FULL = "\u2588"


@dataclass(frozen=True)
class Look:
    """What a terminal, or a pipe, can show."""

    width: int = WIDTH  # columns at most
    colour: bool = False
    bars: bool = False  # whether block characters can be drawn

    def paint(self, text: str, style: str) -> str:
        """The text in a style (``title``, ``good``, ...), as it is without colours."""
        if not (self.colour and text):
            return text
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"

    def bar(self, share: float, room: int) -> str:
        """A bar of ``share`` of ``room`` columns; empty where none can be drawn."""
        if not self.bars or room < 1:
            return ""
        eighths = round(min(max(share, 0.0), 1.0) * room * 8)
        return _FULL * (eighths // 8) + _EIGHTHS[eighths % 8]


PLAIN = Look()
