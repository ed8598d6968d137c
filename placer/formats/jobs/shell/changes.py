"""What ``${X%pattern}``, ``${X/from/to}`` and their like make of a value.

Source: GNU Bash Reference Manual, Shell Parameter Expansion.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate
from typing import TYPE_CHECKING

from placer.formats.jobs.shell.text import Text, known, opens, roots, text_at, unknown

if TYPE_CHECKING:
    from placer.formats.jobs.findings import Place

Expand = Callable[[Text], Text]
_MOST_PATTERN = 200


def changed(
    value: Text, rest: Text, written: str, place: Place, expand: Expand
) -> Text:
    """``${X%pattern}`` and its like, and ``${X^^}``."""
    if value.is_open:
        if not known(value.text) and all(o.is_unset for o in opens(value.text)):
            return value
        return unknown(written, place, "", roots(value.text))
    text, operation = value.text, rest.text
    not_followed = unknown(written, place, written)
    if operation in ("^^", ",,"):
        return text_at(text.upper() if operation == "^^" else text.lower(), place)
    removal = re.match(r"##?|%%?", operation)
    if removal:
        pattern = expand(rest.part(removal.end(), len(operation)))
        if pattern.is_open:
            return unknown(written, place, "", roots(pattern.text))
        return _removed(value, removal[0], pattern.text) or not_followed
    if operation.startswith("/"):
        return _replaced(value, rest, place, expand) or not_followed
    part = re.fullmatch(r":\s*(-?\d{1,9})(?::\s*(\d{1,9}))?", operation)
    if part:
        start = int(part[1])
        start = max(start + len(text), 0) if start < 0 else start
        end = start + int(part[2]) if part[2] else len(text)
        return text_at(text[start:end], place)
    return not_followed


def _removed(value: Text, sign: str, pattern: str) -> Text | None:
    """The value without the shortest or longest match at one end."""
    if len(pattern) > _MOST_PATTERN or len(value.text) > 10_000:
        return None
    text, whole = value.text, re.compile(translate(pattern))
    if pattern.count("*") > 4:
        return None
    ends = range(len(text) + 1)
    if sign[0] == "#":
        tried = ends if sign == "#" else reversed(ends)
        fits = next((n for n in tried if whole.match(text[:n])), None)
        return value if fits is None else value.part(fits, len(text))
    tried = reversed(ends) if sign == "%" else iter(ends)
    fits = next((n for n in tried if whole.match(text[n:])), None)
    return value if fits is None else value.part(0, fits)


def _replaced(value: Text, rest: Text, place: Place, expand: Expand) -> Text | None:
    """``${X/from/to}``, of plain texts."""
    every = rest.text.startswith("//")
    body = rest.text[2 if every else 1 :]
    wanted, _, instead = body.partition("/")
    if re.search(r"[*?\[\\]", wanted) or not wanted:
        return None
    old = expand(text_at(wanted, place)).text
    new = expand(text_at(instead, place)).text
    if (
        not old
        or roots(old + new)
        or len(new) * (value.text.count(old) + 1) > 1_000_000
    ):
        return None
    return text_at(value.text.replace(old, new, -1 if every else 1), place)
