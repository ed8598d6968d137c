"""Scalars of a file, under the types a schema may ask for.

Plain values out of begin, scalar and end calls, as long as nothing is doubtful.
"""

from __future__ import annotations

import re
from types import NoneType
from typing import Any

from placer.documents.tree import CONTROL, MAX_DEPTH, MAX_TEXT, Kind, Node, visible

_WHOLE = r"(?:0|[1-9][0-9]*(?:_[0-9]+)*)"
_PART = r"[0-9]+(?:_[0-9]+)*"
_DECIMAL = re.compile(rf"[-+]?{_WHOLE}")
_REAL = re.compile(
    rf"[-+]?(?:{_WHOLE}(?:\.(?:{_PART})?)?|\.{_PART})(?:[eE][-+]?[0-9]+)?"
)
_TRUE = frozenset({"true", "yes", "on"})
_FALSE = frozenset({"false", "no", "off"})


class Number(str):
    """A number as the file writes it, where a Python number would not say that."""

    __slots__ = ()


class Boolean(str):
    """A boolean of YAML as the file writes it: ``no``, ``True``."""

    __slots__ = ()


_KINDS: dict[type, Kind] = {
    str: "text",
    int: "number",
    float: "number",
    Number: "number",
    bool: "boolean",
    Boolean: "boolean",
    NoneType: "null",
    list: "list",
    dict: "mapping",
}


class MisfitError(Exception):
    """A scalar is not what the schema asks for."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def kind_of(value: Any) -> Kind:
    """Kind of a parsed value."""
    return _KINDS[type(value)]


def raw(value: Any) -> str:
    """A scalar as the file writes it, without quotes."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def shown(value: Any) -> str:
    """``value`` as a message shows it."""
    kind = kind_of(value)
    if kind == "text":
        return f'"{visible(value)}"'
    if kind in ("number", "boolean"):
        return f"the {kind} {visible(raw(value))}"
    return "nothing" if kind == "null" else f"a {kind}"


def as_text(value: Any) -> str:
    """A non-empty text on one line.

    Raises `MisfitError` if the value is not text: a bare ``no`` or ``010`` wants
    quotes.
    """
    if kind_of(value) in ("number", "boolean"):
        hint = f'put it in quotes: "{visible(raw(value))}"'
        raise MisfitError(f"expected a text, got {shown(value)}", hint)
    if type(value) is not str or not value.strip():
        raise MisfitError(f"expected a text, got {shown(value)}")
    if CONTROL.search(value):
        raise MisfitError(f"control character in {shown(value)}", "remove it")
    return value


def as_integer(value: Any, minimum: int, maximum: int) -> int:
    """A decimal integer in ``minimum .. maximum``.

    Raises `MisfitError` if the value is anything else; octal, hexadecimal and base 60
    count as that.
    """
    if type(value) is int and minimum <= value <= maximum:
        return value
    text, is_number = raw(value), kind_of(value) == "number"
    if not is_number or not _DECIMAL.fullmatch(text):
        foreign = is_number and "." not in text
        hint = "write a decimal number without leading zeros" if foreign else ""
        raise MisfitError(f"expected an integer, got {shown(value)}", hint)
    if len(text) > 30 or not minimum <= int(text) <= maximum:
        raise _out_of_range(text, str(minimum), str(maximum))
    return int(text)


def as_number(value: Any, minimum: float, maximum: float) -> float:
    """A finite number in ``minimum .. maximum``.

    Raises `MisfitError` if the value is anything else.
    """
    text = raw(value)
    is_number = kind_of(value) == "number"
    if not is_number or not _REAL.fullmatch(text):
        hint = "write a decimal number" if is_number else ""
        raise MisfitError(f"expected a number, got {shown(value)}", hint)
    if len(text) > 100 or not minimum <= float(text) <= maximum:
        raise _out_of_range(text, f"{minimum:g}", f"{maximum:g}")
    return float(text)


def as_boolean(value: Any) -> bool:
    """True or false.

    Raises `MisfitError` if the value is neither.
    """
    word = raw(value).lower()
    if kind_of(value) != "boolean" or word not in _TRUE | _FALSE:
        raise MisfitError(f"expected true or false, got {shown(value)}")
    return word in _TRUE


def _out_of_range(text: str, minimum: str, maximum: str) -> MisfitError:
    return MisfitError(f"{visible(text)} is not between {minimum} and {maximum}")


class ValueBuilder:
    """Builds what `placer.documents.tree.TreeBuilder` would, without places.

    It says nothing of what is wrong with a text: its ``ValueError`` asks for a tree.
    """

    def __init__(self, most: int) -> None:
        self.root: Any = None
        self._left = most
        self._open: list[Any] = []
        self._key: str | None = None

    def begin(self, kind: Kind, line: int, column: int) -> None:
        """Open a list or mapping."""
        if len(self._open) >= MAX_DEPTH:
            raise self.error("too deep", line, column)
        box: Any = [] if kind == "list" else {}
        self._attach(box)
        self._open.append(box)

    def end(self) -> None:
        """Close the innermost list or mapping."""
        self._open.pop()

    def scalar(self, kind: Kind, raw: str, line: int, column: int) -> None:
        """Add a scalar; in a mapping, keys and values alternate."""
        if len(raw) > MAX_TEXT:
            raise self.error("a long text", line, column)
        if not self.at_key():
            self._attach(scalar(kind, raw))
        elif kind == "text" and raw.isprintable() and raw not in self._open[-1]:
            self._key = raw
        else:
            raise self.error("a doubtful key", line, column)

    def at_key(self) -> bool:
        """Whether the next value is the key of a mapping."""
        return self._key is None and bool(self._open) and type(self._open[-1]) is dict

    def error(self, message: str, line: int, column: int, hint: str = "") -> ValueError:
        """An error that ends the reading."""
        return ValueError(message, line, column, hint)

    def _attach(self, value: Any) -> None:
        self._left -= 1
        if self._left < 0:
            raise ValueError("too many values")
        if not self._open:
            self.root = value
        elif self._key is None:
            self._open[-1].append(value)
        else:
            self._open[-1][self._key] = value
            self._key = None


def plain(node: Node) -> Any:
    """The value of a tree."""
    if node.kind == "list":
        return [plain(item) for item in node.items]
    if node.kind == "mapping":
        return {key: plain(value) for key, value in node.entries.items()}
    return scalar(node.kind, node.raw)


def scalar(kind: Kind, raw: str) -> Any:
    """The value of a scalar.

    Numbers and booleans stay as written until a schema asks for them: YAML 1.1 would
    turn ``no`` into false and ``010`` into 8 before anybody could object.
    """
    if kind == "text":
        return raw
    if kind == "number":
        return Number(raw)
    return None if kind == "null" else Boolean(raw)
