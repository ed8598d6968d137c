"""Progress of a search on stderr: on a terminal a view, elsewhere lines."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

import click

from placer.cli.look import has_bars

if TYPE_CHECKING:
    from types import TracebackType

    from placer.cli.live import SearchView
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

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
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
            from placer.cli.live import SearchView

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

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
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
