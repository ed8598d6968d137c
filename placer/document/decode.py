"""Decoding a tree under a schema, collecting every problem with its place.

A method that finds a problem records it and returns the default or a harmless stand-in,
so that reading goes on; `Document.finish` raises all problems together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from difflib import get_close_matches
from typing import TypeVar

from placer.document.scalars import (
    MisfitError,
    as_boolean,
    as_integer,
    as_number,
    as_text,
    shown,
)
from placer.document.tree import Node, visible
from placer.errors import Problem, refuse

Parsed = TypeVar("Parsed")

# Problems of a file after which no more are looked for: 20 are shown.
MOST_COLLECTED = 1000


class Document:
    """One parsed file: its tree and the problems found in it so far.

    Attributes
    ----------
    source : str
        File name for messages.
    root : Section
        The top-level mapping.
    problems : list of Problem
    """

    def __init__(
        self, source: str, tree: Node, problems: Iterable[Problem] = ()
    ) -> None:
        self.source = source
        self.problems = list(problems)
        self._sections: dict[int, Section] = {}
        self.root = Value(self, tree, "").section()

    def problem(self, message: str, node: Node, key: str = "", hint: str = "") -> None:
        """Record a problem at ``node``; one too many ends the reading.

        Raises
        ------
        InputError
            If there are `MOST_COLLECTED` problems.
        """
        self.problems.append(
            Problem(message, self.source, node.line, node.column, key, hint)
        )
        if len(self.problems) >= MOST_COLLECTED:
            self.fail_if_problems()

    def check_format(self, format_name: str, newest: int = 1) -> None:
        """Read ``format`` and ``version`` of the root; stop at once if they do not fit.

        Raises
        ------
        InputError
            If the file is of another format or of a newer version.
        """
        problems_before = len(self.problems)
        found = self.root.text("format")
        if found and found != format_name:
            message = f'expected "{format_name}", got "{visible(found)}"'
            hint = f"this command wants a {format_name} file here"
            self.root.problem(message, "format", hint)
        version = self.root.integer("version", maximum=10**6)
        if version > newest:
            message = f"version {version} is newer than this placer reads ({newest})"
            self.root.problem(message, "version", "upgrade placer")
        if len(self.problems) > problems_before:
            self.fail_if_problems()

    def fail_if_problems(self) -> None:
        """Raise what was found so far, in file order.

        Raises
        ------
        InputError
            If there is any problem; at most 20 are listed.
        """
        refuse(sorted(self.problems, key=lambda p: (p.line, p.column)))

    def finish(self) -> None:
        """Report the unknown keys of every section that was opened, then raise.

        Raises
        ------
        InputError
            If there is any problem.
        """
        for section in self._sections.values():
            section.finish()
        self.fail_if_problems()

    def section(self, value: Value) -> Section:
        """Section of a mapping; asking again gives the same one."""
        section = self._sections.get(id(value.node))
        if section is None:
            section = self._sections[id(value.node)] = Section(value)
        return section


class Value:
    """A node under a key path, to be read as one type or another."""

    __slots__ = ("document", "key", "node")

    def __init__(self, document: Document, node: Node, key: str) -> None:
        self.document = document
        self.node = node
        self.key = key

    @property
    def kind(self) -> str:
        """Kind of the node: text, number, boolean, null, list or mapping."""
        return self.node.kind

    def problem(self, message: str, hint: str = "") -> None:
        """Record a problem at this value."""
        self.document.problem(message, self.node, self.key, hint)

    def shown(self) -> str:
        """The value as a message shows it."""
        return shown(self.node)

    def text(self, default: str = "") -> str:
        """A non-empty text on one line."""
        return self._read(lambda: as_text(self.node), default)

    def integer(
        self, default: int = 1, *, minimum: int = 1, maximum: int = 10**9
    ) -> int:
        """A decimal integer in ``minimum .. maximum``."""
        return self._read(lambda: as_integer(self.node, minimum, maximum), default)

    def number(
        self, default: float = 1.0, *, minimum: float = 0.0, maximum: float = 1e18
    ) -> float:
        """A finite number in ``minimum .. maximum``."""
        return self._read(lambda: as_number(self.node, minimum, maximum), default)

    def quantity(self, parse: Callable[[str], float], default: float = 1.0) -> float:
        """A number with a unit, as ``parse`` (see `placer.units`) reads it."""
        if self.kind not in ("text", "number"):
            self._expected("a quantity")
            return default
        return self._read(lambda: parse(self.node.raw), default)

    def boolean(self, default: bool = False) -> bool:
        """True or false."""
        return self._read(lambda: as_boolean(self.node), default)

    def choice(self, options: Collection[str], default: str = "") -> str:
        """A text that is one of ``options``."""
        found = self.text()
        if not found:
            return default or next(iter(options))
        if found not in options:
            message = f"{self.shown()} is none of {', '.join(options)}"
            self.problem(message, closest(found, options))
            return default or next(iter(options))
        return found

    def section(self) -> Section:
        """The mapping; an empty one, with a problem, when it is none."""
        if self.kind != "mapping":
            self._expected("a mapping (key: value)")
        return self.document.section(self)

    def items(self) -> list[Value]:
        """The elements of a list."""
        if self.kind != "list":
            self._expected("a list")
        return [
            Value(self.document, node, f"{self.key}[{index}]")
            for index, node in enumerate(self.node.items)
        ]

    def texts(self) -> list[str]:
        """The elements of a list of texts."""
        return [item.text() for item in self.items()]

    def integers(self, *, minimum: int = 0, maximum: int = 10**9) -> list[int]:
        """The elements of a list of integers, fast when all of them are good."""
        raws = [node.raw for node in self.node.items if node.kind == "number"]
        if raws and len(raws) == len(self.node.items):
            usual = all(raw.isdecimal() and len(raw) < 20 for raw in raws)
            if usual and all(raw[0] != "0" or raw == "0" for raw in raws):
                found = [int(raw) for raw in raws]
                if minimum <= min(found) and max(found) <= maximum:
                    return found
        return [
            item.integer(minimum, minimum=minimum, maximum=maximum)
            for item in self.items()
        ]

    def _read(self, read: Callable[[], Parsed], default: Parsed) -> Parsed:
        try:
            return read()
        except MisfitError as misfit:
            self.problem(misfit.message, misfit.hint)
        except ValueError as error:
            self.problem(str(error))
        return default

    def _expected(self, what: str) -> None:
        self.problem(f"expected {what}, got {self.shown()}")


class Section:
    """A mapping of the file; every key that is read becomes a known key.

    A reading method without ``default`` requires its key.
    """

    def __init__(self, value: Value) -> None:
        self.value = value
        self.document = value.document
        self._known: set[str] = set()
        self._finished = False

    @property
    def node(self) -> Node:
        """The mapping's node."""
        return self.value.node

    def path(self, key: str) -> str:
        """Key path of ``key`` in this mapping."""
        return f"{self.value.key}.{key}" if self.value.key else key

    def has(self, key: str) -> bool:
        """Whether ``key`` is given."""
        self._known.add(key)
        return key in self.node.entries

    def get(self, key: str, *, required: bool = False) -> Value | None:
        """The value of ``key``; None when it is absent."""
        self._known.add(key)
        node = self.node.entries.get(key)
        if node is not None:
            return Value(self.document, node, self.path(key))
        if required and self.value.kind == "mapping":
            self.problem(f'the key "{key}" is missing')
        return None

    def entries(self) -> Iterator[tuple[str, Value]]:
        """All keys, taken as names that the file chose, with their values."""
        self._known.update(self.node.entries)
        for key, node in self.node.entries.items():
            yield key, Value(self.document, node, self.path(key))

    def problem(self, message: str, key: str = "", hint: str = "") -> None:
        """Record a problem at ``key``, or at the mapping when ``key`` is absent."""
        node = self.node.entries.get(key, self.node)
        path = self.path(key) if key else self.value.key
        self.document.problem(message, node, path, hint)

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
        """A number with a unit, as ``parse`` (see `placer.units`) reads it."""
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

    def section(self, key: str, *, required: bool = False) -> Section:
        """The mapping under ``key``; an empty one when it is absent."""
        value = self.get(key, required=required)
        if value is not None:
            return value.section()
        empty = Node("mapping", self.node.line, self.node.column)
        return Section(Value(self.document, empty, self.path(key)))

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
        for key, (line, column) in self.node.places.items():
            if key in self._known:
                continue
            place = Node("text", line, column)
            message = f'unknown key "{visible(key)}"'
            hint = closest(key, self._known)
            self.document.problem(message, place, self.value.key, hint)


def closest(name: str, options: Iterable[str]) -> str:
    """Hint that names the option most like ``name``; empty when none is near."""
    near = get_close_matches(name, list(options), n=1, cutoff=0.6)
    return f'did you mean "{near[0]}"?' if near else ""
