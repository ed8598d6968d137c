"""Variables, arguments and functions while a script is followed."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from placer.errors import InputError, Problem
from placer.sources.findings import Asked, Place
from placer.sources.shell.expand import Expander, Value
from placer.sources.shell.outputs import printed
from placer.sources.shell.text import Text, join, known, open_names, text_at, unknown

if TYPE_CHECKING:
    from placer.sources.shell.syntax import Assignment

# Text that a script may make in all, and more for each character that it has.
MOST_TEXT, MORE_TEXT = 2 * 1024 * 1024, 8
_KEYED = re.compile(r"\[([^\]]*)\]=")


class Environment:
    """What names stand for. Settings count more than what the script assigns."""

    def __init__(self, source: str, asked: Asked) -> None:
        self.source = source
        self.asked = asked
        self.given: list[Text] = []
        self.calls = 0  # of functions, one in another
        self.expander = Expander(self)
        self._values: dict[str, Value] = {}
        self._left = MOST_TEXT

    def value(self, name: str) -> Value | None:
        """The value of a variable; None when neither a setting nor the script says."""
        given = self.asked.setting(name)
        if given is not None:
            return text_at(given, Place(f"--set {name}"))
        if name in self._values:
            return self._values[name]
        number = int(name) if re.fullmatch(r"[1-9][0-9]{0,5}", name) else 0
        if 0 < number <= len(self.given):
            return self.given[number - 1]
        if number and self.calls:
            return text_at("", Place(self.source))
        beside = f"./{PurePath(self.source).name}"
        usual = {
            "#": str(len(self.given)),
            "?": "0",
            "0": beside,
            "BASH_SOURCE": beside,
            "PWD": ".",
        }.get(name)
        return None if usual is None else text_at(usual, Place(self.source))

    def assign(self, name: str, value: Text) -> None:
        """Set a variable, unless a setting does; an unknown value takes its name."""
        if self.asked.setting(name) is None:
            if len(open_names(value.text)) == 1 and not known(value.text):
                value = unknown(name, value.place)
            self._values[name] = value

    def default(self, name: str, value: Text) -> None:
        """Set a variable that is not set."""
        self._values.setdefault(name, value)

    def drop(self, name: str) -> None:
        """Unset a variable."""
        self._values.pop(name, None)

    def arguments(self) -> list[Text]:
        """The positional parameters."""
        return self.given

    def output(self, command: Text, place: Place) -> Text:
        """What a command prints, where that is plain."""
        return printed(command, place, self.expander)

    def allow(self, length: int) -> None:
        """Let a script of so many characters make its share of text."""
        self._left += MORE_TEXT * length

    def spend(self, size: int) -> None:
        """Count text that is made.

        Raises
        ------
        InputError
            If it is too much.
        """
        self._left -= size
        if self._left < 0:
            message = "the script makes more text than can be followed"
            raise InputError([Problem(message, self.source)])

    def texts(self) -> dict[str, Text]:
        """All variables, of an array its elements with blanks between."""
        blank = text_at(" ", Place(self.source))
        found = {}
        for name, value in self._values.items():
            if isinstance(value, dict):
                parts = [part for item in value.values() for part in (item, blank)]
                value = join(parts[:-1])
            found[name] = value
        return found

    def perform(self, assignment: Assignment) -> None:
        """Make an assignment of the script."""
        name = assignment.name.text
        if isinstance(assignment.value, tuple):
            self._array(name, assignment.value, append=assignment.append)
            return
        value = self.expander.text(assignment.value)
        if not value.text:
            value = text_at("", assignment.name.place)
        if assignment.index is not None:
            index = known(self.expander.text(assignment.index).text)
            array = self._values.setdefault(name, {})
            if isinstance(array, dict):
                array[index] = value
            return
        before = self._values.get(name) if assignment.append else None
        if isinstance(before, dict):
            before["0"] = join([before["0"], value]) if "0" in before else value
        elif before is not None:
            self.spend(len(before.text))
            self.assign(name, join([before, value]))
        else:
            self.assign(name, value)

    def _array(self, name: str, raw: tuple[Text, ...], *, append: bool) -> None:
        """Set an array or add to one, which is not copied."""
        elements: list[tuple[str | None, Text]] = []
        for word in raw:
            if keyed := _KEYED.match(word.text):
                index = known(self.expander.text(word.part(*keyed.span(1))).text)
                rest = word.part(keyed.end(), len(word.text))
                elements.append((index, self.expander.text(rest)))
            else:
                elements += [(None, found) for found in self.expander.words(word)]
        if self.asked.setting(name) is not None:
            return
        before = self._values.get(name) if append else None
        array = before if isinstance(before, dict) else {}
        if isinstance(before, Text):
            array["0"] = before
        for at, element in elements:
            array[str(len(array)) if at is None else at] = element
        self._values[name] = array
