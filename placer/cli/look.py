"""What standard output and standard error can show."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.report.look import Look

CLEAR_LINE = "\r\x1b[K"

_LEAST, _MOST = 20, 120  # columns; prose over 120 is hard to read


def look_of_stdout() -> Look:
    """The width, colours and bars of a terminal; 80 plain columns elsewhere.

    ``NO_COLOR`` (no-color.org) and a dumb terminal are left without colours.
    """
    from placer.report.look import PLAIN, Look

    if sys.stdout is None or not sys.stdout.isatty():
        return PLAIN
    width = shutil.get_terminal_size().columns
    dumb = _is_dumb()
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return Look(
        width=min(max(width, _LEAST), _MOST),
        colour=not (dumb or os.environ.get("NO_COLOR")),
        bars=unicode and not dumb,
    )


def has_bars() -> bool:
    """Whether standard error is a terminal that can take a line back."""
    return sys.stderr.isatty() and not _is_dumb()


def _is_dumb() -> bool:
    return os.environ.get("TERM", "dumb") == "dumb"
