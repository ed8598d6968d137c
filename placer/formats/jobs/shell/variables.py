"""Variables, arguments and functions while a script is followed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

from placer.base.errors import InputError, Problem
from placer.base.naming import entry
from placer.formats.jobs.findings import Asked, Place
from placer.formats.jobs.shell.conditions import HOLDS
from placer.formats.jobs.shell.either import Either, Value, blurred, is_same, numbered
from placer.formats.jobs.shell.expand import Expander
from placer.formats.jobs.shell.outputs import printed
from placer.formats.jobs.shell.text import (
    Text,
    join,
    known,
    renamed,
    roots,
    text_at,
    unknown,
)

if TYPE_CHECKING:
    from placer.formats.jobs.shell.syntax import Assignment, Function

# Text that a script may make in all, and more for each character that it has.
MOST_TEXT, MORE_TEXT = 2 * 1024 * 1024, 8
_KEYED = re.compile(r"\[([^\]]*)\]=")
_MOST_ARGUMENTS = 9
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
        """Another that changes by itself; arrays are shared."""
        return State(
            dict(self.values), list(self.given), dict(self.functions), dict(self.files)
        )

    def is_same(self, other: State) -> bool:
        """Whether all variables have the values that they have in another."""
        return self.values.keys() == other.values.keys() and all(
            is_same(value, other.values[name]) for name, value in self.values.items()
        )


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
        self._own: set[str] = set()  # arrays that no other state has
        self._left = MOST_TEXT

    def value(self, name: str) -> Value | None:
        """The value of a variable; None when neither a setting nor the script says."""
        given = self.asked.setting(name)
        if given is not None:
            return text_at(given, Place(entry("settings", name)))
        if name in self.state.values:
            return self.state.values[name]
        here = Place(self.source)
        number = int(name) if re.fullmatch(r"[1-9][0-9]{0,5}", name) else 0
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

    def assign(self, name: str, value: Text) -> None:
        """Set a variable, unless a setting does; an unknown value takes its name."""
        if not self._is_given(name):
            self.state.values[name] = renamed(value, name)

    def _is_given(self, name: str) -> bool:
        """Whether a setting says what a variable is, which it has from here on."""
        given = self.asked.setting(name)
        if given is not None:
            self.state.values[name] = text_at(given, Place(entry("settings", name)))
        return given is not None

    def default(self, name: str, value: Text) -> None:
        """Set a variable that is not set."""
        if not self._is_given(name):
            self.state.values.setdefault(name, value)

    def arguments(self) -> list[Text]:
        """The positional parameters; of the script, those that settings give."""
        if self.calls or self.state.given:
            return self.state.given
        found = []
        for number in range(1, _MOST_ARGUMENTS + 1):
            given = self.asked.setting(str(number))
            if given is None:
                break
            found.append(text_at(given, Place(entry("settings", str(number)))))
        return found

    def output(self, command: Text, place: Place) -> Text:
        """What a command prints, where that is plain."""
        return printed(command, place, self)

    def is_empty(self, text: str) -> bool | None:
        """Whether a text is empty; None where that is not known."""
        return self.either.is_empty(text)

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
        blank = text_at(" ", Place(self.source))
        found = {}
        for name, value in self.state.values.items():
            if isinstance(value, dict):
                parts = [part for item in value.values() for part in (item, blank)]
                value = join(parts[:-1])
            found[name] = value
        return found

    def kept(self) -> State:
        """The state as it is now, which later commands do not change."""
        self._own.clear()
        self.spend(len(self.state.values))
        return self.state.copy()

    def restore(self, state: State) -> None:
        """Go back to a state that was kept."""
        self._own.clear()
        self.state = state.copy()

    def merge(self, states: Sequence[State], causes: Iterable[str]) -> None:
        """Go on with what one of several states has, as what is not known decides."""
        first, *others = states
        merged = first.copy()
        names = dict.fromkeys(name for state in states for name in state.values)
        self.spend(len(names) * len(states))
        for name in names:
            values = [state.values.get(name) for state in states]
            if not all(is_same(values[0], value) for value in values[1:]):
                merged.values[name] = self.either.join(name, values, causes)
        for state in others:
            merged.functions = state.functions | merged.functions
            for name, text in state.files.items():
                before = merged.files.setdefault(name, text)
                if before.text != text.text:
                    merged.files[name] = unknown(name, text.place, "", causes)
        if len({tuple(word.text for word in state.given) for state in states}) > 1:
            given = self.either.join("@", [numbered(s.given) for s in states], causes)
            merged.given = list(given.values()) if isinstance(given, dict) else []
        self.restore(merged)

    def blur(self, start: State, before: State, causes: Iterable[str]) -> bool:
        """Take what has changed since ``before`` for unknown; whether anything has.

        What stays in front of what was there at the ``start`` is kept.
        """
        after, blurry = self.state, before.copy()
        for name in before.values.keys() | after.values.keys():
            if not is_same(before.values.get(name), after.values.get(name)):
                blurry.values[name] = blurred(
                    name, start.values.get(name), after.values.get(name), causes
                )
        blurry.functions = after.functions | blurry.functions
        blurry.files = after.files | blurry.files
        changed = not blurry.is_same(before)
        self.restore(blurry)
        return changed

    def perform(self, assignment: Assignment) -> None:
        """Make an assignment of the script."""
        name = assignment.name.text
        if isinstance(assignment.value, tuple):
            self._array(name, assignment.value, append=assignment.append)
            return
        value = self.expander.text(assignment.value)
        if not value.text:
            value = text_at("", assignment.name.place)
        values = self.state.values
        if assignment.index is not None:
            index = self.expander.text(assignment.index).text
            if causes := roots(index):
                self.assign(name, unknown(name, assignment.name.place, "", causes))
            elif not (self._is_given(name) or isinstance(values.get(name), Text)):
                self._owned(name)[index] = value
            return
        before = values.get(name) if assignment.append else None
        if isinstance(before, dict):
            array = self._owned(name)
            array["0"] = join([array["0"], value]) if "0" in array else value
        elif before is not None:
            self.spend(len(before.text))
            self.assign(name, join([before, value]))
        else:
            self.assign(name, value)

    def set_array(self, name: str, words: Iterable[Text]) -> None:
        """Set an array, unless a setting does."""
        if not self._is_given(name):
            self.state.values[name] = numbered(words)
            self._own.add(name)

    def _owned(self, name: str) -> dict[str, Text]:
        """The array of a variable, to be changed."""
        value = self.state.values.get(name)
        array = value if isinstance(value, dict) else {}
        if name not in self._own:
            array = dict(array)
            self._own.add(name)
        self.state.values[name] = array
        return array

    def _array(self, name: str, raw: tuple[Text, ...], *, append: bool) -> None:
        """Set an array or add to one, which is not copied."""
        elements: list[tuple[str | None, Text]] = []
        for word in raw:
            if keyed := _KEYED.match(word.text):
                index = known(self.expander.text(word.part(*keyed.span(1))).text)
                # Which element it is may not be known; it is none that is read then.
                rest = word.part(keyed.end(), len(word.text))
                elements.append((index, self.expander.text(rest)))
            else:
                elements += [(None, found) for found in self.expander.words(word)]
        if self._is_given(name):
            return
        before = self.state.values.get(name) if append else None
        if isinstance(before, dict):
            array = self._owned(name)
        else:
            array = {} if before is None else {"0": before}
            self.state.values[name] = array
            self._own.add(name)
        for at, element in elements:
            array[str(len(array)) if at is None else at] = element
