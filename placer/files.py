"""Reading input files within limits, and writing output files all or nothing."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from placer.errors import InputError, OutputError, Problem

MAX_BYTES = 64 * 1024 * 1024


def shown_name(source: str) -> str:
    """How messages call ``source``: ``-`` is ``<stdin>``."""
    return "<stdin>" if source == "-" else source


def read_text(source: str) -> str:
    """Text of a regular file, or of standard input for ``-``.

    UTF-8, with or without a byte order mark; CRLF line ends become LF.

    Raises
    ------
    InputError
        If the file is missing, not regular, larger than 64 MiB, or not UTF-8 text.
    """
    return decode(read_bytes(source), source)


def read_bytes(source: str) -> bytes:
    """Bytes of a regular file, or of standard input for ``-``.

    Raises
    ------
    InputError
        If the file is missing, not a regular file, or larger than 64 MiB.
    """
    try:
        data = _read_stdin() if source == "-" else _read_regular_file(source)
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
    """Text of UTF-8 ``data``; ``source`` names it in messages.

    Raises
    ------
    InputError
        If the data are not UTF-8 text.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _error(source, "is UTF-16, not UTF-8", hint="save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise _error(source, "is not UTF-8 text", line, column) from None
    if "\0" in text:
        raise _error(source, "is a binary file, not text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def write_text(path: str, text: str) -> None:
    """Write ``text`` to ``path`` all or nothing; ``-`` is standard output.

    The text goes to a temporary file in the same folder, which then replaces ``path``:
    whatever happens, ``path`` holds the old content or the new. Links are followed;
    devices and pipes are written in place.

    Raises
    ------
    OutputError
        If it cannot be written; an existing file is kept.
    """
    with _written(path):
        if path == "-":
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            _write(Path(path), text.encode())


def write_bytes(path: str, data: bytes) -> None:
    """Write ``data`` to ``path``, in the same way as `write_text`.

    Raises
    ------
    OutputError
        If it cannot be written; an existing file is kept.
    """
    with _written(path):
        if path == "-":
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            _write(Path(path), data)


@contextmanager
def _written(path: str) -> Iterator[None]:
    """What goes wrong inside, as an error of the output ``path``."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OutputError(f"{path}: cannot be written: {reason}") from None


def make_folder(path: str) -> None:
    """Make the folder ``path`` and those above it, unless it is there.

    Raises
    ------
    OutputError
        If it cannot be made.
    """
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OutputError(f"{path}: cannot be made: {reason}") from None


def _read_stdin() -> bytes:
    return sys.stdin.buffer.read(MAX_BYTES + 1)


def _read_regular_file(source: str) -> bytes:
    path = Path(source)
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise ValueError("it is a folder")
    if not stat.S_ISREG(mode):
        raise ValueError("it is not a regular file; pipe it in and name it -")
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _write(path: Path, data: bytes) -> None:
    """Write to what ``path`` means once links are followed."""
    if path.is_dir():
        raise ValueError("it is a folder")
    if path.exists() and not path.is_file():
        # A device or pipe must never be replaced: as root that would break /dev/null.
        with path.open("wb") as file:
            file.write(data)
    else:
        _replace(path.resolve(), data)


def _replace(target: Path, data: bytes) -> None:
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:50]}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(handle, mode)
            os.fsync(handle)
        os.replace(name, target)  # noqa: PTH105
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name itself durable, where the file system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _error(
    source: str, message: str, line: int = 0, column: int = 0, hint: str = ""
) -> InputError:
    return InputError([Problem(message, shown_name(source), line, column, hint=hint)])
