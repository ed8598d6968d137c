"""Changes of a parameter's value, and the words that braces make.

Source: GNU Bash Reference Manual, Brace Expansion and Shell Parameter Expansion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import translate

from placer.formats.jobs.findings import Place
from placer.formats.jobs.shell.text import (
    Text,
    join,
    known,
    opens,
    roots,
    text_at,
    unknown,
)

_BRACES = re.compile(
    r"\{(?:(?P<first>-?[0-9]{1,6})\.\.(?P<last>-?[0-9]{1,6})(?:\.\.(?P<step>-?[0-9]{1,6}))?"
    r"|(?P<words>[^{}\s\"'\\$`<>]*,[^{}\s\"'\\$`<>]*))\}"
)
_QUOTES = re.compile(r"[\"'\\$`<]")
_OPERATION = re.compile(
    r"(?P<case>\^\^|,,)|(?P<end>##?|%%?)(?P<pattern>[\s\S]*)"
    r"|(?:/(?![#%])|//)(?P<old>[^*?\[\\/]+)(?:/(?P<new>[\s\S]*))?"
    r"|:\s*(?P<start>-?\d{1,9})(?::\s*(?P<length>\d{1,9}))?"
)
_MOST_BRACED, _MOST_PATTERN, _MOST_STARS = 10_000, 200, 4
_MOST_CUT, _MOST_REPLACED = 10_000, 1_000_000  # characters


def unbraced(raw: Text) -> list[Text]:
    """The words that the first braces make; none where they are not plain."""
    match = _BRACES.search(raw.text)
    if match is None or _QUOTES.search(raw.text):
        return []
    before, after = raw.part(0, match.start()), raw.part(match.end(), len(raw.text))
    place = raw.place_at(match.start())
    inside = list(_inside(match))
    if len(inside) > _MOST_BRACED:
        return []
    return [join([before, text_at(word, place), after]) for word in inside]


def _inside(match: re.Match[str]) -> Iterable[str]:
    if match["words"] is not None:
        return match["words"].split(",")
    first, last = int(match["first"]), int(match["last"])
    step = abs(int(match["step"] or 1)) or 1
    padded = any(re.match(r"-?0[0-9]", match[end]) for end in ("first", "last"))
    width = max(len(match["first"]), len(match["last"])) if padded else 0
    sign = 1 if last >= first else -1
    return (f"{n:0{width}d}" for n in range(first, last + sign, sign * step))


def changed(
    value: Text,
    operation: Text,
    written: str,
    place: Place,
    expand: Callable[[Text], Text],
) -> Text:
    """What ``${X%pattern}``, ``${X/old/new}``, ``${X:1:2}`` or ``${X^^}`` makes."""
    if value.is_open:
        if not known(value.text) and all(o.is_unset for o in opens(value.text)):
            return value
        return unknown(written, place, "", roots(value.text))
    match = _OPERATION.fullmatch(operation.text)
    not_followed = unknown(written, place, written)
    text = value.text
    if match is None:
        return not_followed
    if match["case"]:
        return text_at(text.upper() if match["case"] == "^^" else text.lower(), place)
    if match["end"]:
        pattern = expand(operation.part(*match.span("pattern")))
        if pattern.is_open:
            return unknown(written, place, "", roots(pattern.text))
        return _cut(value, match["end"], pattern.text) or not_followed
    if match["old"]:
        times = -1 if operation.text.startswith("//") else 1
        old, new = (
            expand(text_at(match[end] or "", place)).text for end in ("old", "new")
        )
        size = len(new) * (text.count(old) + 1) if old else 0
        if not old or roots(old + new) or size > _MOST_REPLACED:
            return not_followed
        return text_at(text.replace(old, new, times), place)
    start = int(match["start"])
    start = max(start + len(text), 0) if start < 0 else start
    end = start + int(match["length"]) if match["length"] else len(text)
    return text_at(text[start:end], place)


def _cut(value: Text, sign: str, pattern: str) -> Text | None:
    """The value without the shortest or longest match at one end."""
    text = value.text
    is_long = len(pattern) > _MOST_PATTERN or len(text) > _MOST_CUT
    if is_long or pattern.count("*") > _MOST_STARS:
        return None
    whole, is_start = re.compile(translate(pattern)), sign[0] == "#"
    at: Iterable[int] = range(len(text) + 1)
    if is_start != (len(sign) == 1):  # the longest start, the shortest end
        at = reversed(range(len(text) + 1))
    fits = (n for n in at if whole.match(text[:n] if is_start else text[n:]))
    found = next(fits, 0 if is_start else len(text))
    return value.part(found, len(text)) if is_start else value.part(0, found)
