"""A parsed file: plain values, where they stand, and the problems found in them.

A method that finds a problem records it and returns the default or a harmless stand-in,
so that reading goes on; `Document.finish` raises all problems together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from placer.base.errors import Problem, refuse
from placer.documents.section import Section
from placer.documents.tree import Node, visible
from placer.documents.value import Path, Value, key_text

# Problems of a file after which no more are looked for: 20 are shown.
MOST_COLLECTED = 1000


class Document:
    """One parsed file: its values and the problems found in it so far.

    ``source``: file name for messages. ``top``: the whole of it.
    """

    def __init__(
        self,
        source: str,
        data: Any,
        read_tree: Callable[[], Node | None] | None = None,
        problems: Iterable[Problem] = (),
    ) -> None:
        self.source = source
        self.problems = list(problems)
        self.top = Value(self, data, ())
        self._read_tree = read_tree
        self._sections: dict[Path, Section] = {}

    @property
    def root(self) -> Section:
        """The top-level mapping."""
        return self.top.section()

    def problem(
        self, message: str, path: Path, hint: str = "", *, is_key: bool = False
    ) -> None:
        """Record a problem of the value at ``path``, or of its key itself."""
        place = self.place(path, is_key=is_key)
        self.add(Problem(message, self.source, *place, key_text(path), hint))

    def add(self, problem: Problem) -> None:
        """Record a problem; one too many ends the reading."""
        if problem not in self.problems:  # a value may be read twice
            self.problems.append(problem)
        if len(self.problems) >= MOST_COLLECTED:
            self.fail_if_problems()

    def inner(self, value: Value, start: Mapping[str, Any]) -> Document:
        """A mapping as a document of its own, at its place in the same file.

        ``start`` are keys that it need not have.
        """

        def read_tree() -> Node | None:
            node = self._tree
            for step in value.path:
                if node is not None:
                    node = (
                        node.items[step]
                        if isinstance(step, int)
                        else node.entries[step]
                    )
            return node

        return Document(self.source, {**start, **value.content}, read_tree)

    def place(self, path: Path, *, is_key: bool = False) -> tuple[int, int]:
        """Line and column of the value at ``path``, or of its key; 0, 0 if unknown.

        Where there is no such value, those of the innermost one around it.
        """
        node = self._tree
        if node is None:
            return 0, 0
        place = node.line, node.column
        for depth, step in enumerate(path, start=1):
            if isinstance(step, int) and step < len(node.items):
                inner = node.items[step]
            elif isinstance(step, str) and step in node.entries:
                inner = node.entries[step]
                if is_key and depth == len(path):
                    return node.places[step]
            else:
                break
            node = inner
            place = node.line, node.column
        return place

    @cached_property
    def _tree(self) -> Node | None:
        return self._read_tree() if self._read_tree else None

    def check_format(self, format_name: str, newest: int = 1) -> None:
        """Read ``format`` and ``version`` of the root; stop if they do not fit."""
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

    def faulty(self, key: str) -> bool:
        """Whether a problem was found so far in the mapping of a key of the root."""
        return any(p.key == key or p.key.startswith(f"{key}.") for p in self.problems)

    def fail_if_problems(self) -> None:
        """Raise what was found so far, in file order."""
        refuse(sorted(self.problems, key=lambda p: (p.line, p.column)))

    def finish(self) -> None:
        """Report the unknown keys of every section that was opened, then raise."""
        for section in self._sections.values():
            section.finish()
        self.fail_if_problems()

    def section(self, value: Value, hint: str = "") -> Section:
        """Section of a mapping; asking again gives the same one."""
        section = self._sections.get(value.path)
        if section is None:
            section = self._sections[value.path] = Section(value)
            if value.kind != "mapping":
                value.expected("a mapping (key: value)", hint)
        return section
