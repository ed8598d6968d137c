"""TOML with the places of its values, which Python's own reader does not tell."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from placer.base.errors import InputError, Problem
from placer.formats.jobs.findings import Place
from placer.formats.jobs.settings import Setting

_TABLE = re.compile(r"\s*\[\[?\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"""\s*([\w.\-"' ]+?)\s*=\s*""")
_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)| \(at end of document\)")


def toml_values(text: str, source: str) -> dict[str, Setting]:
    """The values of a TOML text by dotted key; lists are values.

    Raises
    ------
    InputError
        If it is not TOML.
    """
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        message = str(error)
        at = _PLACE.search(message)
        line, column = (int(at[1]), int(at[2])) if at and at[1] else (0, 0)
        words = f"not TOML: {_PLACE.sub('', message)}"
        raise InputError([Problem(words, source, line, column)]) from None
    places = dict(_places(text, source))
    return {
        key: Setting(value, places.get(key, Place(source)))
        for key, value in _flat(data, "")
    }


def _flat(data: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _places(text: str, source: str) -> Iterator[tuple[str, Place]]:
    """Where keys stand that have a line of their own."""
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        header, key = _TABLE.match(line), _KEY.match(line)
        if header:
            table = f"{_bare(header[1])}."
        elif key:
            yield f"{table}{_bare(key[1])}", Place(source, number, key.end() + 1)


def _bare(key: str) -> str:
    """A dotted key without quotes and blanks."""
    return re.sub(r"""["'\s]""", "", key)
