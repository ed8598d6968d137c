"""Variables, arguments and functions while a script is followed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from placer.base.errors import InputError, Problem
from placer.base.naming import entry
from placer.formats.jobs.findings import Asked, Place
from placer.formats.jobs.shell.conditions import HOLDS
from placer.formats.jobs.shell.expand import Expander
from placer.formats.jobs.shell.syntax import Assignment, Function
from placer.formats.jobs.shell.text import (
    Either,
    Text,
    Value,
    blurred,
    elements,
    is_same,
    join,
    known,
    numbered,
    renamed,
    roots,
    text_at,
    unknown,
)

# Text that a script may make in all, and more for each character that it has.
MOST_TEXT, MORE_TEXT = 2 * 1024 * 1024, 8
_KEYED = re.compile(r"\[([^\]]*)\]=")
_NUMBER = re.compile(r"[1-9][0-9]{0,5}")
_MOST_ARGUMENTS, _MOST_DIGITS = 9, 10
# What every shell has, and no script tells.
_EVERYWHERE = (
    "HOME", "HOSTNAME", "HOSTTYPE", "LINENO", "LOGNAME", "MACHTYPE", "OSTYPE",
    "PATH", "PPID", "RANDOM", "SECONDS", "SHELL", "UID", "EUID", "USER", "BASHPID",
    "BASH_VERSION", "EPOCHSECONDS", "$", "!",
)  # fmt: skip


@dataclass
class State:
    """All that commands change, at one moment."""

    values: dict[str, Value] = field(default_factory=dict)  # of the variables
    given: list[Text] = field(default_factory=list)  # the positional parameters
    functions: dict[str, Function] = field(default_factory=dict)
    # That are written, by their names.
    files: dict[str, Text] = field(default_factory=dict)

    def copy(self) -> State:
        """Another that changes by itself."""
        values = {
            name: dict(value) if isinstance(value, dict) else value
            for name, value in self.values.items()
        }
        return State(values, [*self.given], dict(self.functions), dict(self.files))

    def changed(self, other: State) -> list[str]:
        """The variables that do not have the values that they have in another."""
        one, two = self.values, other.values
        names = dict.fromkeys([*one, *two])
        return [name for name in names if not is_same(one.get(name), two.get(name))]


class Environment:
    """What names stand for. Settings count more than what the script assigns."""

    def __init__(self, source: str, asked: Asked, either: Either) -> None:
        self.source = source
        self.asked = asked
        self.either = either
        self.state = State()
        self.calls = 0  # of functions, one in another
        self.status = HOLDS  # of the last command
        self.expander = Expander(self)
        self._left = MOST_TEXT

    def _given(self, name: str) -> Text | None:
        """What a setting says of a variable."""
        text = self.asked.setting(name)
        return None if text is None else text_at(text, Place(entry("settings", name)))

    def value(self, name: str) -> Value | None:
        """The value of a variable; None when neither a setting nor the script says."""
        found = self._given(name) or self.state.values.get(name)
        if found is not None:
            return found
        here = Place(self.source)
        number = int(name) if _NUMBER.fullmatch(name) else 0
        if 0 < number <= len(self.state.given):
            return self.state.given[number - 1]
        if number and self.calls:
            return text_at("", here)
        if name == "?" and self.status.names:
            return unknown("$?", here, "$?", self.status.names)
        if name in _EVERYWHERE:
            return unknown(name, here, f"${name}")
        beside = f"./{PurePath(self.source).name}"
        usual = {
            "#": str(len(self.arguments())),
            "?": "0" if self.status.holds else "1",
            "0": beside,
            "BASH_SOURCE": beside,
            "PWD": ".",
        }.get(name)
        return None if usual is None else text_at(usual, here)

    def assign(self, name: str, value: Value) -> None:
        """Set a variable, unless a setting does; an unknown value takes its name."""
        if isinstance(value, Text):
            value = renamed(value, name)
        self.state.values[name] = self._given(name) or value

    def arguments(self) -> list[Text]:
        """The positional parameters; of the script, those that settings give."""
        if self.calls or self.state.given:
            return self.state.given
        found: list[Text] = []
        for number in range(1, _MOST_ARGUMENTS + 1):
            given = self._given(str(number))
            if given is None:
                break
            found.append(given)
        return found

    def integer(self, text: str) -> int:
        """The integer that a text means; ValueError where that is not known."""
        nowhere = Place("")
        return int(self.expander.number(text_at(text or "0", nowhere), nowhere).text)

    def is_there(self, name: str) -> bool:
        """Whether a file is written by the script, or lies near."""
        is_written = name in self.state.files
        return is_written or self.asked.include(self.source, known(name)) is not None

    def allow(self, length: int) -> None:
        """Let a script of so many characters make its share of text."""
        self._left += MORE_TEXT * length

    def spend(self, size: int) -> None:
        """Count text that is made."""
        self._left -= size
        if self._left < 0:
            message = "the script makes more text than can be followed"
            raise InputError([Problem(message, self.source)])

    def texts(self) -> dict[str, Text]:
        """All variables, of an array its elements with blanks between."""
        return {
            name: join(elements(value).values(), " ")
            for name, value in self.state.values.items()
        }

    def kept(self) -> State:
        """The state as it is now, which later commands do not change."""
        self.spend(sum(len(elements(value)) for value in self.state.values.values()))
        return self.state.copy()

    def restore(self, state: State) -> None:
        """Go back to a state that was kept."""
        self.state = state.copy()

    def merge(self, states: Sequence[State], causes: Iterable[str]) -> None:
        """Go on with what one of several states has, as what is not known decides."""
        first, *others = states
        merged = first.copy()
        names = dict.fromkeys(name for state in states for name in state.values)
        self.spend(len(names) * len(states))
        for name in dict.fromkeys(n for other in others for n in first.changed(other)):
            values = [state.values.get(name) for state in states]
            merged.values[name] = self.either.join(name, values, causes)
        for state in others:
            merged.functions = state.functions | merged.functions
            for name, text in state.files.items():
                if merged.files.setdefault(name, text).text != text.text:
                    merged.files[name] = unknown(name, text.place, "", causes)
        if len({tuple(word.text for word in state.given) for state in states}) > 1:
            given = self.either.join("@", [numbered(s.given) for s in states], causes)
            merged.given = list(elements(given).values())
        self.state = merged

    def blur(self, start: State, before: State, causes: Iterable[str]) -> bool:
        """Take what has changed since ``before`` for unknown; whether anything has.

        What stays in front of what was there at the ``start`` is kept.
        """
        after, blurry = self.state, before.copy()
        for name in before.changed(after):
            values = start.values.get(name), after.values.get(name)
            blurry.values[name] = blurred(name, *values, causes)
        blurry.functions = after.functions | blurry.functions
        blurry.files |= after.files
        self.state = blurry
        files = [{n: text.text for n, text in s.files.items()} for s in (before, after)]
        return bool(blurry.changed(before)) or files[0] != files[1]

    def perform(self, assignment: Assignment) -> None:
        """Make an assignment of the script."""
        name, place = assignment.name.text, assignment.name.place
        if isinstance(assignment.value, tuple):
            self._set_array(name, assignment.value, append=assignment.append)
            return
        value = self.expander.text(assignment.value)
        if not value.text:
            value = text_at("", place)
        before = self.state.values.get(name)
        if assignment.key is not None:
            index = self.expander.text(assignment.key).text
            if causes := roots(index):
                self.assign(name, unknown(name, place, "", causes))
                return
            if isinstance(before, Text) and before.is_open:
                return  # it stays unknown
            is_empty = isinstance(before, Text) and not before.text
            array = {} if is_empty else elements(before)
            array[self.key(index, array)] = value
            self.assign(name, array)
        elif before is None or not assignment.append:
            self.assign(name, value)
        else:
            array = elements(before)
            self.spend(len(array.get("0", value).text))
            value = join([array["0"], value]) if "0" in array else value
            is_array = isinstance(before, dict)
            self.assign(name, array | {"0": value} if is_array else value)

    def key(self, index: str, array: dict[str, Text]) -> str:
        """The key of an element: the integer that it means, else the text as it is."""
        nowhere = Place("")
        number = self.expander.number(text_at(index, nowhere), nowhere).text
        if index in array or not number.removeprefix("-").isdecimal():
            return index
        short = (key for key in array if len(key) < _MOST_DIGITS)
        keys = [int(key) for key in short if key.isdecimal()]
        end = 1 + max(keys, default=-1) if number.startswith("-") else 0
        return str(int(number) + end)

    def _set_array(self, name: str, raw: tuple[Text, ...], *, append: bool) -> None:
        """Set an array or add to one, which is not copied."""
        found: list[tuple[str | None, Text]] = []
        for word in raw:
            if keyed := _KEYED.match(word.text):
                index = known(self.expander.text(word.part(*keyed.span(1))).text)
                # Which element it is may not be known; it is none that is read then.
                rest = word.part(keyed.end(), len(word.text))
                found.append((index, self.expander.text(rest)))
            else:
                found += [(None, one) for one in self.expander.words(word)]
        array = elements(self.state.values.get(name) if append else None)
        for at, element in found:
            array[str(len(array)) if at is None else at] = element
        self.assign(name, array)
