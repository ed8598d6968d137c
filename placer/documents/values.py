"""Plain values out of begin, scalar and end calls, as long as nothing is doubtful."""

from __future__ import annotations

from typing import Any

from placer.documents.scalars import Boolean, Number
from placer.documents.tree import MAX_DEPTH, MAX_TEXT, Kind, Node


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
