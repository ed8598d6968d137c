"""Plain values out of begin, scalar and end calls, and where they stand in a text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from placer.base.errors import InputError, Problem
from placer.documents.scalars import CONTROL, MAX_TEXT, Kind, scalar, visible

# Keys of mappings and indices of lists, from the top.
Path = tuple[str | int, ...]
# Line and column, 1-based, of each value by its path, and of each key by that of its
# value and None.
Places = dict[tuple[str | int | None, ...], tuple[int, int]]

MAX_DEPTH = 32
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
MAX_NODES = 1_000_000

_WRONG: Any = object()  # instead of a key that is wrong: its value is left out
_LINE = 1 << 32


class Builder:
    """Builds values and guards their size; a problem of a key does not end it."""

    def __init__(self, source: str, most: int = MAX_NODES) -> None:
        self.source = source
        self.most = most
        self.root: Any = None
        self.count = 0  # values so far
        self.problems: list[Problem] = []
        # Lists and mappings whose end has not been seen, each with the lines of its
        # keys.
        self._open: list[tuple[Any, dict[str, int]]] = []
        self._key: str | None = None  # of the next value of a mapping
        # Line and column, as one number, of every key and value that is not left out.
        self._marks: list[int] = []
        self._left_out: int | None = None  # how many are open around what is left out

    def begin(self, kind: Kind, line: int, column: int) -> None:
        """Open a list or mapping."""
        if len(self._open) >= MAX_DEPTH:
            raise self.error(TOO_DEEP, line, column)
        box: Any = [] if kind == "list" else {}
        self._attach(box, line, column)
        self._open.append((box, {}))

    def end(self) -> None:
        """Close the innermost list or mapping."""
        self._open.pop()
        self._complete()

    def scalar(self, kind: Kind, raw: str, line: int, column: int) -> None:
        """Add a scalar; in a mapping, keys and values alternate."""
        if len(raw) > MAX_TEXT:
            raise self.error(f"text longer than {MAX_TEXT} characters", line, column)
        if self.at_key():
            self._name(kind, raw, line, column)
        else:
            self._attach(scalar(kind, raw), line, column)
            self._complete()

    def at_key(self) -> bool:
        """Whether the next value is the key of a mapping."""
        return (
            self._key is None and bool(self._open) and type(self._open[-1][0]) is dict
        )

    def error(self, message: str, line: int, column: int, hint: str = "") -> InputError:
        """An error that ends the reading, with the problems found before it."""
        return InputError(
            [*self.problems, Problem(message, self.source, line, column, hint=hint)]
        )

    def places(self) -> Places:
        """Where all values and keys stand."""
        return dict(_placed(self.root, (), iter(self._marks)))

    def _name(self, kind: Kind, raw: str, line: int, column: int) -> None:
        """Take a key."""
        known = self._open[-1][1]
        if kind == "text" and raw not in known and not CONTROL.search(raw):
            self._key = raw
            known[raw] = line
            self._mark(line, column)
            return
        shown, hint = visible(raw), ""
        if kind != "text":
            message = f"the key {shown or 'null'} is read as a {kind}, not as a name"
            hint = f'put it in quotes: "{shown}"'
        elif raw in known:
            message = f'duplicate key "{shown}"'
            hint = f"it first appears on line {known[raw]}; keep one of them"
        else:
            message = f'control character in the key "{shown}"'
        self._key = _WRONG
        if self._left_out is None:
            self._left_out = len(self._open)
        if len(self.problems) < MAX_TEXT:
            self.problems.append(Problem(message, self.source, line, column, hint=hint))

    def _attach(self, value: Any, line: int, column: int) -> None:
        """Put a value where it belongs."""
        self.count += 1
        if self.count > self.most:
            hint = "name many nodes in one host list: n[001-128]"
            raise self.error(f"more than {self.most} values", line, column, hint)
        self._mark(line, column)
        if not self._open:
            self.root = value
        elif self._key is None:
            self._open[-1][0].append(value)
        elif self._key is not _WRONG:
            self._open[-1][0][self._key] = value
        self._key = None

    def _mark(self, line: int, column: int) -> None:
        if self._left_out is None:
            self._marks.append(line * _LINE + column)

    def _complete(self) -> None:
        """Go on after a value."""
        if len(self._open) == self._left_out:
            self._left_out = None


def _placed(
    value: Any, path: Path, marks: Iterator[int]
) -> Iterator[tuple[tuple[str | int | None, ...], tuple[int, int]]]:
    """Keys and places of a value and of all in it, given those in the same order."""
    yield path, divmod(next(marks), _LINE)
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key, None), divmod(next(marks), _LINE)
            yield from _placed(inner, (*path, key), marks)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _placed(inner, (*path, index), marks)
