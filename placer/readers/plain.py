"""YAML and JSON of any shape as plain values that still know where they stand.

JSON is parsed by the standard library, twenty times as fast as token by token; the
places are looked up only for an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn

from placer.document.json_tree import json_tree
from placer.document.tree import CONTROL, Node, TreeBuilder, visible
from placer.document.tree import MAX_NODES as TREE_VALUES
from placer.document.yaml_tree import yaml_tree
from placer.errors import MOST_PROBLEMS, InputError, Problem, refuse
from placer.hostlist import expand
from placer.readers.findings import MAX_NODES, Findings, NodeFacts

Path = tuple[str | int, ...]

_MAX_VALUES = 2_000_000
_OPENS_JSON = re.compile(r"\s*[\[{]")
_ASK = "ask the tool for JSON: -o json, --format=json, --output json"
_KINDS = {dict: "a mapping", list: "a list", str: "a text", bool: "a boolean"}


class Plain:
    """A parsed file.

    Attributes
    ----------
    source : str
        Its name in messages.
    root : Item
    names_left : int
        How many names its host lists may still have.
    """

    def __init__(self, text: str, source: str, *, yaml: bool = False) -> None:
        """Parse ``text``.

        Raises
        ------
        InputError
            If it is not JSON (or YAML, where that is allowed), or too large.
        """
        self.source = source
        self.names_left = 2 * MAX_NODES
        self._text = text
        self._problems: list[tuple[Path, str, str]] = []
        self._tree: Node | None = None
        self._too_large = False
        if yaml and not _OPENS_JSON.match(text):
            builder = TreeBuilder(source)
            self._tree = yaml_tree(text, builder)
            refuse(builder.problems)
            data = _plain(self._tree)
        else:
            data = self._json()
        self.root = Item(self, data, ())

    def problem(self, path: Path, message: str, hint: str = "") -> None:
        """Record a problem at ``path``."""
        self._problems.append((path, message, hint))

    @property
    def has_problems(self) -> bool:
        """Whether a problem was found."""
        return bool(self._problems)

    def finish(self) -> None:
        """Raise the problems found.

        Raises
        ------
        InputError
            If there is any problem.
        """
        found = self._problems
        placed = [self.placed(*problem) for problem in found[:MOST_PROBLEMS]]
        rest = [
            Problem(message, self.source) for _, message, _ in found[MOST_PROBLEMS:]
        ]
        refuse(placed + rest)

    def placed(self, path: Path, message: str, hint: str = "") -> Problem:
        """A problem at ``path``, for what is only reported."""
        line, column = 0, 0
        # A text that json read may still be too large for the tree: then no place.
        if self._tree is None and not self._too_large:
            self._too_large = True
            with suppress(InputError):
                self._tree = json_tree(self._text, TreeBuilder(self.source))
        if self._tree is not None:
            line, column = _place(self._tree, path)
        return Problem(message, self.source, line, column, _key(path), hint)

    def _json(self) -> Any:
        marks = sum(self._text.count(mark) for mark in ",[{")
        if marks > _MAX_VALUES:
            raise InputError([Problem(f"more than {_MAX_VALUES} values", self.source)])
        self._too_large = marks > TREE_VALUES
        try:
            return json.loads(
                self._text,
                object_pairs_hook=_unique,
                parse_constant=_refuse,
                parse_int=_bounded,
            )
        except (ValueError, RecursionError):
            raise self._no_json() from None

    def _no_json(self) -> InputError:
        """What is wrong with a text that is not JSON, and where."""
        builder = TreeBuilder(self.source)
        try:
            json_tree(self._text, builder)
            found = builder.problems or [Problem("not JSON", self.source)]
        except InputError as error:
            found = list(error.problems)
        if self._text.strip() and not _OPENS_JSON.match(self._text):
            found[0] = replace(found[0], hint=_ASK)
        return InputError(found[:MOST_PROBLEMS])


class Item:
    """A value of a file and its path in it."""

    __slots__ = ("file", "path", "value")

    def __init__(self, file: Plain, value: Any, path: Path) -> None:
        self.file = file
        self.value = value
        self.path = path

    def problem(self, message: str, hint: str = "") -> None:
        """Record a problem at this value."""
        self.file.problem(self.path, message, hint)

    def get(self, key: str) -> Item | None:
        """The value of ``key``; None when this is no mapping or the key is absent.

        A null counts as absent, and so does the text ``null`` that printed answers of
        cloud tools hold.
        """
        if not isinstance(self.value, dict):
            return None
        value = self.value.get(key)
        if value is None or value == "null":
            return None
        return Item(self.file, value, (*self.path, key))

    def at(self, *keys: str) -> Item | None:
        """The value under a path of keys; None when there is none."""
        item: Item | None = self
        for key in keys:
            item = item.get(key) if item else None
        return item

    def text(self, key: str, *, required: bool = False) -> str:
        """The text of ``key``; empty when it is absent (or, with a problem, bad)."""
        item = self.get(key)
        if item is None:
            if required:
                self.problem(f'the key "{key}" is missing')
            return ""
        return item.as_text()

    def as_text(self, longest: int = 1000) -> str:
        """Text of this value, on one line; empty, with a problem, when it is none."""
        if not isinstance(self.value, str) or not self.value.strip():
            self._expected("a text")
            return ""
        if CONTROL.search(self.value) or len(self.value) > longest:
            self.problem(f'"{visible(self.value)}" is no name')
            return ""
        return self.value

    def host_list(self) -> list[str]:
        """The names of a host-list text; none, with a problem, when it is bad.

        Raises
        ------
        InputError
            If the file names far more nodes than a machine may have.
        """
        text = self.as_text(longest=1_000_000)
        try:
            names = expand(text)
        except ValueError as error:
            self.problem(str(error))
            return []
        self.file.names_left -= len(names)
        if self.file.names_left < 0:
            self.problem(f"more than {MAX_NODES} nodes")
            self.file.finish()
        return names

    def entries(self) -> Iterator[tuple[str, Item]]:
        """Keys and values of a mapping; none, with a problem, when it is none."""
        if not isinstance(self.value, dict):
            self._expected("a mapping")
            return
        for key, value in self.value.items():
            yield key, Item(self.file, value, (*self.path, key))

    def items(self) -> list[Item]:
        """Elements of a list; none, with a problem, when it is none.

        Raises
        ------
        InputError
            If the list is longer than any machine needs.
        """
        if not isinstance(self.value, list):
            self._expected("a list")
            return []
        if len(self.value) > 2 * MAX_NODES:
            message = f"a list of {len(self.value)}, the most is {2 * MAX_NODES}"
            raise InputError([Problem(message, self.file.source, key=_key(self.path))])
        return [
            Item(self.file, value, (*self.path, index))
            for index, value in enumerate(self.value)
        ]

    def _expected(self, what: str) -> None:
        got = _KINDS.get(type(self.value), "a number")
        got = "nothing" if self.value in (None, "") else got
        self.problem(f"expected {what}, got {got}")


def add_node(
    findings: Findings, item: Item, name: str, domains: tuple[str, ...]
) -> NodeFacts:
    """Facts of the node called ``name`` that ``item`` describes, added to the findings.

    A name that comes twice is a problem, no name none: that was one before. Whether it
    is a host name is seen later: another source may say which host it stands for.
    """
    facts = NodeFacts(domains)
    if name in findings.nodes:
        item.problem(f'"{name}" is listed twice')
    elif len(findings.nodes) >= MAX_NODES:
        item.problem(f"more than {MAX_NODES} nodes")
        item.file.finish()
    elif name:
        findings.nodes[name] = facts
    return facts


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    pairs = list(pairs)
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("duplicate key")
    return found


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)


def _bounded(digits: str) -> int:
    return int(digits) if len(digits) < 20 else _refuse(digits)


def _plain(node: Node) -> Any:
    """The value of a YAML node; numbers stay as written, since most are names."""
    if node.kind == "list":
        return [_plain(item) for item in node.items]
    if node.kind == "mapping":
        return {key: _plain(value) for key, value in node.entries.items()}
    if node.kind == "null":
        return None
    return node.raw.lower() == "true" if node.kind == "boolean" else node.raw


def _place(node: Node, path: Path) -> tuple[int, int]:
    for step in path:
        if isinstance(step, int) and step < len(node.items):
            node = node.items[step]
        elif isinstance(step, str) and step in node.entries:
            node = node.entries[step]
    return node.line, node.column


def _key(path: Path) -> str:
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{visible(step)}" if text else visible(step)
    return text
