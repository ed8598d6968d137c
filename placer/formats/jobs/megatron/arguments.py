"""The arguments of a training program, by name, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from placer.base.errors import Problem
from placer.base.naming import named
from placer.documents.scalars import visible
from placer.formats.jobs import mcore_rules
from placer.formats.jobs.findings import Findings, Place, Remark, Scalar
from placer.formats.jobs.settings import Setting, Settings, plain_value
from placer.formats.jobs.shell import Text
from placer.formats.jobs.shell.questions import ask, unknown_value
from placer.formats.jobs.shell.text import Either, known, opens

_FLAG = re.compile(r"--[A-Za-z][\w-]*")
_SPLIT = re.compile(r"--[A-Za-z][\w-]*\s+\S")
_LIST = re.compile(r"[\[\]()',\"\s]+")
_OFF = ("false", "0", "no")


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


class Arguments(Settings):
    """The flags of a command as settings, by name, with ``_`` for ``-``.

    The last of a name counts, and of its words the first, unless they make a list.

    ``found``: takes what is wrong with a value, and questions for open ones.
    ``program``: name of the file that is started.
    """

    def __init__(
        self, found: Findings, given: Iterable[Argument], program: str = ""
    ) -> None:
        self.program = program
        self._given = {name_of(argument.flag): argument for argument in given}
        self._asked: set[str] = set()
        settings = {name: _setting(one) for name, one in self._given.items()}
        super().__init__(found, settings)

    def join(self, joined: Findings) -> None:
        """Let what is wrong from now on go to the joined findings."""
        self.found = joined

    def ask(self, key: str, fact: str = "") -> None:
        """Ask for what the value of a flag needs; once for all that need it."""
        if key in self._asked:
            return
        self._asked.add(key)
        argument = self._given[key]
        if text := next((value for value in argument.values if value.is_open), None):
            ask(self.found, fact, argument.flag, text)
        else:  # words of a template that nobody filled in
            words = f"{argument.flag} is {self.unknown(key)}, which nothing sets"
            usual = named("settings", {f"job.{fact}": "VALUE"}) if fact else ""
            self.found.ask(
                fact, words, usual or "write its value in the file", self.place(key)
            )

    def flag(self, *keys: str, fact: str = "") -> bool | None:
        """Whether a flag is given, and not as false; None where it is not given."""
        got = self._told(keys, fact)
        return None if got is None else str(got[1]).lower() not in _OFF

    def text(self, *keys: str) -> str:
        """The first word behind a flag, however long; empty where there is none."""
        value = self.value(*keys)
        return "" if value is None or value is True else str(value)

    def words(self, name: str) -> tuple[Text, ...]:
        """All words behind a flag, known or not; none where it is not given."""
        return self._given[name].values if self.get(name) else ()

    def texts(self, *keys: str) -> list[str]:
        """All words behind a flag, those of a printed list each by itself."""
        got = self._told(keys)
        joined = " ".join(word.text for word in self.words(got[0])) if got else ""
        return [item for item in _LIST.split(joined) if item]

    def say(self, fact: str, value: Scalar, *keys: str) -> None:
        """Read the fact that a flag stands for, where it is given."""
        if self.get(*keys):
            self.found.read(fact, value, self.place(*keys))

    def wrong(self, key: str, what: str) -> None:
        """Record that what stands behind a flag should be something else."""
        if self._given[key].values:
            super().wrong(key, what)
        else:
            self.refuse(key, f"expected {what} behind it")

    def refuse(self, key: str, message: str, hint: str = "") -> None:
        """Record that what a flag says is not read."""
        flag = self._given[key].flag if key in self._given else ""
        self.add(Problem(message, *self.place(key), flag, hint))

    def forbid(self, name: str, message: str, hint: str = "") -> None:
        """Record that Megatron refuses a flag; nothing while any value is asked for."""
        if not self.found.unsure:
            words, place = mcore_rules.REFUSES + message, self.place(name)
            self.found.problems.append(Problem(words, *place, hint=hint))

    def ignore_rest(self, joined: Findings) -> None:
        """Ignore the flags that nobody asked for; a note has one that may be a slip."""
        missed = self.known - self._given.keys()
        for name, argument in self._given.items():
            if name in self.known:
                continue
            joined.ignored.append(Remark(argument.flag, argument.place))
            for near in get_close_matches(name, missed, n=1, cutoff=0.9):
                meant = f"--{near.replace('_', '-')}"
                flag = f"{visible(argument.flag)} ({argument.place})"
                joined.notes.append(f"{flag} is not read: did you mean {meant}?")


def _setting(argument: Argument) -> Setting:
    """The first word behind a flag as its value, true where none is behind it."""
    place = argument.value_place
    if open_ := next((text for text in argument.values if text.is_open), None):
        return Setting(unknown_value(open_), place)
    if not argument.values:
        return Setting(True, place)
    text = argument.values[0].text.strip("'\"")
    value = plain_value(text)  # argparse takes 5e8 for no integer
    return Setting(text if isinstance(value, float) else value, place)


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
