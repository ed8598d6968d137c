"""Output files written all or nothing, and all of standard output."""

from __future__ import annotations

import os
import select
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from placer.base.errors import InputError, OutputError
from placer.documents.files.reading import check_suffix, compressed, is_input

if TYPE_CHECKING:
    import io


def write_text(path: str, text: str) -> None:
    """Write ``text`` to ``path`` all or nothing; ``-`` is standard output.

    The text goes to a temporary file in the same folder, which then replaces ``path``:
    whatever happens, ``path`` holds the old content or the new. Links are followed.
    Devices and pipes are written in place, as ``cp`` would, and so is a file that has
    other names or an owner that a new one cannot be given. A read-only file is refused.

    Raises `OutputError` if it cannot be written; an existing file is kept.
    """
    coding = getattr(sys.stdout, "encoding", None) or "utf-8"
    errors = getattr(sys.stdout, "errors", None) or "strict"
    with _written(path):
        _put(path, text.encode(coding, errors) if path == "-" else text.encode())


def write_bytes(path: str, data: bytes) -> None:
    """Write ``data`` to ``path``, in the same way as `write_text`."""
    with _written(path):
        _put(path, data)


def write_compressed(path: str, text: str) -> None:
    """Write ``text`` as `write_text` does, compressed where ``path`` says so.

    Raises `OutputError` if it cannot be written or compressed; an existing file is
    kept.
    """
    if path == "-":
        write_text(path, text)
    else:
        with _written(path):
            _write(path, compressed(path, text.encode()))


def check_target(path: str) -> None:
    """Refuse what cannot be written to, before the work rather than after it.

    Raises `OutputError` if it is a folder, read-only, in no folder that can be written
    to, or to be compressed in a way that cannot be had.
    """
    if path == "-":
        return
    with _written(path):
        check_suffix(path)
        if _found(path) is not None:
            return
        folder = Path(os.path.realpath(path)).parent
        if not folder.is_dir():
            raise ValueError(f"there is no folder {folder}")
        if not os.access(folder, os.W_OK):
            raise ValueError("Permission denied")


@contextmanager
def _written(path: str) -> Iterator[None]:
    """What goes wrong inside, as an error of the output ``path``."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        shown = "standard output" if path == "-" else path
        raise OutputError(f"{shown}: cannot be written: {reason}") from None


def make_folder(path: str) -> None:
    """Make the folder ``path`` and those above it, unless it is there.

    Raises `OutputError` if it cannot be made.
    """
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OutputError(f"{path}: cannot be made: {reason}") from None


def _put(path: str, data: bytes) -> None:
    if path == "-":
        _print(data)
    else:
        _write(path, data)


def _print(data: bytes) -> None:
    """Write all of ``data`` to standard output.

    An unbuffered or a non-blocking one may take less at a time than it is given.
    """
    if sys.stdout is None:
        raise ValueError("it is closed")
    sys.stdout.flush()
    out = getattr(sys.stdout, "buffer", None)
    if out is None:  # a notebook's takes text alone
        sys.stdout.write(data.decode())
        return
    raw = getattr(out, "raw", out)
    left = memoryview(data)
    while left:
        taken = raw.write(left)
        if taken is None:
            select.select([], [raw], [])
        else:
            left = left[taken:]


def _found(path: str) -> os.stat_result | None:
    """What is at ``path`` and may be written to, None where there is nothing yet."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise ValueError("it is a folder")
    if is_input(status):
        hint = "write to another file"
        message = "it is an input of this command, which would be lost"
        raise InputError(message, path, hint=hint)
    # Root may write anything; a file that nobody may write is meant to stay even so.
    if not (status.st_mode & 0o222 and os.access(path, os.W_OK)):
        raise ValueError("it is read-only")
    return status


def _write(path: str, data: bytes) -> None:
    """Write to what ``path`` means once links are followed."""
    status = _found(path)
    if status is not None and not stat.S_ISREG(status.st_mode):
        # A device or pipe must never be replaced: as root that would break /dev/null.
        with Path(path).open("wb") as file:
            file.write(data)
    elif status is not None and status.st_nlink > 1:
        _overwrite(path, data)
    else:
        _replace(Path(os.path.realpath(path)), data, status)


def _overwrite(path: str, data: bytes) -> None:
    """Write in place, so that a file keeps its other names and its owner.

    The old content is put back when the new one does not fit. Only a crash in the
    middle can leave a part.
    """
    with Path(path).open("r+b", buffering=0) as file:
        old = file.read()
        try:
            _refill(file, data)
        except BaseException:
            with suppress(OSError):
                _refill(file, old)
            raise


def _refill(file: io.FileIO, data: bytes) -> None:
    file.seek(0)
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]
    file.truncate()
    os.fsync(file.fileno())


def _replace(target: Path, data: bytes, old: os.stat_result | None) -> None:
    """Put a new file in the place of ``target``, which was ``old``."""
    prefix = f".{target.name[:50]}."
    try:
        handle, name = tempfile.mkstemp(prefix=prefix, dir=target.parent)
    except PermissionError:
        if old is None:
            raise
        _overwrite(str(target), data)  # a file that may be written in a folder that not
        return
    try:
        with os.fdopen(handle, "wb") as file:
            if not _made_alike(handle, old):
                Path(name).unlink()
                _overwrite(str(target), data)
                return
            file.write(data)
            file.flush()
            os.fsync(handle)
        os.replace(name, target)  # noqa: PTH105
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    _sync_folder(target.parent)


def _made_alike(handle: int, old: os.stat_result | None) -> bool:
    """Give a new file the owner and the permissions of the old; whether one may."""
    if sys.platform == "win32":
        return True
    if old is None:
        os.fchmod(handle, 0o666 & ~_umask())
        return True
    new = os.fstat(handle)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(handle, old.st_uid, old.st_gid)
        except PermissionError:
            return False
    os.fchmod(handle, stat.S_IMODE(old.st_mode))
    return True


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
