"""Ctrl-C and SIGTERM: what they do depends on what the command is at.

A search is asked to stop, and what it found is written. A file is written to its end.
Anything else is left at once, and so is everything by a second signal. The command runs
in a thread and the main thread waits for it, because Python runs signal handlers in the
main thread, and only between two steps of its own.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import click

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
NOTHING = "nothing is written"
CLEAR = "\r\x1b[J"  # everything from the beginning of the line on


class Interrupts:
    """What a signal does, from the start of the process to its end.

    ``exit_code``: 128 + the number of the first signal, as shells count; 0 when there
    was none. ``outcome``: what a message says of the output if the command is left now.
    """

    def __init__(self) -> None:
        self.exit_code = 0
        self.outcome = NOTHING
        self._is_searching = False
        # Held while a file is written, and for ever once the process is being left.
        self._at_file = threading.Lock()

    def listen(self) -> None:
        """Handle the signals from now on; the main thread's to call."""
        for number in _SIGNALS:
            # Who starts a program with a signal ignored, as nohup does, means it.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._handle)

    def run(self, command: Callable[[], object]) -> int:
        """The exit code of ``command``, which runs in a thread.

        Afterwards signals are ignored: all is written, and nothing is left to stop.
        """
        self.listen()
        done = threading.Event()
        ends: list[BaseException] = []

        def work() -> None:
            try:
                command()
            except BaseException as end:
                ends.append(end)
            finally:
                done.set()

        threading.Thread(target=work, name="placer-command", daemon=True).start()
        while not done.wait(1.0):  # for ever would be deaf to signals on Windows
            pass
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        for end in ends:
            if not isinstance(end, SystemExit):
                raise end
        codes = [end.code for end in ends if isinstance(end, SystemExit)]
        code = codes[0] if codes else 0
        return self.exit_code or (code if isinstance(code, int) else int(bool(code)))

    @contextmanager
    def searching(self) -> Iterator[Callable[[], bool]]:
        """A context in which the first signal makes what it gives return true."""
        self._is_searching = True
        try:
            yield lambda: self.exit_code != 0
        finally:
            self._is_searching = False

    @contextmanager
    def writing(self, path: str) -> Iterator[None]:
        """A context in which the first signal waits for the file ``path``.

        Standard output may be a pipe that nobody reads, so nothing waits for it.
        """
        if path == "-":
            if self.outcome == NOTHING:
                self.outcome = "the output may be incomplete"
            yield
            return
        with self._at_file:
            yield
            self.outcome = f"{path} is written"
        if self.exit_code and not self._is_searching:
            self._at_file.acquire()
            self._leave()

    def _handle(self, number: int, _frame: object) -> None:
        is_first = not self.exit_code
        self.exit_code = self.exit_code or 128 + number
        if not is_first:
            self._leave()
        if not self._is_searching and self._at_file.acquire(blocking=False):
            self._leave()

    def _leave(self) -> NoReturn:
        # Past Python's own streams, whose locks the command may hold.
        with suppress(OSError):
            # Over what moves there, if anything does.
            clear = CLEAR if os.isatty(2) else ""
            os.write(2, f"{clear}interrupted: {self.outcome}\n".encode())
        os._exit(self.exit_code)


interrupts = Interrupts()


def end(context: click.Context, exit_code: int) -> NoReturn:
    """End the command; at once when a step of its search is still at work."""
    from placer.solve.run.budget import SEARCH_THREAD

    if any(thread.name == SEARCH_THREAD for thread in threading.enumerate()):
        leave(exit_code)
    context.exit(exit_code)


def end_if_interrupted(context: click.Context, said: str) -> None:
    """End the command where a signal came; ``said``: what its answer is then."""
    if interrupts.exit_code:
        click.echo(f"interrupted: {said}", err=True)
        end(context, interrupts.exit_code)


def leave(exit_code: int) -> NoReturn:
    """End the process at once, whatever its threads do."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(exit_code)
