"""What other programs and libraries answer, within a time they cannot stretch."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import IO, Any, TypeVar

from placer.base.errors import InputError

T = TypeVar("T")
_MOST_BYTES = 64_000_000


class LateError(Exception):
    """No answer in time."""


def first_line(error: Exception) -> str:
    """What an error says, in a line; its name where it says nothing."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def within(seconds: float, ask: Callable[[], T]) -> T:
    """What ``ask`` returns or raises; it is left behind when it takes longer."""
    answer: list[T] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            answer.append(ask())
        except Exception as error:
            failed.append(error)

    # A daemon: a driver that hangs must not hold up the end of the process.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not answer:
        raise LateError(f"no answer in {seconds:g} s")
    return answer[0]


def output_of(
    command: Sequence[str], seconds: float, errors: IO[bytes] | None = None
) -> tuple[int, str]:
    """Exit status and output of a command; ``errors`` takes its standard error.

    Raises `LateError` if it takes longer; it is killed and not waited for, as one that
    hangs in a driver does not die. Raises `OSError` if it cannot be started.
    """
    # A file, not a pipe: children of the command that live on would hold a pipe open.
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(  # noqa: S603 (ours)
            command,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=errors or subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            threading.Thread(target=process.wait, daemon=True).start()
            raise LateError(f"no answer in {seconds:g} s") from None
        printed.seek(0)
        return status, printed.read(_MOST_BYTES).decode("utf-8", "replace")


def needed(module: str, package: str | None = None) -> Any:
    """A module of a package that placer does without otherwise.

    Raises `InputError` if it cannot be imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = package or module.partition(".")[0]
        hint = f"pip install {name}"
        message = f"{name} cannot be imported: {error}"
        raise InputError(message, hint=hint) from None
