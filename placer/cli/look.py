"""What standard output and standard error can show."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from placer.report.columns import Look

# Everything from the beginning of the line on.
CLEAR = "\r\x1b[J"

_LEAST, _MOST = 20, 120  # columns; prose over 120 is hard to read


def look_of_stdout() -> Look:
    """The width, colours and bars of a terminal; 80 plain columns elsewhere.

    ``NO_COLOR`` (no-color.org) and a dumb terminal are left without colours.
    """
    from placer.report.columns import PLAIN

    if sys.stdout is None or not sys.stdout.isatty():
        return PLAIN
    width = shutil.get_terminal_size().columns
    return _look(sys.stdout, min(max(width, _LEAST), _MOST))


def size_of_stderr() -> os.terminal_size:
    """Columns and lines of the terminal that standard error is, as they are now."""
    with suppress(OSError, ValueError):
        size = os.get_terminal_size(sys.stderr.fileno())
        if size.columns and size.lines:
            return size
    return shutil.get_terminal_size()


def has_bars() -> bool:
    """Whether standard error is a terminal that can take a line back."""
    return sys.stderr.isatty() and not _is_dumb()


def _look(stream: TextIO, width: int) -> Look:
    from placer.report.columns import Look

    dumb = _is_dumb()
    unicode = (stream.encoding or "").lower().replace("-", "") == "utf8"
    return Look(
        width=width,
        colour=not (dumb or os.environ.get("NO_COLOR")),
        bars=unicode and not dumb,
    )


def _is_dumb() -> bool:
    return os.environ.get("TERM", "dumb") == "dumb"
