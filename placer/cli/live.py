"""What moves at the end of a terminal's standard error, and vanishes when closed.

Several lines are drawn downwards and the cursor goes back to the first: whatever is
printed next, and whoever clears the screen from the cursor on, takes all of them away.
That holds also where a narrower window has broken the lines.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

import click

from placer.cli.look import CLEAR, look_of_stderr, size_of_stderr

if TYPE_CHECKING:
    from placer.solve.run.solution import Improvement

_EVERY_S = 0.2
_RATE_OVER = 15  # drawings
_WIDTH = 40


class CountBar:
    """A bar of how many things are done; a context, told by being called."""

    def __enter__(self) -> CountBar:
        return self

    def __exit__(self, *_error: object) -> None:
        _show([])

    def __call__(self, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` are done."""
        full = round(_WIDTH * min(done / total, 1.0)) if total else _WIDTH
        bar = f"[{'#' * full}{'-' * (_WIDTH - full)}]"
        room = size_of_stderr().columns - 1
        _show([f"points {bar} {done}/{total}"[:room]])


class SearchView:
    """A search at work, drawn a few times a second in a thread of its own.

    Parameters
    ----------
    limit_s : float, s
    start : float, s
        Of the search, by the monotonic clock.
    """

    def __init__(self, limit_s: float, start: float) -> None:
        self._limit_s, self._start = limit_s, start
        self._found: list[Improvement] = []
        self._tried: deque[tuple[float, int]] = deque(maxlen=_RATE_OVER)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def tell(self, better: Improvement) -> None:
        """Take note of a better placement."""
        self._found.append(better)

    def close(self) -> None:
        """Take the view away."""
        self._closed.set()
        self._thread.join()
        with suppress(OSError):
            _show([])

    def _run(self) -> None:
        with suppress(OSError):  # the terminal is gone
            while not self._closed.wait(_EVERY_S):
                if self._found:
                    _show(self._lines())

    def _lines(self) -> list[str]:
        from placer.report.search_view import Watched, search_view

        last = self._found[-1]
        pulse = last.pulse
        watched = Watched(
            objective=last.solution.objective if last.solution else "time",
            elapsed_s=monotonic() - self._start,
            limit_s=self._limit_s,
            found=[(one.elapsed_s, one.value) for one in self._found],
            method=last.phase,
            lower_bound=max(last.lower_bound, pulse.lower_bound if pulse else 0.0),
            phase=pulse.phase if pulse else "",
            rate=self._rate(pulse.placements if pulse else 0),
        )
        return search_view(watched, look_of_stderr(), size_of_stderr().lines)

    def _rate(self, tried: int) -> float:
        """Placements a second since the oldest drawing that is remembered."""
        now = monotonic()
        self._tried.append((now, tried))
        then, before = self._tried[0]
        return (tried - before) / (now - then) if now > then else 0.0


def _show(lines: list[str]) -> None:
    """Put lines at the end of the terminal; the cursor stays at their beginning."""
    back = f"\r\x1b[{len(lines) - 1}A" if len(lines) > 1 else "\r"
    text = "\x1b[K\n".join(lines)
    click.echo(f"\r{text}\x1b[J{back}" if lines else CLEAR, err=True, nl=False)
