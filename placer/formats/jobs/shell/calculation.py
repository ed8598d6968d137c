"""What ``$(( ))`` computes, and the variables that it sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.formats.jobs.shell.arithmetic import evaluate
from placer.formats.jobs.shell.text import (
    Text,
    filled,
    readable,
    roots,
    text_at,
    unknown,
)

if TYPE_CHECKING:
    from placer.formats.jobs.findings import Place
    from placer.formats.jobs.shell.expand import Variables


def calculated(written: Text, place: Place, variables: Variables) -> Text:
    """The value of an expression; unknown, by what it needs, when a variable is."""
    missing = [written.text] if written.is_open else []
    changes: dict[str, int] = {}
    depth = 0

    def value_of(name: str) -> int:
        nonlocal depth
        if name in changes:
            return changes[name]
        value = variables.value(name)
        if isinstance(value, dict):
            value = value.get("0")
        if value is None or value.is_open:
            missing.append((value or unknown(name, place)).text)
            return 1
        depth += 1
        if depth > 200:
            raise ValueError("variables that stand for each other")
        found = evaluate(value.text, value_of, changes.__setitem__)
        depth -= 1
        return found

    shown = f"$(({readable(written.text).strip()}))"
    unsure: tuple[str, ...] = ()
    number = 0
    try:
        plain = filled(written.text, "1")
        number = evaluate(plain, value_of, changes.__setitem__)
    except (ValueError, RecursionError):
        unsure = (shown,)
    unsure = roots("".join(missing)) or unsure
    for name, change in changes.items():
        value = text_at(str(change), place)
        if unsure:
            value = unknown(name, place, shown, unsure)
        variables.assign(name, value)
    if unsure:
        return unknown(unsure[0], place, shown, unsure)
    return text_at(str(number), place)
