"""The arguments of a training program, by name, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from placer.document.tree import visible
from placer.errors import Problem
from placer.sources.findings import Findings, Place, Remark
from placer.sources.shell import Text, open_names
from placer.sources.shell.text import readable

_FLAG = re.compile(r"--[A-Za-z][\w-]*")
_SPLIT = re.compile(r"--[A-Za-z][\w-]*\s+\S")
_LIST = re.compile(r"[\[\]()',\"\s]+")
_NOTHING = ("", "None", "null", "~")


@dataclass(frozen=True)
class Argument:
    """One argument as it was given last.

    Attributes
    ----------
    flag : str
        As it is written.
    values : tuple of Text
    place : Place
    """

    flag: str
    values: tuple[Text, ...]
    place: Place

    @property
    def value_place(self) -> Place:
        """Where its value stands, or the flag of one without."""
        return self.values[0].place if self.values else self.place


class Arguments:
    """Arguments by name, with ``_`` for ``-``; whoever reads one has used it.

    Parameters
    ----------
    found : Findings
        Takes what is wrong with a value, and questions for open ones.
    given : iterable of Argument
        The last of a name counts.
    """

    def __init__(self, found: Findings, given: Iterable[Argument]) -> None:
        self.found = found
        self._given = {name_of(argument.flag): argument for argument in given}
        self._used: set[str] = set()
        self._integers: dict[str, int | None] = {}

    def join(self, joined: Findings) -> None:
        """Let what is wrong from now on go to the joined findings."""
        self.found = joined

    def get(self, name: str) -> Argument | None:
        """The argument of a name; None when it is not given, or null."""
        self._used.add(name)
        argument = self._given.get(name)
        if argument and argument.values and argument.values[0].text in _NOTHING:
            return None
        return argument

    def flag(self, name: str) -> bool:
        """Whether a flag is given, and not as false."""
        argument = self.get(name)
        if argument is None:
            return False
        value = argument.values[0].text.lower() if argument.values else "true"
        return value not in ("false", "0", "no")

    def place(self, name: str) -> Place | None:
        """Where the value of an argument stands; None when it is not given."""
        argument = self.get(name)
        return argument.value_place if argument else None

    def text(self, name: str) -> str:
        """The value of an argument; empty when it is not given or open."""
        argument = self.get(name)
        if argument is None or not argument.values or argument.values[0].is_open:
            return ""
        return argument.values[0].text

    def texts(self, name: str) -> list[str]:
        """All values of an argument, those of a printed list each by itself."""
        argument = self.get(name)
        joined = " ".join(value.text for value in argument.values) if argument else ""
        return [item for item in _LIST.split(joined) if item and not open_names(item)]

    def integer(self, name: str, key: str, *, minimum: int = 1) -> int | None:
        """The value of an argument as an integer; None when it is not given.

        What is open is asked for, anything else is a problem; each once.
        """
        argument = self.get(name)
        if argument is None:
            return None
        if name not in self._integers:
            self._integers[name] = self._integer(argument, key, minimum)
        return self._integers[name]

    def _integer(self, argument: Argument, key: str, minimum: int) -> int | None:
        if not argument.values:
            self._problem(argument, key, "expected a number behind it")
            return None
        value = argument.values[0]
        if value.is_open:
            self.ask(argument, key)
            return None
        text = value.text.strip("'\"")
        if not re.fullmatch(r"[+-]?[0-9][0-9_]{0,17}", text):
            self._problem(argument, key, f'expected an integer, got "{visible(text)}"')
            return None
        number = int(text)
        if number < minimum:
            self._problem(argument, key, f"expected {minimum} or more, got {number}")
            return None
        return number

    def ask(self, argument: Argument, key: str) -> None:
        """Ask for the variables that a value has and nobody sets."""
        text = argument.values[0].text
        names = [name for name in open_names(text) if name.isidentifier()]
        hint = " ".join(f"--set {name}=VALUE" for name in names) or f"--set job.{key}=N"
        message = f"{argument.flag} is {visible(readable(text))}, which nothing sets"
        self.found.ask(key, message, hint, argument.value_place)

    def _problem(self, argument: Argument, key: str, message: str) -> None:
        place = argument.value_place
        full = f"{argument.flag}: {message}"
        self.found.problems.append(Problem(full, *place, key))

    def fact(self, key: str, name: str, *, minimum: int = 1) -> int | None:
        """Read a fact from an argument; its value, None when it is not given."""
        value, place = self.integer(name, key, minimum=minimum), self.place(name)
        if value is not None and place is not None:
            self.found.read(key, value, place)
        return value

    def unused(self) -> Iterator[Remark]:
        """The arguments that nobody asked for."""
        for name, argument in self._given.items():
            if name not in self._used:
                yield Remark(argument.flag, argument.place)


def name_of(flag: str) -> str:
    """The name of a flag: ``--num-layers`` is ``num_layers``."""
    return flag.lstrip("-").replace("-", "_")


def arguments_of(words: Sequence[Text]) -> tuple[list[Argument], list[Text]]:
    """The arguments in the words of a command, and the words before the first.

    A word that holds a flag and its value, as people quote them, counts as both.
    """
    found: list[Argument] = []
    before: list[Text] = []
    values: list[Text] = []
    flag: Text | None = None
    for word in _split(words):
        match = _FLAG.match(word.text)
        if match is None or match.end() not in (len(word.text), word.text.find("=")):
            (before if flag is None else values).append(word)
            continue
        if flag is not None:
            found.append(Argument(flag.text, tuple(values), flag.place))
        flag, values = word.part(0, match.end()), []
        if match.end() < len(word.text):
            values = [word.part(match.end() + 1, len(word.text))]
    if flag is not None:
        found.append(Argument(flag.text, tuple(values), flag.place))
    return found, before


def _split(words: Iterable[Text]) -> Iterator[Text]:
    for word in words:
        if _SPLIT.match(word.text):
            yield from word.words()
        else:
            yield word
