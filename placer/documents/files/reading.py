"""Input files and pipes, read within limits."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from weakref import WeakKeyDictionary

from placer.base.errors import InputError, Problem

_NPY = b"\x93NUMPY"  # how a file of numpy.save begins
MAX_BYTES = 64 * 1024 * 1024

# Device and number of every file read, while `inputs_kept` says so.
_inputs: set[tuple[int, int]] | None = None
# What standard input said: it says it once, and several may ask.
_of_pipe: WeakKeyDictionary[BinaryIO, bytes] = WeakKeyDictionary()


@contextmanager
def inputs_kept() -> Iterator[None]:
    """A context in which no file that it has read may be written over."""
    global _inputs
    before, _inputs = _inputs, set()
    try:
        yield
    finally:
        _inputs = before


def is_input(status: os.stat_result) -> bool:
    """Whether a file has been read within `inputs_kept`."""
    return _inputs is not None and (status.st_dev, status.st_ino) in _inputs


def shown_name(source: str) -> str:
    """How messages call ``source``: ``-`` is ``<stdin>``."""
    return "<stdin>" if source == "-" else source


def beside(source: str, name: str) -> str:
    """Path of a file that the file ``source`` names, relative to its own folder."""
    return str(Path(source).parent / name)


def files_beside(source: str, name: str, suffixes: tuple[str, ...]) -> list[str]:
    """Paths of the files that the file ``source`` names, in order.

    A folder stands for those in it that end in one of ``suffixes``, ``*`` and ``?``
    for whatever is there. The name of one file is taken as it is, found or not.
    """
    path = Path(beside(source, name))
    if path.is_dir():
        found = [file for file in path.iterdir() if file.name.endswith(suffixes)]
    elif path.is_file() or not {"*", "?"} & {*name}:
        found = [path]
    else:
        anchor = Path(name).anchor
        folder = Path(anchor) if anchor else Path(source).parent
        pattern = str(Path(name).relative_to(anchor))
        found = [file for file in folder.glob(pattern) if file.is_file()]
    return sorted(map(str, found))


def read_text(source: str) -> str:
    """Text of a file or pipe, or of standard input for ``-``.

    UTF-8, with or without a byte order mark; CRLF line ends become LF.
    """
    return decode(read_bytes(source), source)


def read_bytes(source: str) -> bytes:
    """Bytes of a file or pipe, or of standard input for ``-``."""
    try:
        data = _read_stdin() if source == "-" else _read_file(source)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _error(source, f"cannot be read: {reason}") from None
    if len(data) > MAX_BYTES:
        raise _error(source, f"larger than {MAX_BYTES // 1024**2} MiB")
    return data


def is_file(name: str) -> bool:
    """Whether there is a regular file of this name."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def decode(data: bytes, source: str) -> str:
    """Text of UTF-8 ``data``; ``source`` names it in messages."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _error(source, "is UTF-16, not UTF-8", hint="save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        hint = "save arrays with numpy.savez, as .npz" if data[:6] == _NPY else ""
        raise _error(source, "is not UTF-8 text", line, column, hint=hint) from None
    if "\0" in text:
        raise _error(source, "is a binary file, not text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _read_stdin() -> bytes:
    with suppress(AttributeError, OSError, ValueError):  # not a file in a notebook
        _note(os.fstat(sys.stdin.fileno()))
    pipe = sys.stdin.buffer
    if pipe not in _of_pipe:
        _of_pipe[pipe] = pipe.read(MAX_BYTES + 1)
    return _of_pipe[pipe]


def _read_file(source: str) -> bytes:
    mode = Path(source).stat().st_mode
    if stat.S_ISDIR(mode):
        raise ValueError("it is a folder")
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        raise ValueError("it is neither a file nor a pipe")
    # A pipe that nobody writes ends at once; opened in any other way it would hold up.
    flags = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(source, os.O_RDONLY | flags)
    with os.fdopen(handle, "rb") as file:
        _note(os.fstat(handle))
        try:
            start = os.read(handle, 1)
            if not start and stat.S_ISFIFO(mode):
                raise ValueError("it is a pipe that nobody writes")
        except BlockingIOError:
            start = b""  # nothing yet
        if sys.platform != "win32":
            os.set_blocking(handle, True)
        return start + file.read(MAX_BYTES + 1 - len(start))


def _note(status: os.stat_result) -> None:
    if _inputs is not None and stat.S_ISREG(status.st_mode):
        _inputs.add((status.st_dev, status.st_ino))


def _error(
    source: str, message: str, line: int = 0, column: int = 0, hint: str = ""
) -> InputError:
    return InputError([Problem(message, shown_name(source), line, column, hint=hint)])
