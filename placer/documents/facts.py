"""Kinds of what programs write as JSON: open mappings, and null as good as absent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from placer.base.arrays import IntArray
from placer.base.hostlist import name_problem
from placer.documents.keys import Kind, also, integer, keys_of, list_of
from placer.documents.keys import number as number_between
from placer.documents.records import schema_of
from placer.documents.value import Value

_MOST = 2**31 - 1  # of a count or an index


class Facts:
    """A class of keys of a mapping that may have others besides."""

    is_open = True


def facts(record: type) -> Kind:
    """A mapping with these keys, as it is, those that nobody knows included.

    Keys that are null are left out.
    """

    def read(value: Value, _: Any) -> dict[str, Any]:
        section = value.section()
        found = dict(section.content)
        for each in keys_of(record):
            each.take(section)
            if each.or_null and found.get(each.called, 0) is None:
                del found[each.called]
        return found

    return Kind(lambda: schema_of(record), read, {})


def whole(least: int = 0) -> Kind:
    """A whole number of 32 bits."""
    return integer(least, _MOST)


NUMBER = number_between(-1e300, 1e300)
INTERVAL = also(
    list_of(NUMBER),
    lambda ends: len(ends) == 2,
    "expected two numbers",
    minItems=2,
    maxItems=2,
)
ANY = Kind(
    lambda: {"type": "object"}, lambda value, _: dict(value.section().content), {}
)


def _is_text(value: Value, usual: Any) -> Any:
    if isinstance(value.content, str):
        return value.content
    value.expected("a text")
    return usual


TEXT = Kind(lambda: {"type": "string"}, _is_text, "")


def _names(problem: Callable[[str], str | None]) -> Kind:
    """A list of names, none empty, as a tuple; there may be many."""

    def read(value: Value, _: Any) -> tuple[str, ...]:
        if value.kind != "list":
            value.expected("a list")
            return ()
        for index, name in enumerate(value.content):
            is_name = isinstance(name, str) and name
            why = problem(name) if is_name else "expected a name"
            if why:
                got = Value(value.document, name, (*value.path, index))
                got.problem(why if is_name else f"{why}, got {got.shown()}")
        return tuple(value.content)

    items = {"type": "string", "minLength": 1}
    return Kind(lambda: {"type": "array", "items": items}, read, ())


NAMES = _names(lambda _: None)
HOSTS = _names(name_problem)


def _indices(value: Value, _: Any) -> IntArray:
    return np.array(value.integers(maximum=_MOST), dtype=np.int64)


INDICES = Kind(
    lambda: {"type": "array", "items": whole().schema()},
    _indices,
    np.zeros(0, dtype=np.int64),
)
