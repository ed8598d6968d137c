"""Pieces of words, braces and changes in them, and the words that they make.

Source: GNU Bash Reference Manual, Brace Expansion and Shell Parameter Expansion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fnmatch import translate
from typing import TYPE_CHECKING

from placer.formats.jobs.shell.text import (
    Text,
    join,
    known,
    opens,
    roots,
    text_at,
    unknown,
)

if TYPE_CHECKING:
    from placer.formats.jobs.findings import Place


_BRACES = re.compile(
    r"\{(?:(?P<first>-?[0-9]{1,6})\.\.(?P<last>-?[0-9]{1,6})(?:\.\.(?P<step>-?[0-9]{1,6}))?"
    r"|(?P<words>[^{}\s\"'\\$`<>]*,[^{}\s\"'\\$`<>]*))\}"
)
_QUOTES = re.compile(r"[\"'\\$`<]")
_MOST_BRACED = 10_000
Expand = Callable[[Text], Text]
_MOST_PATTERN = 200


class Part:
    """A piece of a word: a text, and whether blanks in it divide the word."""

    __slots__ = ("quoted", "text")

    def __init__(self, text: Text, quoted: bool) -> None:
        self.text = text
        self.quoted = quoted


class Words:
    """Words while their pieces come in; a quoted one makes a word even if empty."""

    def __init__(self) -> None:
        self._done: list[list[Text]] = []
        self._pieces: list[Text] = []
        self._started = False

    def add(self, piece: Text) -> None:
        """Go on with the word."""
        self._pieces.append(piece)
        self._started = True

    def end(self) -> None:
        """End the word, if one has begun."""
        if self._started:
            self._done.append(self._pieces)
        self._pieces, self._started = [], False

    def divide(self, text: Text) -> None:
        """Go on with a text whose blanks end words."""
        if text.text[:1].isspace():
            self.end()
        for number, word in enumerate(text.words()):
            if number:
                self.end()
            self.add(word)
        if text.text[-1:].isspace():
            self.end()

    def found(self, raw: Text) -> list[Text]:
        """All words."""
        self.end()
        empty = text_at("", raw.place)
        return [
            join(pieces) if any(p.text for p in pieces) else empty
            for pieces in self._done
        ]


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


def _inside(match: re.Match[str]) -> Iterator[str]:
    if match["words"] is not None:
        yield from match["words"].split(",")
        return
    first, last = int(match["first"]), int(match["last"])
    step = abs(int(match["step"] or 1)) or 1
    padded = any(re.match(r"-?0[0-9]", match[end]) for end in ("first", "last"))
    width = max(len(match["first"]), len(match["last"])) if padded else 0
    sign = 1 if last >= first else -1
    for number in range(first, last + sign, sign * step):
        yield f"{number:0{width}d}"


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
