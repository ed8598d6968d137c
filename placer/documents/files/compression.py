"""Compressed files: written as their name says, read as their content says."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from pathlib import PurePath
from typing import TYPE_CHECKING

from placer.base.errors import InputError, Problem
from placer.documents.files.reading import MAX_BYTES, shown_name

if TYPE_CHECKING:
    from types import ModuleType

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


def _error(source: str, message: str) -> InputError:
    return InputError([Problem(message, shown_name(source))])
