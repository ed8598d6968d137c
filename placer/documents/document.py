"""A parsed file: plain values, where they stand, and the problems found in them.

A method that finds a problem records it and returns the default or a harmless stand-in,
so that reading goes on; `Document.finish` raises all problems together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from placer.base.errors import Problem, refuse
from placer.documents.builder import Path, Places
from placer.documents.scalars import visible
from placer.documents.section import Section
from placer.documents.value import Value, key_text

# Problems of a file after which no more are looked for: 20 are shown.
MOST_COLLECTED = 1000


class Document:
    """One parsed file: its values and the problems found in it so far.

    ``source``: file name for messages. ``look_up``: gives the places of its values,
    which are asked for where a problem is told. ``within``: path of what the document
    is of. ``top``: the whole of it.
    """

    def __init__(
        self,
        source: str,
        data: Any,
        look_up: Callable[[], Places] = dict,
        problems: Iterable[Problem] = (),
        within: Path = (),
    ) -> None:
        self.source = source
        self.problems = list(problems)
        self.top = Value(self, data, ())
        self._look_up = look_up
        self._within = within
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
        content = {**start, **value.content}
        within = *self._within, *value.path
        return Document(self.source, content, lambda: self._places, within=within)

    def place(self, path: Path, *, is_key: bool = False) -> tuple[int, int]:
        """Line and column of the value at ``path``, or of its key; 0, 0 if unknown.

        Where there is no such value, those of the innermost one around it.
        """
        whole, places = (*self._within, *path), self._places
        if is_key and path and (*whole, None) in places:
            return places[*whole, None]
        around = (whole[:end] for end in range(len(whole), -1, -1))
        return next((places[at] for at in around if at in places), (0, 0))

    @cached_property
    def _places(self) -> Places:
        return self._look_up()

    def check_format(self, format_name: str) -> None:
        """Read ``format`` and ``version`` of the root; stop if they do not fit."""
        problems_before = len(self.problems)
        found = self.root.text("format")
        if found and found != format_name:
            message = f'expected "{format_name}", got "{visible(found)}"'
            hint = f"this command wants a {format_name} file here"
            self.root.problem(message, "format", hint)
        version = self.root.integer("version", maximum=10**6)
        if version > 1:
            message = f"version {version} is newer than this placer reads (1)"
            self.root.problem(message, "version", "upgrade placer")
        if len(self.problems) > problems_before:
            self.fail_if_problems()

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
