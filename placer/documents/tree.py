"""The tree that both notations give: nodes with a kind, a place and their raw text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from placer.base.errors import InputError, Problem

Kind = Literal["text", "number", "boolean", "null", "list", "mapping"]

MAX_DEPTH = 32
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
MAX_NODES = 1_000_000
MAX_TEXT = 10_000

# C0 and C1 controls, line separators, direction overrides, lone surrogates, BOM.
CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(slots=True)
class Node:
    """One value of a file and where it starts."""

    kind: Kind  # ``text``, ``number``, ``boolean``, ``null``, ``list`` or ``mapping``
    # line and column: 1-based place.
    line: int
    column: int
    raw: str = ""  # a scalar as written, without quotes and with escapes resolved
    items: Sequence[Node] = ()  # elements of a list
    # Values of a mapping.
    entries: Mapping[str, Node] = field(default_factory=lambda: _NONE)
    # Line and column of each key of a mapping.
    places: Mapping[str, tuple[int, int]] = field(default_factory=lambda: _NONE)


class TreeBuilder:
    """Builds a tree from begin, scalar and end calls, and guards its size."""

    def __init__(self, source: str, most: int = MAX_NODES) -> None:
        self.source = source
        self.most = most
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._count = 0
        self._open: list[_Open] = []

    def begin(self, kind: Kind, line: int, column: int) -> None:
        """Open a list or mapping."""
        if len(self._open) >= MAX_DEPTH:
            raise self.error(TOO_DEEP, line, column)
        node = self._attach(Node(kind, line, column))
        if kind == "list":
            items: list[Node] = []
            node.items = items
            self._open.append(_Open(items, {}, {}, is_list=True))
        else:
            entries: dict[str, Node] = {}
            places: dict[str, tuple[int, int]] = {}
            node.entries, node.places = entries, places
            self._open.append(_Open([], entries, places, is_list=False))

    def end(self) -> None:
        """Close the innermost list or mapping."""
        self._open.pop()

    def scalar(self, kind: Kind, raw: str, line: int, column: int) -> None:
        """Add a scalar; in a mapping, keys and values alternate."""
        if len(raw) > MAX_TEXT:
            raise self.error(f"text longer than {MAX_TEXT} characters", line, column)
        top = self._open[-1] if self._open else None
        if top is not None and not top.is_list and top.key is None:
            self._key(top, kind, raw, line, column)
        else:
            self._attach(Node(kind, line, column, raw))

    def at_key(self) -> bool:
        """Whether the next node is the key of a mapping."""
        top = self._open[-1] if self._open else None
        return top is not None and not top.is_list and top.key is None

    def error(self, message: str, line: int, column: int, hint: str = "") -> InputError:
        """An error that ends the reading, with the problems found before it."""
        return InputError(
            [*self.problems, Problem(message, self.source, line, column, hint=hint)]
        )

    def _key(self, top: _Open, kind: Kind, raw: str, line: int, column: int) -> None:
        top.key, top.skip = raw, False
        shown = visible(raw)
        message = hint = ""
        if kind != "text":
            message = f"the key {shown or 'null'} is read as a {kind}, not as a name"
            hint = f'put it in quotes: "{shown}"'
        elif CONTROL.search(raw):
            message = f'control character in the key "{shown}"'
        elif raw in top.places:
            message = f'duplicate key "{shown}"'
            hint = f"it first appears on line {top.places[raw][0]}; keep one of them"
        if message:
            top.skip = True
            if len(self.problems) < MAX_TEXT:
                self.problems.append(
                    Problem(message, self.source, line, column, hint=hint)
                )
        else:
            top.places[raw] = (line, column)

    def _attach(self, node: Node) -> Node:
        self._count += 1
        if self._count > self.most:
            message = f"more than {self.most} values"
            hint = "name many nodes in one host list: n[001-128]"
            raise self.error(message, node.line, node.column, hint)
        if not self._open:
            self.root = node
            return node
        top = self._open[-1]
        if top.is_list:
            top.items.append(node)
        elif top.key is not None:
            if not top.skip:
                top.entries[top.key] = node
            top.key = None
        return node


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not been seen."""

    items: list[Node]
    entries: dict[str, Node]
    places: dict[str, tuple[int, int]]
    is_list: bool
    key: str | None = None
    skip: bool = False


def visible(text: str, limit: int = 60) -> str:
    """``text`` fit for a message: control characters replaced, long texts cut."""
    clean = CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
    return clean if len(clean) <= limit else f"{clean[:limit]}..."
