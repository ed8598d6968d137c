"""Progress of a search on stderr: on a terminal a view, elsewhere lines.

What moves stands at the end of a terminal and vanishes when closed. Several lines are
drawn downwards and the cursor goes back to the first: whatever is printed next, and
whoever clears the screen from the cursor on, takes all of them away. That holds also
where a narrower window has broken the lines.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING

import click

from placer.cli.look import CLEAR, has_bars, size_of_stderr

if TYPE_CHECKING:
    from placer.solve.run.solution import Improvement

# A search that ends within this time says nothing.
QUIET_S = 1.0
# A log without news gets a line so often.
TICK_S = 10.0
# Of several searches that say nothing themselves: the first word, and those after it.
SAY_FIRST_S, SAY_EVERY_S = 2.0, 5.0

_HEAD = f"  {'time':>8}  {'value':>16}  {'lower bound':>16}  {'gap':>8}  phase"


class ProgressLines:
    """Told of every better placement, shows it once the search has run for a second.

    ``time_limit`` (s): when the search ends at the latest. ``delay_s`` (s): how long to
    stay silent; the best placement until then is shown afterwards.
    """

    def __init__(self, time_limit: float, delay_s: float = QUIET_S) -> None:
        self._time_limit = time_limit
        self._lock = threading.Lock()
        self._is_open = False
        self._start = monotonic()
        self._told: list[Improvement] = []
        self._view: SearchView | None = None
        self._timer = threading.Timer(delay_s, self._open)
        self._timer.daemon = True
        self._is_over = threading.Event()
        self._ticks = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> ProgressLines:
        self._timer.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._timer.cancel()
        self._is_over.set()
        with self._lock:
            self._is_open = False
            if self._view is not None:
                self._view.close()

    def __call__(self, incumbent: Improvement) -> None:
        """Show ``incumbent``, or keep it while it is too early."""
        with self._lock:
            self._told.append(incumbent)
            if self._is_open:
                self._show(incumbent)

    def _open(self) -> None:
        with self._lock:
            self._is_open = True
            if not has_bars():
                click.echo(_HEAD, err=True)
                for incumbent in self._told[-1:]:
                    self._show(incumbent)
                self._ticks.start()
                return

            self._view = SearchView(self._time_limit, self._start)
            for incumbent in self._told:
                self._show(incumbent)

    def _show(self, incumbent: Improvement) -> None:
        if self._view is None:
            click.echo(_line(incumbent), err=True)
        else:
            self._view.tell(incumbent)

    def _tick(self) -> None:
        """Say that the search goes on, where nothing else is said."""
        with suppress(OSError):  # nobody reads it any more
            while not self._is_over.wait(TICK_S):
                with self._lock:
                    after = monotonic() - self._start
                    if self._is_open and self._told:
                        click.echo(_still(self._told[-1], after), err=True)
                    elif self._is_open:
                        click.echo(f"  {after:7.1f}s  no placement yet", err=True)


def _still(best: Improvement, elapsed_s: float) -> str:
    """A line on the best so far, with what is proved and what the search is at now."""
    pulse = best.pulse
    bound, phase = (pulse.lower_bound, pulse.phase) if pulse else (0.0, "")
    bound = max(best.lower_bound, bound)
    now = replace(best, elapsed_s=elapsed_s, phase=phase, lower_bound=bound)
    return _line(now, mark=" ")


def _line(incumbent: Improvement, mark: str = "*") -> str:
    """One line, ``*`` for a new best."""
    from placer.report.words import gap_text

    value, bound = incumbent.value, incumbent.lower_bound
    gap = f"{gap_text((value - bound) / value):>8}" if bound > 0 else f"{'-':>8}"
    lower = f"{bound:16,.9g}" if bound > 0 else f"{'-':>16}"
    return (
        f"{mark} {incumbent.elapsed_s:7.1f}s  {value:16,.9g}  {lower}  {gap}  "
        f"{incumbent.phase}"
    )


class Due:
    """Whether it is time for another line, some seconds after the last one."""

    def __init__(self) -> None:
        self._said = monotonic()

    def is_due(self, *, at_once: bool = False) -> bool:
        """Whether a line may be said now, or must be ``at_once``; it then counts."""
        now = monotonic()
        if not at_once and now - self._said < SAY_EVERY_S:
            return False
        self._said = now
        return True


class JobLines:
    """Says every few seconds which of several searches is on.

    A search may take long without a word, so a thread of its own says it.
    """

    def __init__(self) -> None:
        self._start = monotonic()
        self._now = ""
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._say, daemon=True)

    def __enter__(self) -> JobLines:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def __call__(self, name: str, number: int) -> None:
        """Tell that a search has begun, so many with it, of the job with this name."""
        self._now = f"search {number:,}: {name}"

    def _say(self) -> None:
        wait = SAY_FIRST_S
        with suppress(OSError):  # nobody reads it any more
            while not self._is_over.wait(wait):
                if self._now:
                    wait, after = SAY_EVERY_S, monotonic() - self._start
                    click.echo(f"{after:.0f} s: {self._now}", err=True)


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
