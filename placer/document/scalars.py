"""Scalars as written to values, under the types a schema may ask for."""

from __future__ import annotations

import re

from placer.document.tree import CONTROL, Node, visible

_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)")
_REAL = re.compile(
    r"[-+]?(?:(?:0|[1-9][0-9_]*)(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?"
)
_TRUE = frozenset({"true", "yes", "on"})
_FALSE = frozenset({"false", "no", "off"})


class MisfitError(Exception):
    """A scalar is not what the schema asks for."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def shown(node: Node) -> str:
    """``node`` as a message shows it."""
    if node.kind == "text":
        return f'"{visible(node.raw)}"'
    if node.kind in ("number", "boolean"):
        return f"the {node.kind} {visible(node.raw)}"
    return "nothing" if node.kind == "null" else f"a {node.kind}"


def as_text(node: Node) -> str:
    """A non-empty text on one line.

    Raises
    ------
    MisfitError
        If the node is not text: a bare ``no`` or ``010`` wants quotes.
    """
    if node.kind in ("number", "boolean"):
        hint = f'put it in quotes: "{visible(node.raw)}"'
        raise MisfitError(f"expected a text, got {shown(node)}", hint)
    if node.kind != "text" or not node.raw.strip():
        raise MisfitError(f"expected a text, got {shown(node)}")
    if CONTROL.search(node.raw):
        raise MisfitError(f"control character in {shown(node)}", "remove it")
    return node.raw


def as_integer(node: Node, minimum: int, maximum: int) -> int:
    """A decimal integer in ``minimum .. maximum``.

    Raises
    ------
    MisfitError
        If the node is anything else; octal, hexadecimal and base 60 count as that.
    """
    raw = node.raw
    if node.kind != "number" or not _DECIMAL.fullmatch(raw):
        foreign = node.kind == "number" and "." not in raw
        hint = "write a decimal number without leading zeros" if foreign else ""
        raise MisfitError(f"expected an integer, got {shown(node)}", hint)
    if len(raw) > 30 or not minimum <= int(raw) <= maximum:
        raise _out_of_range(raw, str(minimum), str(maximum))
    return int(raw)


def as_number(node: Node, minimum: float, maximum: float) -> float:
    """A finite number in ``minimum .. maximum``.

    Raises
    ------
    MisfitError
        If the node is anything else.
    """
    raw = node.raw
    if node.kind != "number" or not _REAL.fullmatch(raw):
        raise MisfitError(f"expected a number, got {shown(node)}")
    if len(raw) > 100 or not minimum <= float(raw) <= maximum:
        raise _out_of_range(raw, f"{minimum:g}", f"{maximum:g}")
    return float(raw)


def as_boolean(node: Node) -> bool:
    """True or false.

    Raises
    ------
    MisfitError
        If the node is neither.
    """
    word = node.raw.lower()
    if node.kind != "boolean" or word not in _TRUE | _FALSE:
        raise MisfitError(f"expected true or false, got {shown(node)}")
    return word in _TRUE


def _out_of_range(raw: str, minimum: str, maximum: str) -> MisfitError:
    return MisfitError(f"{visible(raw)} is not between {minimum} and {maximum}")
