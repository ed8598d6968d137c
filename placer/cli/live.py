"""What moves at the end of a terminal's standard error, and vanishes when closed.

Several lines are drawn downwards and the cursor goes back to the first: whatever is
printed next, and whoever clears the screen from the cursor on, takes all of them away.
That holds also where a narrower window has broken the lines.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING

import click

from placer.cli.look import CLEAR, size_of_stderr

if TYPE_CHECKING:
    from placer.solve.run.solution import Improvement

_EVERY_S = 0.2
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

    ``start`` (s): of the search, by the monotonic clock.
    """

    def __init__(self, limit_s: float, start: float) -> None:
        self._limit_s, self._start = limit_s, start
        self._best: Improvement | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def tell(self, better: Improvement) -> None:
        """Take note of a better placement."""
        self._best = better

    def close(self) -> None:
        """Take the view away."""
        self._closed.set()
        self._thread.join()
        with suppress(OSError):
            _show([])

    def _run(self) -> None:
        with suppress(OSError):  # the terminal is gone
            while not self._closed.wait(_EVERY_S):
                if self._best is not None:
                    size = size_of_stderr()
                    lines = self._lines(self._best)
                    _show(
                        [line[: size.columns - 1] for line in lines[: size.lines - 1]]
                    )

    def _lines(self, best: Improvement) -> list[str]:
        """Value, bound and gap; what the search is at, and the clock."""
        from placer.report.words import NOUN, amount, gap_text

        objective = best.solution.objective if best.solution else "time"
        bound, phase = best.lower_bound, "searching"
        if best.pulse is not None:
            bound = max(bound, best.pulse.lower_bound)
            phase = best.pulse.phase or phase
        numbers = f"{NOUN[objective]} {amount(objective, best.value)}"
        if bound > 0:
            gap = gap_text(max(best.value - bound, 0.0) / best.value)
            numbers += f", gap {gap}, lower bound {amount(objective, bound)}"
        after = _clock(monotonic() - self._start)
        now = f"{after} of {_clock(self._limit_s)} at most, now: {phase}"
        return [f"  {numbers}", f"  {now}"]


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))


def _show(lines: list[str]) -> None:
    """Put lines at the end of the terminal; the cursor stays at their beginning."""
    back = f"\r\x1b[{len(lines) - 1}A" if len(lines) > 1 else "\r"
    text = "\x1b[K\n".join(lines)
    click.echo(f"\r{text}\x1b[J{back}" if lines else CLEAR, err=True, nl=False)
