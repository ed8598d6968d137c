"""``read`` and ``mapfile``: variables from what a command is given to read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from placer.formats.jobs.shell.conditions import HOLDS, Outcome
from placer.formats.jobs.shell.text import Text, text_at, unknown

if TYPE_CHECKING:
    from placer.formats.jobs.shell.follow import Shell
    from placer.formats.jobs.shell.syntax import Simple

_WITH_VALUE = "pdnNtuicCO"  # options that take a word, but for that of an array
_BLANKS = " \t\n"


def read_words(shell: Shell, node: Simple, words: list[Text]) -> Outcome:
    """Set the variables of ``read``, by a plain here string or to what is not known."""
    names, array = _names(words[1:])
    line = _here_string(shell, node)
    if line is None:
        return _unknown(shell, [*names, *array] or ["REPLY"], words)
    separators = _separators(shell, node)
    parts = _parts(line.split("\n")[0], separators)
    place = words[0].place
    if array:
        shell.environment.set_array(array[0], [text_at(p, place) for p in parts])
        return HOLDS
    for number, name in enumerate(names or ["REPLY"]):
        text = parts[number] if number < len(parts) else ""
        if number == len(names) - 1 and len(parts) > len(names):
            text = (separators or " ")[0].join(parts[number:])
        shell.environment.assign(name, text_at(text, place))
    return HOLDS


def read_array(shell: Shell, node: Simple, words: list[Text]) -> Outcome:
    """Set the array of ``mapfile`` to the lines of a plain here string."""
    names, _ = _names(words[1:])
    name = names[-1] if names else "MAPFILE"
    lines = _here_string(shell, node)
    if lines is None:
        return _unknown(shell, [name], words)
    place = words[0].place
    shell.environment.set_array(name, [text_at(x, place) for x in lines.split("\n")])
    return HOLDS


def _unknown(shell: Shell, names: Sequence[str], words: list[Text]) -> Outcome:
    command = words[0].text
    for name in names:
        value = unknown(name, words[0].place, f"{command} {name}")
        shell.environment.assign(name, value)
    return Outcome(False, (f"{command} {names[0]}",))


def _names(words: Sequence[Text]) -> tuple[list[str], list[str]]:
    """Variables, and that of the option ``-a``."""
    names: list[str] = []
    array: list[str] = []
    option = ""
    for word in words:
        if option == "a":
            array.append(word.text)
        elif not option and re.fullmatch(r"-[A-Za-z]+", word.text):
            option = word.text[-1]
            option = option if option == "a" or option in _WITH_VALUE else ""
            continue
        elif not option and word.text.isidentifier():
            names.append(word.text)
        option = ""
    return names, array


def _here_string(shell: Shell, node: Simple) -> str | None:
    """What ``<<<`` gives; None without one that is known."""
    given = [r.target for r in node.redirections if r.operator == "<<<"]
    if not given:
        return None
    text = shell.expander.text(given[-1])
    return None if text.is_open else text.text


def _separators(shell: Shell, node: Simple) -> str:
    """The signs of ``IFS`` that are no blanks."""
    own = [
        assignment.value
        for assignment in node.assignments
        if assignment.name.text == "IFS" and isinstance(assignment.value, Text)
    ]
    value = shell.expander.text(own[-1]) if own else shell.environment.value("IFS")
    text = value.text if isinstance(value, Text) else ""
    return "".join(sign for sign in text if sign not in _BLANKS)


def _parts(line: str, separators: str) -> list[str]:
    if not separators:
        return line.split()
    return [part.strip() for part in re.split(f"[{re.escape(separators)}]", line)]
