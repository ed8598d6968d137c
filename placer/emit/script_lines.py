"""Changes to the lines of a shell script: options of one command, and words of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from placer.base.errors import EmitError

_PLAIN = r"""\$\{[^}]*\}|\$\([^()]*\)|\\.|[^\s"'();&|<>\\]"""
_INSIDE = re.compile(f"(?:{_PLAIN})+")
_OUTSIDE = re.compile(rf"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|{_PLAIN})+""")
_PROGRAM = re.compile(r"""(?<=[\s"'])(?:python[\d.]*|bash|sh|\S+\.(?:py|sh))(?=\s|$)""")


class Option(NamedTuple):
    """An option of a script: its line (from 0), and where it, its value, both end."""

    line: int
    start: int
    value: int
    end: int


class Script:
    """A script whose lines change.

    ``name``: how messages call it. ``line``: of the command, from 1.
    """

    def __init__(self, text: str, name: str, line: int) -> None:
        self.lines = text.split("\n")
        self.name = name
        self.at = line - 1

    @property
    def command(self) -> range:
        """The lines of the command: all but the last end in a backslash."""
        end = self.at + 1
        while end < len(self.lines) and self.lines[end - 1].endswith("\\"):
            end += 1
        return range(self.at, end)

    @property
    def _program(self) -> tuple[int, int]:
        """Where the program of the command begins; behind all without one."""
        for number in self.command:
            if found := _PROGRAM.search(self.lines[number]):
                return number, found.start()
        return self.command[-1] + 1, 0

    def replace_word(self, word: str, instead: str) -> str:
        """Put something in the place of the command's word, which is returned.

        ``word``: a regular expression. ``instead``: with ``{}`` where the word itself
        goes.
        """
        line = self.lines[self.at] if self.at < len(self.lines) else ""
        found = re.search(rf"(?<![\w./-])(?:[\w./-]*/)?(?:{word})(?![\w.-])", line)
        if found is None:
            raise EmitError(
                f"{self.name}:{self.at + 1} does not start the job any more: the "
                "script was changed since the plan was made; place the job again"
            )
        new = instead.replace("{}", found[0])
        self.lines[self.at] = line[: found.start()] + new + line[found.end() :]
        return found[0]

    def run_by(self, wrapper: str) -> None:
        """Put a command in front of the program of the command."""
        number, start = self._program
        if number not in self.command:
            raise EmitError(
                f"{self.name}:{self.at + 1}: which word is the program cannot be told: "
                f"put {wrapper} in front of it"
            )
        line = self.lines[number]
        self.lines[number] = f"{line[:start]}{wrapper} {line[start:]}"

    def own_option(self, names: str) -> Option | None:
        """The first such option of the command itself, in front of its program.

        ``names``: a regular expression.
        """
        return next(
            (
                one
                for one in self._options(names)
                if one.line in self.command and (one.line, one.value) <= self._program
            ),
            None,
        )

    def option(self, names: str) -> Option | None:
        """The option of the command; elsewhere in the script, where it has none.

        ``names``: a regular expression.
        """
        found = list(self._options(names))
        own = [one for one in found if one.line in self.command]
        if not own and len(found) > 1:
            lines = ", ".join(str(one.line + 1) for one in found)
            option = names.replace("[-_]", "-")
            raise EmitError(
                f"{self.name} has {option} in lines {lines}: which is the command's "
                "cannot be told; write it on the line of the launcher"
            )
        return next(iter(own or found), None)

    def set_option(self, names: str, value: Callable[[str], str]) -> None:
        """Give the command's option, if it has it, what is made of its value."""
        if (found := self.option(names)) is not None:
            line = self.lines[found.line]
            new = value(line[found.value : found.end])
            self.lines[found.line] = line[: found.value] + new + line[found.end :]

    def remove_option(self, names: str) -> None:
        """Take the command's option out, if it has it."""
        if (found := self.option(names)) is not None:
            self._remove(found)

    def remove_own(self, *options: str) -> None:
        """Take options out wherever they stand in the command itself."""
        for names in options:
            while (found := self.own_option(names)) is not None:
                self._remove(found)

    def _remove(self, option: Option) -> None:
        """Take an option out; a line that held nothing else stays empty."""
        line = self.lines[option.line]
        before, after = line[: option.start], line[option.end :].lstrip(" \t")
        self.lines[option.line] = (before + after).rstrip(" \t")

    def _options(self, names: str) -> Iterator[Option]:
        pattern = re.compile(rf"(?<![\w$-])(?:{names})(?:=|[ \t]+|(?<= -\w)(?=\d))")
        for number, line in enumerate(self.lines):
            if line.lstrip().startswith("#"):
                continue
            for match in pattern.finditer(line):
                quoted = line[: match.start()].count('"') % 2
                value = (_INSIDE if quoted else _OUTSIDE).match(line, match.end())
                if value is not None:
                    yield Option(number, match.start(), *value.span())
