"""Slurm's ``Key=Value`` lines: comments, quotes, continuation, ``Include``.

Keys are case-insensitive, blanks around ``=`` are allowed and ``#`` starts a comment
(Slurm, ``topology.conf`` and ``slurm.conf`` manual pages).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from placer.base.errors import InputError, Problem
from placer.documents import files

if TYPE_CHECKING:
    from placer.base.hostlist import HostLists

_KEY = r"[A-Za-z_][\w.]*"
# A value may be empty: at the end of the line, or where the next key follows.
_FIELD = re.compile(rf'\s*({_KEY})\s*=(?:(?=\s*$|\s+{_KEY}\s*=)|\s*("[^"]*"|[^\s"]+))')
_INCLUDE = re.compile(r"\s*include\s+(\S+)\s*", re.IGNORECASE)
_SHOWN = re.compile(r"#\s*([^\s=]+)\s*=\s*(\S(?:.*\S)?)\s*")
_MAX_INCLUDES = 16


@dataclass
class Line:
    """One logical line.

    Attributes
    ----------
    place : Problem
        Where it stands; a problem without a message.
    values : dict of str to str
        By key in lower case.
    columns : dict of str to int
        Column of each key.
    keys : dict of str to str
        The keys as written.
    rest : str
        What follows the last good ``Key=Value``: no such thing, or a key again.
    """

    place: Problem
    values: dict[str, str] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    rest: str = ""

    def problem(self, message: str, key: str = "", hint: str = "") -> Problem:
        """A problem of this line, at one of its keys."""
        at, written = self.place, self.keys.get(key, "")
        column = self.columns.get(key, at.column)
        return Problem(message, at.source, at.line, column, written, hint)

    def hosts(self, key: str, lists: HostLists, problems: list[Problem]) -> list[str]:
        """The names under ``key``; none where it is empty or, with a problem, bad."""
        # Slurm prints (null) for a list that is empty.
        if self.values.get(key, "") in ("", "(null)"):
            return []
        try:
            return lists.expand(self.values[key])
        except ValueError as error:
            hint = ""
            if "never closed" in str(error):
                hint = "a cut line? SLURM_TOPO_LEN sets how long scontrol's lines are"
            problems.append(self.problem(str(error), key, hint))
            return []


@dataclass
class Lines:
    """The lines of a file and of what it includes.

    Attributes
    ----------
    shown : dict of str to str
        Names to show for switches and blocks, from comments such as ``# s1=leaf-1``.
    problems : list of Problem
        Files that cannot be included.
    """

    lines: list[Line] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    num_includes: int = 0


def read_lines(text: str, source: str) -> Lines:
    """All lines, included files in their place; blank ones and comments are dropped."""
    found = Lines()
    _read(text, source, found, [source])
    return found


def _read(text: str, source: str, found: Lines, including: list[str]) -> None:
    for number, raw in _logical_lines(text):
        named = _SHOWN.fullmatch(raw.strip())
        if named and named[2].isprintable():
            found.shown[named[1]] = named[2]
        content = raw.partition("#")[0]
        start = len(content) - len(content.lstrip()) + 1
        place = Problem("", source, number, start)
        if include := _INCLUDE.fullmatch(content):
            _include(include[1], place, found, including)
        elif content.strip():
            found.lines.append(_line(content, place))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """First line number and text of every line, continued ones joined."""
    start, joined = 1, ""
    for number, line in enumerate(text.split("\n"), start=1):
        start = start if joined else number
        if line.rstrip().endswith("\\"):
            joined += line.rstrip()[:-1] + " "
            continue
        yield start, joined + line
        joined = ""
    if joined:
        yield start, joined


def _line(content: str, place: Problem) -> Line:
    line = Line(place)
    at = 0
    while match := _FIELD.match(content, at):
        key = match[1].lower()
        if key in line.values:
            break
        line.values[key] = (match[2] or "").strip('"')
        line.columns[key] = match.start(1) + 1
        line.keys[key] = match[1]
        at = match.end()
    line.rest = content[at:].strip()
    return line


def _include(name: str, place: Problem, found: Lines, including: list[str]) -> None:
    path = str(Path(place.source).parent / name.strip('"'))
    message = ""
    found.num_includes += 1
    if path in including:
        message = f"{name} includes itself"
    elif found.num_includes > _MAX_INCLUDES:
        message = f"more than {_MAX_INCLUDES} includes"
    else:
        try:
            text = files.read_text(path)
        except InputError as error:
            message = error.problems[0].message
            message = f"{path} {message}"
    if message:
        found.problems.append(replace(place, message=message, key="Include"))
        return
    _read(text, path, found, [*including, path])
