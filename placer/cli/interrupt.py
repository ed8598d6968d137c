"""Ctrl-C and SIGTERM while a search runs: ask it to stop, keep what it found.

The search runs in a thread and the main thread waits, because Python runs signal
handlers in the main thread, and only between two steps of its own.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from types import FrameType, TracebackType

Found = TypeVar("Found")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class LeaveError(BaseException):
    """A second signal: clean up and leave at once."""


class Interruptible(Generic[Found]):
    """A context in which the first signal asks to stop and the second leaves at once.

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
            sys.stderr.flush()
            # The search still runs and must not hold up the end of the process.
            os._exit(self.exit_code)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def run(self, work: Callable[[Callable[[], bool]], Found]) -> Found:
        """What ``work(stop)`` returns, or raises; it runs in a thread of its own."""
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

        threading.Thread(target=run, name="placer-search", daemon=True).start()
        done.wait()
        if raised:
            raise raised[0]
        return found[0]

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.stop.is_set():
            raise LeaveError
        self.exit_code = 128 + number
        self.stop.set()
