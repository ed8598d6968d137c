"""A mapping of a file under a schema: unknown and missing keys are problems."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from placer.base.errors import Problem
from placer.documents.tree import visible
from placer.documents.value import Value, closest, key_text

_FEW_KEYS = 12  # that a hint can list


class Section:
    """A mapping of the file; every key that is read becomes a known key.

    A reading method without ``default`` requires its key.
    """

    def __init__(self, value: Value) -> None:
        self.value = value
        self.document = value.document
        self.content: Mapping[str, Any] = (
            value.content if value.kind == "mapping" else {}
        )
        self._known: set[str] = set()
        self._finished = False

    def path(self, key: str) -> str:
        """Key path of ``key`` in this mapping, as messages show it."""
        return key_text((*self.value.path, key))

    def has(self, key: str) -> bool:
        """Whether ``key`` is given."""
        self._known.add(key)
        return key in self.content

    def get(self, key: str, *, required: bool = False) -> Value | None:
        """The value of ``key``; None when it is absent."""
        self._known.add(key)
        if key in self.content:
            return self._value(key)
        if required and self.value.kind == "mapping":
            self.problem(f'the key "{key}" is missing')
        return None

    def entries(self) -> Iterator[tuple[str, Value]]:
        """All keys, taken as names that the file chose, with their values."""
        self._known.update(self.content)
        for key in self.content:
            yield key, self._value(key)

    def problem(
        self, message: str, key: str = "", hint: str = "", *, is_key: bool = False
    ) -> None:
        """Record a problem at ``key``, or at the mapping when ``key`` is absent.

        With ``is_key`` it is the key itself that is wrong, not its value.
        """
        path = (*self.value.path, key) if key else self.value.path
        self.document.problem(message, path, hint, is_key=is_key)

    def _value(self, key: str) -> Value:
        return Value(self.document, self.content[key], (*self.value.path, key))

    def text(self, key: str, default: str | None = None) -> str:
        """A non-empty text on one line."""
        value = self.get(key, required=default is None)
        return value.text(default or "") if value else default or ""

    def integer(
        self,
        key: str,
        default: int | None = None,
        *,
        minimum: int = 1,
        maximum: int = 10**9,
    ) -> int:
        """A decimal integer in ``minimum .. maximum``."""
        stand_in = minimum if default is None else default
        value = self.get(key, required=default is None)
        if value is None:
            return stand_in
        return value.integer(stand_in, minimum=minimum, maximum=maximum)

    def number(
        self,
        key: str,
        default: float | None = None,
        *,
        minimum: float = 0.0,
        maximum: float = 1e18,
    ) -> float:
        """A finite number in ``minimum .. maximum``."""
        stand_in = minimum if default is None else default
        value = self.get(key, required=default is None)
        if value is None:
            return stand_in
        return value.number(stand_in, minimum=minimum, maximum=maximum)

    def quantity(
        self, key: str, parse: Callable[[str], float], default: float | None = None
    ) -> float:
        """A number with a unit, as ``parse`` (see `placer.base.units`) reads it."""
        stand_in = 1.0 if default is None else default
        value = self.get(key, required=default is None)
        return value.quantity(parse, stand_in) if value else stand_in

    def boolean(self, key: str, default: bool | None = None) -> bool:
        """True or false."""
        value = self.get(key, required=default is None)
        return value.boolean(bool(default)) if value else bool(default)

    def choice(
        self, key: str, options: Collection[str], default: str | None = None
    ) -> str:
        """A text that is one of ``options``."""
        value = self.get(key, required=default is None)
        stand_in = default or next(iter(options))
        return value.choice(options, stand_in) if value else stand_in

    def section(self, key: str, *, required: bool = False, hint: str = "") -> Section:
        """The mapping under ``key``; an empty one when it is absent."""
        value = self.get(key, required=required)
        if value is not None:
            return value.section(hint)
        return Section(Value(self.document, {}, (*self.value.path, key)))

    def items(self, key: str, *, required: bool = False) -> list[Value]:
        """The elements of the list under ``key``; none when it is absent."""
        value = self.get(key, required=required)
        return value.items() if value else []

    def texts(self, key: str) -> list[str]:
        """The texts of the list under ``key``; none when it is absent."""
        return [item.text() for item in self.items(key)]

    def finish(self) -> None:
        """Report the keys that nothing has read."""
        if self._finished:
            return
        self._finished = True
        for key in self.content:
            if key in self._known:
                continue
            message = f'unknown key "{visible(key)}"'
            hint = closest(key, self._known)
            if not hint and len(self._known) <= _FEW_KEYS:
                hint = f"known: {', '.join(sorted(self._known))}"
            document, path = self.document, (*self.value.path, key)
            place = document.place(path, is_key=True)
            document.add(
                Problem(message, document.source, *place, self.value.key, hint)
            )
