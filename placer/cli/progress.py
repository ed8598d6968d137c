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
from typing import TYPE_CHECKING, Self

import click

from placer.cli.interrupt import CLEAR
from placer.cli.output import has_bars, size_of_stderr

if TYPE_CHECKING:
    from placer.solve.run.solution import Improvement

# A search that ends within this time says nothing.
QUIET_S = 1.0
_EVERY_S = 0.2  # a view is drawn so often
# A log without news gets a line so often.
TICK_S = 10.0
# Of several searches that say nothing themselves: the first word, and those after it.
SAY_FIRST_S, SAY_EVERY_S = 2.0, 5.0

_HEAD = f"  {'time':>8}  {'value':>16}  {'lower bound':>16}  {'gap':>8}  phase"


class _Ticker:
    """Says something from time to time, in a thread of its own; a context.

    A search may take long without a word.
    """

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._start = monotonic()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        with suppress(OSError):  # the terminal is gone, or nobody reads any more
            while not self._is_over.wait(self._wait_s):
                self._say(monotonic() - self._start)

    def _say(self, after_s: float) -> None:
        """What is said so many seconds after the start."""
        raise NotImplementedError


class ProgressLines(_Ticker):
    """Told of every better placement, shows it once the search has run for a second.

    ``time_limit`` (s): when the search ends at the latest. ``delay_s`` (s): how long to
    stay silent; the best placement until then is shown afterwards. ``opened``: whether
    anything is shown by now.
    """

    def __init__(self, time_limit: float, delay_s: float = QUIET_S) -> None:
        super().__init__(delay_s)
        self._time_limit = time_limit
        self._lock = threading.Lock()
        self._best: Improvement | None = None
        self._is_drawn = False
        self.opened = threading.Event()

    def __exit__(self, *_error: object) -> None:
        super().__exit__()
        if self._is_drawn:
            with suppress(OSError):
                _show([])

    def __call__(self, incumbent: Improvement) -> None:
        """Show ``incumbent``, or keep it while it is too early."""
        with self._lock:
            self._best = incumbent
            if self.opened.is_set() and not self._is_drawn:
                click.echo(_line(incumbent), err=True)

    def _say(self, after_s: float) -> None:
        if self._is_drawn:  # without the lock: a terminal may be held
            if self._best is not None:
                self._draw(self._best, after_s)
            return
        with self._lock:
            if not self.opened.is_set():
                self._open()
            elif self._best is not None:  # nothing else is said: the search goes on
                click.echo(_still(self._best, after_s), err=True)
            else:
                click.echo(f"  {after_s:7.1f}s  no placement yet", err=True)

    def _open(self) -> None:
        self._is_drawn = has_bars()
        self._wait_s = _EVERY_S if self._is_drawn else TICK_S
        if not self._is_drawn:
            click.echo(_HEAD, err=True)
            if self._best is not None:
                click.echo(_line(self._best), err=True)
        self.opened.set()

    def _draw(self, best: Improvement, after_s: float) -> None:
        """Show value, bound and gap; what the search is at, and the clock."""
        from placer.report.words import NOUN, amount, gap_text

        objective = best.solution.objective if best.solution else "time"
        bound, phase = best.lower_bound, "searching"
        if best.pulse is not None:
            bound = max(bound, best.pulse.lower_bound)
            phase = best.pulse.phase or phase
        numbers = f"  {NOUN[objective]} {amount(objective, best.value)}"
        if bound > 0:
            gap = gap_text(max(best.value - bound, 0.0) / best.value)
            numbers += f", gap {gap}, lower bound {amount(objective, bound)}"
        clocks = f"{_clock(after_s)} of {_clock(self._time_limit)} at most"
        size = size_of_stderr()
        lines = [numbers, f"  {clocks}, now: {phase}"][: size.lines - 1]
        _show([line[: size.columns - 1] for line in lines])


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


class JobLines(_Ticker):
    """Says every few seconds which of several searches is on."""

    def __init__(self) -> None:
        super().__init__(SAY_FIRST_S)
        self._now = ""

    def __call__(self, name: str, number: int) -> None:
        """Tell that a search has begun, so many with it, of the job with this name."""
        self._now = f"search {number:,}: {name}"

    def _say(self, after_s: float) -> None:
        if self._now:
            self._wait_s = SAY_EVERY_S
            click.echo(f"{after_s:.0f} s: {self._now}", err=True)


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


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))


def _show(lines: list[str]) -> None:
    """Put lines at the end of the terminal; the cursor stays at their beginning."""
    back = f"\r\x1b[{len(lines) - 1}A" if len(lines) > 1 else "\r"
    text = "\x1b[K\n".join(lines)
    click.echo(f"\r{text}\x1b[J{back}" if lines else CLEAR, err=True, nl=False)
