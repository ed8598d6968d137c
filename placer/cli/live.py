"""Bars on the last line of a terminal's standard error; they vanish when closed."""

from __future__ import annotations

import shutil
import threading
from contextlib import suppress
from datetime import timedelta
from time import monotonic

import click

from placer.cli.look import CLEAR_LINE

_WIDTH = 40
_EVERY_S = 0.2


def _show(text: str) -> None:
    """Replace the last line; an empty text clears it."""
    room = shutil.get_terminal_size().columns - 1
    click.echo(f"{CLEAR_LINE}{text[:room]}", err=True, nl=False)


def _bar(share: float) -> str:
    full = round(_WIDTH * min(share, 1.0))
    return f"[{'#' * full}{'-' * (_WIDTH - full)}]"


class LiveBar:
    """A bar of the time spent, under the printed lines.

    Parameters
    ----------
    time_limit : float, s
    """

    def __init__(self, time_limit: float) -> None:
        self._time_limit = time_limit
        self._start = monotonic()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def print(self, line: str) -> None:
        """Print ``line`` above the bar, as it is."""
        with self._lock:
            click.echo(f"{CLEAR_LINE}{line}", err=True)
            self._draw()

    def close(self) -> None:
        """Remove the bar."""
        self._closed.set()
        self._thread.join()
        _show("")

    def _run(self) -> None:
        with suppress(OSError):  # the terminal is gone
            while not self._closed.wait(_EVERY_S):
                with self._lock:
                    self._draw()

    def _draw(self) -> None:
        spent = monotonic() - self._start
        share = spent / self._time_limit if self._time_limit else 1.0
        _show(f"{_bar(share)} {timedelta(seconds=int(spent))}")


class CountBar:
    """A bar of how many things are done; a context, told by being called."""

    def __enter__(self) -> CountBar:
        return self

    def __exit__(self, *_error: object) -> None:
        _show("")

    def __call__(self, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` are done."""
        _show(f"points {_bar(done / total if total else 1.0)} {done}/{total}")
