"""Other processes of this Python that help with work.

Each is a fresh interpreter that imports what the work needs, and nothing of the program
that asks, which may be any script. It reads functions with their arguments from its
standard input and writes answers to its standard output. It ends when that input does,
so with the process that started it, whatever it is doing.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import IO, Any, TypeVar

from placer.base.threads import LOOK_AFTER_S, start

Answer = TypeVar("Answer")

HELPER_THREAD = "placer-helper"
_CODE = (
    "import sys; sys.path[:] = {path!r}; import placer.workers.helpers as h; h.serve()"
)
_END = object()
# What cannot be pickled, and what cannot be sent.
_NO_REQUEST = (pickle.PicklingError, AttributeError, TypeError, OSError, ValueError)


class NoHelpError(Exception):
    """A helper could not be started, has ended, or is not waited for any more."""


class Helpers:
    """Processes that are started when they are first needed.

    A context: they are ended with it.

    ``prepare``: what each does first, with ``args``.
    """

    def __init__(
        self, prepare: Callable[..., object] | None = None, *args: object
    ) -> None:
        self._prepare = prepare, args
        self._idle: SimpleQueue[_Helper] = SimpleQueue()
        self._all: list[_Helper] = []
        self._is_closed = False

    def __enter__(self) -> Helpers:
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_closed = True
        for helper in self._all:
            helper.end()

    def ask(
        self,
        is_over: Callable[[], bool],
        work: Callable[..., Answer],
        *args: object,
    ) -> Answer:
        """What ``work`` answers, called with ``args`` in a process; for any thread.

        Raises `NoHelpError` if there is no answer, also when ``is_over`` says so before
        there is one. Raises `Exception` what ``work`` raised.
        """
        if self._is_closed:
            raise NoHelpError
        try:
            helper = self._idle.get_nowait()
        except Empty:
            helper = _Helper()
            self._all.append(helper)
            prepare, given = self._prepare
            if prepare is not None:
                self._put(helper, is_over, prepare, given)
        ok, answer = self._put(helper, is_over, work, args)
        self._idle.put(helper)
        if not ok:
            raise answer
        found: Answer = answer
        return found

    def _put(
        self,
        helper: _Helper,
        is_over: Callable[[], bool],
        work: Callable[..., object],
        args: tuple[object, ...],
    ) -> tuple[bool, Any]:
        """Whether a process could do some work, and what it answered or raised."""
        try:
            return helper.ask(is_over, (work, args))
        except NoHelpError:
            helper.end()
            raise


class _Helper:
    def __init__(self) -> None:
        code = _CODE.format(path=sys.path)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this very interpreter
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the process that asks
            )
        except (OSError, ValueError, TypeError) as error:
            raise NoHelpError from error
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        self._requests = self._process.stdin
        self._answers: SimpleQueue[Any] = SimpleQueue()
        start(self._read, HELPER_THREAD)

    def ask(self, is_over: Callable[[], bool], task: object) -> tuple[bool, Any]:
        try:
            self._requests.write(pickle.dumps(task, pickle.HIGHEST_PROTOCOL))
            self._requests.flush()
        except _NO_REQUEST as error:
            raise NoHelpError from error
        while True:
            try:
                answer = self._answers.get(timeout=LOOK_AFTER_S)
            except Empty:
                if is_over():
                    raise NoHelpError from None
                continue
            if answer is _END:
                raise NoHelpError
            found: tuple[bool, Any] = answer
            return found

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        with suppress(OSError):
            self._requests.close()

    def _read(self) -> None:
        """Pass answers on until the process ends."""
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        with self._process.stdout as stdout:
            try:
                while True:
                    self._answers.put(pickle.load(stdout))  # noqa: S301 - our process
            except Exception:  # whatever one that ends in the middle leaves
                self._answers.put(_END)


def serve() -> None:
    """Answer requests until there are no more."""
    # What a library prints must not come between answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests: SimpleQueue[Any] = SimpleQueue()
    start(lambda: _receive(sys.stdin.buffer, requests), HELPER_THREAD)
    while True:
        work, args = requests.get()
        try:
            answer = True, work(*args)
        except Exception as error:
            answer = False, error
        message = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
        try:
            answers.write(message)
            answers.flush()
        except OSError:  # who asks has ended
            os._exit(0)


def _receive(source: IO[bytes], requests: SimpleQueue[Any]) -> None:
    try:
        while True:
            requests.put(pickle.load(source))  # noqa: S301 - of who started us
    except BaseException:  # who asks has ended
        os._exit(0)
