"""Input files and pipes, read within limits; compressed ones as their content says."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, BinaryIO
from weakref import WeakKeyDictionary

from placer.base.errors import InputError

if TYPE_CHECKING:
    from types import ModuleType

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
    return InputError(message, shown_name(source), line, column, hint=hint)


_GZIP, _ZSTD = ".gz", ".zst"
# First bytes of a file: RFC 1952, section 2.3.1, and RFC 8878, section 3.1.1.
_MAGIC = {_GZIP: b"\x1f\x8b", _ZSTD: b"\x28\xb5\x2f\xfd"}
_NO_ZSTD = 'zstd needs a library: pip install "placer[zstd]"'


def compressed(name: str, data: bytes) -> bytes:
    """The bytes of a file called ``name``: ``.gz`` and ``.zst`` compress ``data``.

    Equal data give equal bytes.

    Raises `ValueError` if it would be zstd and there is no library for it.
    """
    suffix = _suffix(name)
    if suffix == _GZIP:
        return gzip.compress(data, mtime=0)
    if suffix == _ZSTD:
        zstd = _zstd()
        # Unlike gzip it has a checksum only when asked to.
        checked = {zstd.CompressionParameter.checksum_flag: 1}
        return bytes(zstd.compress(data, options=checked))
    return data


def check_suffix(name: str) -> None:
    """Refuse a name whose compression is not to be had.

    Raises `ValueError` if it is zstd and there is no library for it.
    """
    if _suffix(name) == _ZSTD:
        _zstd()


def decompressed(data: bytes, source: str) -> bytes:
    """The content of a file that may be compressed; ``source`` names it in messages."""
    kind = next((kind for kind, magic in _MAGIC.items() if data.startswith(magic)), "")
    if not kind:
        return data
    read = _read_gzip if kind == _GZIP else _read_zstd
    try:
        content = read(io.BytesIO(data))
    except (EOFError, OSError, ValueError, zlib.error) as error:
        raise _error(source, f"cannot be decompressed: {error}") from None
    if len(content) > MAX_BYTES:
        raise _error(source, f"holds more than {MAX_BYTES // 1024**2} MiB")
    return content


def _read_gzip(file: io.BytesIO) -> bytes:
    return gzip.GzipFile(fileobj=file).read(MAX_BYTES + 1)


def _read_zstd(file: io.BytesIO) -> bytes:
    zstd = _zstd()
    try:
        return bytes(zstd.ZstdFile(file).read(MAX_BYTES + 1))
    except zstd.ZstdError as error:
        raise ValueError(error) from None


def _suffix(name: str) -> str:
    return PurePath(name).suffix.lower()


def _zstd() -> ModuleType:
    """Python's zstd, or what stands in for it before Python 3.14."""
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        raise ValueError(_NO_ZSTD) from None
    found: ModuleType = zstd
    return found
