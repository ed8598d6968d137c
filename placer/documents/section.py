"""A mapping of a file under a schema: unknown and missing keys are problems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from placer.base.errors import Problem
from placer.documents.keys import TEXT, Kind, integer
from placer.documents.scalars import visible
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

    def take(self, kind: Kind, key: str, default: Any = None) -> Any:
        """The value of ``key`` as one of a kind."""
        value = self.get(key, required=default is None)
        usual = kind.stand_in if default is None else default
        return usual if value is None else kind.read(value, usual)

    def text(self, key: str, default: str | None = None) -> str:
        """A non-empty text on one line."""
        return str(self.take(TEXT, key, default))

    def integer(
        self,
        key: str,
        default: int | None = None,
        *,
        minimum: int = 1,
        maximum: int = 10**9,
    ) -> int:
        """A decimal integer in ``minimum .. maximum``."""
        return int(self.take(integer(minimum, maximum), key, default))

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
