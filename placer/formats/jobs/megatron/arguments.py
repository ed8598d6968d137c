"""The arguments of a training program, by name, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placer.base.errors import Problem
from placer.documents.tree import visible
from placer.formats.jobs import core_rules
from placer.formats.jobs.findings import Findings, Place, Remark, Scalar
from placer.formats.jobs.shell.questions import ask
from placer.formats.jobs.shell.text import known, opens

if TYPE_CHECKING:
    from placer.formats.jobs.shell import Text
    from placer.formats.jobs.shell.values import Either

_FLAG = re.compile(r"--[A-Za-z][\w-]*")
_INTEGER = re.compile(r"[+-]?[0-9]+(_[0-9]+)*")
_LONGEST_INTEGER = 19  # characters
_SPLIT = re.compile(r"--[A-Za-z][\w-]*\s+\S")
_LIST = re.compile(r"[\[\]()',\"\s]+")
_NOTHING = ("", "None", "null", "~")


@dataclass(frozen=True)
class Argument:
    """One argument as it was given last."""

    flag: str  # as it is written
    values: tuple[Text, ...]
    place: Place

    @property
    def value_place(self) -> Place:
        """Where its value stands, or the flag of one without."""
        return self.values[0].place if self.values else self.place


class Arguments:
    """Arguments by name, with ``_`` for ``-``; whoever reads one has used it.

    A value that is not known is asked for, once, by whoever reads it.

    ``found``: takes what is wrong with a value, and questions for open ones. ``given``:
    the last of a name counts. ``program``: name of the file that is started.
    """

    def __init__(
        self, found: Findings, given: Iterable[Argument], program: str = ""
    ) -> None:
        self.found = found
        self.program = program
        self._given = {name_of(argument.flag): argument for argument in given}
        self._used: set[str] = set()
        self._asked: set[str] = set()
        self._integers: dict[str, int | None] = {}

    def join(self, joined: Findings) -> None:
        """Let what is wrong from now on go to the joined findings."""
        self.found = joined

    def noted(self, name: str) -> Argument | None:
        """The argument of a name for whom its value does not matter; None without."""
        self._used.add(name)
        argument = self._given.get(name)
        if argument and argument.values and argument.values[0].text in _NOTHING:
            return None
        return argument

    def get(self, name: str, key: str = "") -> Argument | None:
        """The argument of a name; None when it is not given, null or asked for."""
        argument = self.noted(name)
        if argument is None or not any(v.is_open for v in argument.values):
            return argument
        self.ask(argument, key)
        return None

    def ask(self, argument: Argument, key: str = "") -> None:
        """Ask for what the value of an argument needs."""
        if argument.flag not in self._asked:
            self._asked.add(argument.flag)
            text = next(value for value in argument.values if value.is_open)
            ask(self.found, key, argument.flag, text)

    def flag(self, name: str) -> bool:
        """Whether a flag is given, and not as false."""
        argument = self.get(name)
        if argument is None:
            return False
        value = argument.values[0].text.lower() if argument.values else "true"
        return value not in ("false", "0", "no")

    def is_open(self, name: str) -> bool:
        """Whether an argument is given, or may be, with a value that is not known."""
        argument = self.noted(name)
        return argument is not None and any(v.is_open for v in argument.values)

    def place(self, name: str) -> Place | None:
        """Where the value of an argument stands; None when it is not given."""
        argument = self.noted(name)
        return argument.value_place if argument else None

    def text(self, name: str) -> str:
        """The value of an argument; empty when it is not given or asked for."""
        argument = self.get(name)
        return argument.values[0].text if argument and argument.values else ""

    def texts(self, name: str) -> list[str]:
        """All values of an argument, those of a printed list each by itself."""
        argument = self.get(name)
        joined = " ".join(value.text for value in argument.values) if argument else ""
        return [item for item in _LIST.split(joined) if item]

    def integer(self, name: str, key: str, *, minimum: int = 1) -> int | None:
        """The value of an argument as an integer; None when it is not given.

        What is open is asked for, anything else is a problem; each once.
        """
        argument = self.get(name, key)
        if argument is None:
            return None
        if name not in self._integers:
            self._integers[name] = self._integer(argument, key, minimum)
        return self._integers[name]

    def _integer(self, argument: Argument, key: str, minimum: int) -> int | None:
        if not argument.values:
            words = "expected a number behind it"
        else:
            text = argument.values[0].text.strip("'\"")
            is_one = len(text) <= _LONGEST_INTEGER and _INTEGER.fullmatch(text)
            if is_one and int(text) >= minimum:
                return int(text)
            words = f'expected an integer, got "{visible(text)}"'
            if is_one:
                words = f"expected {minimum} or more, got {int(text)}"
        place = argument.value_place
        self.found.problems.append(Problem(f"{argument.flag}: {words}", *place, key))
        return None

    def fact(
        self,
        key: str,
        name: str,
        *,
        minimum: int = 1,
        usual: tuple[Scalar, str] | None = None,
    ) -> int | None:
        """Read a fact from an argument; its value, None when it is not given.

        ``usual`` is derived then, with why.
        """
        value, place = self.integer(name, key, minimum=minimum), self.place(name)
        if value is not None and place is not None:
            self.found.read(key, value, place)
        elif usual is not None:
            self.found.derive(key, *usual)
        return value

    def first(self, *names: str) -> str:
        """The value of the first argument that has one; empty without."""
        return next(filter(None, map(self.text, names)), "")

    def derive(self, key: str, value: Scalar, rule: str, name: str) -> None:
        """Set a fact by a rule, from an argument that may be given."""
        self.found.derive(key, value, rule, self.place(name))

    def problem(self, name: str, message: str, hint: str = "") -> None:
        """Record that what an argument says is not read."""
        place = self.place(name) or Place(self.found.source)
        self.found.problems.append(Problem(message, *place, hint=hint))

    def say(self, key: str, value: Scalar, name: str) -> None:
        """Read the fact that an argument stands for, where it is given."""
        if place := self.place(name):
            self.found.read(key, value, place)

    def switch(self, key: str, name: str) -> bool:
        """Read a flag as a fact, which is false where it is not given; its value."""
        is_on = self.flag(name)
        self.say(key, is_on, name)
        self.found.derive(key, False, f"no --{name.replace('_', '-')}")
        return is_on

    def not_modelled(self, name: str, what: str, reason: str = "") -> None:
        """Record what a given argument asks for and no job can say."""
        if place := self.place(name):
            self.found.not_modelled.append(Remark(what, place, reason))

    def refuse(self, name: str, message: str, hint: str = "") -> None:
        """Record that Megatron refuses an argument, as `core_rules.refuse`."""
        place = self.place(name) or Place(self.found.source)
        core_rules.refuse(self.found, place, message, hint)

    def ignore_rest(self, joined: Findings) -> None:
        """Ignore the arguments that nobody asked for."""
        joined.ignored += (
            Remark(argument.flag, argument.place)
            for name, argument in self._given.items()
            if name not in self._used
        )


def name_of(flag: str) -> str:
    """The name of a flag: ``--num-layers`` is ``num_layers``."""
    return flag.lstrip("-").replace("-", "_")


@dataclass(frozen=True)
class Given:
    """The words of a command as arguments."""

    arguments: list[Argument]  # the value of one that may not be given is open
    before: list[Text]  # the words before the first
    anything: list[Text]  # words that may be any arguments, or none


def arguments_of(words: Sequence[Text], either: Either) -> Given:
    """The arguments in the words of a command.

    A word that holds a flag and its value, as people quote them, counts as both.
    """
    found = Given([], [], [])
    values: list[Text] = []
    hidden: list[Argument] = []
    flag: Text | None = None

    def end() -> None:
        if flag is not None:
            found.arguments.append(Argument(flag.text, tuple(values), flag.place))
        found.arguments.extend(hidden)

    for word in _split(words):
        match = _FLAG.match(word.text)
        if match is None or match.end() not in (len(word.text), word.text.find("=")):
            flags, is_value = _hidden(word, either, {})
            if word.text.startswith("--") and word.is_open:
                found.anything.append(word)  # a flag of which the name is not known
            elif flag is None:
                program = any(one.text.endswith(".py") for one in found.before)
                to = found.anything if flags is None and program else found.before
                to.append(word)
            elif flags is None and values:
                found.anything.append(word)
            elif is_value:
                values.append(word)
            hidden += [Argument(name, (word,), word.place) for name in flags or ()]
            continue
        end()
        flag, values, hidden = word.part(0, match.end()), [], []
        if match.end() < len(word.text):
            values = [word.part(match.end() + 1, len(word.text))]
    end()
    return found


# Flags that something may hold, None for any, and whether it may be a value.
_Hidden = tuple[list[str] | None, bool]


def _hidden(word: Text, either: Either, seen: dict[int, _Hidden]) -> _Hidden:
    """What an unknown word may hold; one that is known, or in part, holds no flag."""
    parts = opens(word.text)
    if not parts or known(word.text):
        return [], True
    for part in parts:
        ways = either.of(part.number)
        if part.number not in seen:
            seen[part.number] = [] if ways else None, True  # while it is looked into
            if ways:
                seen[part.number] = _together(_in_ways(ways, either, seen))
    return _together(seen[part.number] for part in parts)


def _in_ways(
    ways: Iterable[Iterable[Text]], either: Either, seen: dict[int, _Hidden]
) -> Iterator[_Hidden]:
    for way in ways:
        for number, word in enumerate(_split(way)):
            if match := _FLAG.match(word.text):
                yield [match[0]], False
            else:
                flags, may_begin = _hidden(word, either, seen)
                yield flags, not number and may_begin


def _together(found: Iterable[_Hidden]) -> _Hidden:
    flags: list[str] = []
    is_value = False
    for inside, may_begin in found:
        if inside is None:
            return None, True
        flags += inside
        is_value = is_value or may_begin
    return list(dict.fromkeys(flags)), is_value


def _split(words: Iterable[Text]) -> Iterator[Text]:
    for word in words:
        if _SPLIT.match(word.text):
            yield from word.words()
        else:
            yield word
