"""Ctrl-C and SIGTERM: ask a search to stop and keep what it found, or leave at once.

The search runs in a thread and the main thread waits, because Python runs signal
handlers in the main thread, and only between two steps of its own. Until it runs there
is nothing to keep.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from types import FrameType, TracebackType

Found = TypeVar("Found")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class LeaveError(BaseException):
    """A signal with nothing to wait for: clean up and leave at once."""


class Interruptible(Generic[Found]):
    """A context in which a signal asks a search to stop, and a second leaves at once.

    Before the search the first leaves at once.

    Attributes
    ----------
    stop : threading.Event
        Set by the first signal.
    exit_code : int
        128 + the signal's number, as shells count; 0 when there was none.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.exit_code = 0
        self._is_searching = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruptible[Found]:
        for number in _SIGNALS:
            # Who starts a program with a signal ignored, as nohup does, means it.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, LeaveError):
            click.echo(f"interrupted: {error}", err=True)
            leave(self.exit_code)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def run(self, work: Callable[[Callable[[], bool]], Found]) -> Found:
        """What ``work(stop)`` returns, or raises; it runs in a thread of its own."""
        self._is_searching = True
        done = threading.Event()
        found: list[Found] = []
        raised: list[BaseException] = []

        def run() -> None:
            try:
                found.append(work(self.stop.is_set))
            except BaseException as error:
                raised.append(error)
            finally:
                done.set()

        threading.Thread(target=run, name="placer-command", daemon=True).start()
        done.wait()
        if raised:
            raise raised[0]
        return found[0]

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.stop.is_set():
            raise LeaveError("left at once, before anything was written")
        self.exit_code = 128 + number
        self.stop.set()
        if not self._is_searching:
            raise LeaveError("there was no plan yet, nothing is written")


def end(context: click.Context, exit_code: int) -> NoReturn:
    """End the command; at once when a step of its search is still at work."""
    from placer.solve.in_time import SEARCH_THREAD

    if any(thread.name == SEARCH_THREAD for thread in threading.enumerate()):
        leave(exit_code)
    context.exit(exit_code)


def leave(exit_code: int) -> NoReturn:
    """End the process at once, whatever its threads do."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)
