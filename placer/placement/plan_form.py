"""Typed values out of a plan's JSON; every problem is kept with its key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from placer.base.arrays import IntArray
from placer.base.errors import InputError, Problem, capped
from placer.base.hostlist import name_problem
from placer.documents.tree import CONTROL, MAX_DEPTH, visible

MISSING = object()

_MAX_INDEX = 2**31
_INDICES = range(_MAX_INDEX)
_MAX_WHOLE = 2**63
_MAX_NUMBER = 1e300


class Form:
    """Reads values of the right type; what is malformed becomes something harmless.

    Attributes
    ----------
    data : dict
        The top-level object.
    source : str
        File name for messages.
    """

    def __init__(self, data: object, source: str) -> None:
        if not isinstance(data, dict):
            message = f"not a plan: expected an object, got {shown(data)}"
            raise InputError([Problem(message, source)])
        self.data: dict[str, Any] = data
        self.source = source
        self._problems: list[Problem] = []

    def add(self, key: str, message: str, hint: str = "") -> None:
        """Record a problem."""
        self._problems.append(
            Problem(message, self.source, key=visible(key), hint=hint)
        )

    def fail(self) -> None:
        """Raise what was found so far.

        Raises
        ------
        InputError
            If there is any problem; at most 20 are listed.
        """
        if self._problems:
            raise InputError(capped(self._problems))

    def get(self, key: str) -> Any:
        """A required value of the top level, or ``MISSING``."""
        if key not in self.data:
            self.add(key, "is missing")
        return self.data.get(key, MISSING)

    def harmless(self, value: object, key: str = "", depth: int = 0) -> None:
        """Refuse what would spoil a terminal or overflow a stack or a float."""
        if isinstance(value, str):
            if CONTROL.search(value):
                self.add(key, f'control character in "{visible(value)}"')
        elif depth > MAX_DEPTH:
            self.add(key, f"nested deeper than {MAX_DEPTH} levels")
        elif isinstance(value, dict):
            for name, item in value.items():
                self.harmless(name, key, depth)
                self.harmless(item, f"{key}.{name}" if key else name, depth + 1)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if not (type(item) is int and item in _INDICES):  # there are many
                    self.harmless(item, f"{key}[{index}]", depth + 1)
        elif isinstance(value, int) and abs(value) > _MAX_WHOLE:
            self.add(key, f"expected a number of 64 bits, got {shown(value)[:20]}...")

    def whole(self, key: str, value: object, least: int = 0) -> int:
        """A whole number of at least ``least``."""
        if type(value) is int and least <= value < _MAX_INDEX:
            return value
        if value is not MISSING:
            wanted = f"a whole number of at least {least}"
            self.add(key, f"expected {wanted}, got {shown(value)}")
        return least

    def section(self, key: str, texts: tuple[str, ...] = ()) -> dict[str, Any]:
        """An object of the top level; required when it has required ``texts``."""
        value = self.get(key) if texts else self.data.get(key, {})
        if value is MISSING:
            return {}
        if not isinstance(value, dict):
            self.add(key, f"expected an object, got {shown(value)}")
            return {}
        for name in texts:
            if name not in value:
                self.add(f"{key}.{name}", "is missing")
            elif not isinstance(value[name], str):
                self.add(f"{key}.{name}", f"expected a text, got {shown(value[name])}")
        return value

    def text(self, key: str, value: object) -> None:
        """Check a text; null is as good as absent."""
        if not (value is None or isinstance(value, str)):
            self.add(key, f"expected a text, got {shown(value)}")

    def names(self, key: str, value: object, hosts: bool = False) -> tuple[str, ...]:
        """A list of names, or of host names."""
        if value is MISSING:
            return ()
        if not isinstance(value, list):
            self.add(key, f"expected a list of names, got {shown(value)}")
            return ()
        for index, name in enumerate(value):
            if not isinstance(name, str) or not name:
                self.add(f"{key}[{index}]", f"expected a name, got {shown(name)}")
            elif hosts and (reason := name_problem(name)):
                self.add(f"{key}[{index}]", reason)
        return tuple(value)

    def indices(self, key: str) -> IntArray:
        """A required list of indices, shape (any,)."""
        value = self.get(key)
        none = np.zeros(0, dtype=np.int64)
        if value is MISSING:
            return none
        if not isinstance(value, list):
            self.add(key, f"expected a list of indices, got {shown(value)}")
            return none
        bad = [
            index
            for index, item in enumerate(value)
            if type(item) is not int or not 0 <= item < _MAX_INDEX
        ]
        for index in bad:
            self.add(f"{key}[{index}]", f"expected an index, got {shown(value[index])}")
        return none if bad else np.array(value, dtype=np.int64)

    def numbers(self, key: str, value: object, depth: int) -> None:
        """Check numbers ``depth`` objects down; instead of all, null is as none."""
        if value is not None:
            self._numbers(key, value, depth)

    def _numbers(self, key: str, value: object, depth: int) -> None:
        if not depth:
            if type(value) not in (int, float) or abs(value) > _MAX_NUMBER:  # type: ignore[arg-type]
                self.add(key, f"expected a number, got {shown(value)}")
        elif isinstance(value, dict):
            for name, item in value.items():
                self._numbers(f"{key}.{name}", item, depth - 1)
        else:
            self.add(key, f"expected an object, got {shown(value)}")

    def entries(
        self, key: str, value: object, texts: Sequence[str], numbers: Sequence[str]
    ) -> None:
        """Check a list of objects with these keys; null is as good as absent."""
        if value is None:
            return
        if not isinstance(value, list):
            self.add(key, f"expected a list, got {shown(value)}")
            return
        for index, entry in enumerate(value):
            self.entry(f"{key}[{index}]", entry, texts, numbers)

    def entry(
        self, key: str, value: object, texts: Sequence[str], numbers: Sequence[str]
    ) -> None:
        """Check an object with these keys."""
        if not isinstance(value, dict):
            self.add(key, f"expected an object, got {shown(value)}")
            return
        for name in texts:
            if not isinstance(value.get(name), str):
                self.add(f"{key}.{name}", "expected a text")
        for name in numbers:
            if value.get(name) is None:
                self.add(f"{key}.{name}", "expected a number")
            self.numbers(f"{key}.{name}", value.get(name), 0)


def shown(value: object) -> str:
    """A JSON value for a message."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return f'"{visible(value)}"'
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return visible(str(value))
