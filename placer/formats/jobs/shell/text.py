"""Text that knows where its parts stand, and what those may be that are not known."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from placer.formats.jobs.findings import Place, refuse_long

# A part that is not known stands in the text as its name between these, with what else
# is told of it behind. Signs in it are covered, so that no shell reads them.
_OPEN, _CLOSE, _BETWEEN = "\ue000", "\ue001", "\ue002"
_UNKNOWN = re.compile(f"{_OPEN}([^{_CLOSE}]*){_CLOSE}")
_SIGNS = [code for code in range(128) if not chr(code).isalnum()]
_COVER = {code: 0xE100 + code for code in _SIGNS}
_UNCOVER = {covered: code for code, covered in _COVER.items()}
_WORD = re.compile(r"[^ \t\n]+")
_LONGEST = 500_000  # characters of a script
_MOST_NAME, _MOST_CAUSES = 200, 4
_SETTABLE = re.compile(r"[A-Za-z_]\w*|[0-9]")


class Open(NamedTuple):
    """A part of a text that is not known."""

    name: str  # the variable that it is, or the words that make it
    # What gives it a value, in the words of the script: a command, a calculation. Empty
    # where nothing sets the variable, or others decide.
    origin: str = ""
    # Of its alternatives in `placer.formats.jobs.shell.text.Either`; -1 without.
    number: int = -1
    causes: tuple[str, ...] = ()  # what decides its value and is itself not known

    @property
    def is_unset(self) -> bool:
        """Whether it is a variable that nothing sets: empty, in a fresh shell."""
        return not (self.origin or self.causes)


@dataclass(frozen=True, slots=True)
class Text:
    """A text and the places of its parts."""

    text: str
    # Offsets from which on the text stands at the next place, on one line.
    starts: tuple[int, ...]
    places: tuple[Place, ...]

    @property
    def place(self) -> Place:
        """Where it begins."""
        return self.place_at(0)

    def place_at(self, offset: int) -> Place:
        """Where the character at an offset stands."""
        if not self.starts:
            return Place("")
        at = max(0, bisect_right(self.starts, offset) - 1)
        source, line, column = self.places[at]
        return Place(source, line, column + offset - self.starts[at])

    def part(self, start: int, end: int) -> Text:
        """The characters from ``start`` to before ``end``."""
        first = bisect_right(self.starts, start)
        last = bisect_right(self.starts, end - 1, first)
        starts = (0, *(at - start for at in self.starts[first:last]))
        places = (self.place_at(start), *self.places[first:last])
        return Text(self.text[start:end], starts, places)

    @property
    def is_open(self) -> bool:
        """Whether any part of it is not known."""
        return _OPEN in self.text

    def spans(self) -> list[tuple[int, int]]:
        """Where its words begin and end, as blanks divide them."""
        return [match.span() for match in _WORD.finditer(self.text)]

    def words(self) -> Iterator[Text]:
        """Its words."""
        for span in self.spans():
            yield self.part(*span)


NOTHING = Text("", (), ())


def text_of_file(text: str, source: str) -> Text:
    """The text of a file, with its lines and columns."""
    refuse_long(text, source, _LONGEST)
    clean = re.sub(f"[{_OPEN}-{_BETWEEN}\ue100-\ue17f]", "?", text)
    lengths = (len(line) + 1 for line in clean.split("\n"))
    starts = (0, *accumulate(lengths))[:-1]
    places = (Place(source, line, 1) for line in range(1, len(starts) + 1))
    return Text(clean, starts, tuple(places))


def text_at(text: str, place: Place) -> Text:
    """A text that stands at a place as a whole."""
    return Text(text, (0,), (place,))


def unknown(
    name: str,
    place: Place,
    origin: str = "",
    causes: Iterable[str] = (),
    number: int = -1,
) -> Text:
    """A text of which only the name is known, and what `Open` tells of it."""
    told = list(dict.fromkeys(causes))[:_MOST_CAUSES]
    parts = [name]
    if origin or told or number >= 0:
        parts += [origin, str(number), *told]
    return text_at(f"{_OPEN}{_BETWEEN.join(map(_covered, parts))}{_CLOSE}", place)


def _covered(part: str) -> str:
    return re.sub(r"\s", " ", known(readable(part)))[:_MOST_NAME].translate(_COVER)


def renamed(text: Text, name: str) -> Text:
    """A text that is one unknown part and nothing else, as another variable's value."""
    found = opens(text.text)
    if len(found) != 1 or known(text.text):
        return text
    one = found[0]
    return unknown(name, text.place, one.origin, one.causes, one.number)


def join(parts: Iterable[Text], between: str = "") -> Text:
    """The parts one after the other, with something between them."""
    listed = list(parts)
    if between:
        pairs = [(part, text_at(between, part.place)) for part in listed]
        listed = [text for pair in pairs for text in pair][:-1]
    listed = [part for part in listed if part.text]
    if len(listed) < 2:
        return listed[0] if listed else NOTHING
    starts: list[int] = []
    places: list[Place] = []
    length = 0
    for part in listed:
        starts += [length + at for at in part.starts]
        places += part.places
        length += len(part.text)
    return Text("".join(part.text for part in listed), tuple(starts), tuple(places))


def opens(text: str) -> list[Open]:
    """The parts that are not known, each once."""
    if _OPEN not in text:
        return []
    return [_open(inside) for inside in dict.fromkeys(_UNKNOWN.findall(text))]


def _open(inside: str) -> Open:
    name, *rest = inside.translate(_UNCOVER).split(_BETWEEN)
    return Open(name, rest[0], int(rest[1]), tuple(rest[2:])) if rest else Open(name)


def parts_of(text: Text) -> list[Text]:
    """The parts that are not known, each once, as texts."""
    found = {m[0]: text.part(*m.span()) for m in _UNKNOWN.finditer(text.text)}
    return list(found.values())


def open_names(text: str) -> list[str]:
    """Names of the parts that are not known, each once."""
    return list(dict.fromkeys(part.name for part in opens(text)))


def roots(text: str) -> tuple[str, ...]:
    """What must be known before the text is."""
    found = (root for part in opens(text) for root in part.causes or (part.name,))
    return tuple(dict.fromkeys(found))


def is_settable(name: str) -> bool:
    """Whether it is a variable or a parameter, which ``--set`` can give."""
    return _SETTABLE.fullmatch(name) is not None


def known(text: str) -> str:
    """The text without what is not known."""
    return filled(text, "")


def filled(text: str, instead: str) -> str:
    """The text with something else where it is not known."""
    return _UNKNOWN.sub(instead, text) if _OPEN in text else text


def readable(text: str) -> str:
    """The text with unknown parts as a user would write them.

    A variable is ``${X}``, anything else as it is written.
    """

    def shown(match: re.Match[str]) -> str:
        part = _open(match[1])
        variable = f"${{{part.name}}}" if is_settable(part.name) else part.name
        return part.origin or variable

    return _UNKNOWN.sub(shown, text) if _OPEN in text else text


def named(text: str) -> str:
    """The text with its unknown parts as variables of their names."""
    return _UNKNOWN.sub(lambda m: f"${{{_open(m[1]).name}}}", text)


Value = Text | dict[str, Text]  # of a plain variable, and of an array by its keys
Words = Sequence[Text]
_MOST_DEPTH = 12


class Either:
    """The alternatives of unknown parts, each a list of words, by their numbers."""

    def __init__(self) -> None:
        self._alternatives: list[tuple[Words, ...]] = []

    def of(self, number: int) -> tuple[Words, ...]:
        """The alternatives of a number; none where they cannot be told."""
        return self._alternatives[number] if number >= 0 else ()

    def is_one(self, text: str) -> bool:
        """Whether an element of an array is one, and does not stand for several."""
        numbers = [] if known(text) else [part.number for part in opens(text)]
        counts = [{len(way) for way in self.of(number)} for number in numbers]
        return all(count == {1} for count in counts)

    def is_empty(self, text: str, depth: int = 0) -> bool | None:
        """Whether a text is empty; None where that is not known.

        A variable that nothing sets is empty, as in a fresh shell. A command that is
        run for what it prints prints something.
        """
        parts = opens(text)
        if known(text) or any(part.origin for part in parts):
            return False
        found: set[bool | None] = set()
        for part in parts:
            ways = ["".join(w.text for w in way) for way in self.of(part.number)]
            if part.is_unset:
                found.add(True)
            elif not ways or depth > _MOST_DEPTH:
                found.add(None)
            else:
                told = {self.is_empty(way, depth + 1) for way in ways}
                found.add(told.pop() if len(told) == 1 else None)
        return False if False in found else None if None in found else True

    def join(
        self, name: str, values: Sequence[Value | None], causes: Iterable[str]
    ) -> Value:
        """One value for the several that a variable may have; None: it has none.

        What all of them begin and end with stays as it is.
        """
        arrays = [elements(value) for value in values]
        keys = list(dict.fromkeys(key for array in arrays for key in array))
        if not any(isinstance(value, dict) for value in values):
            return self._text(name, [array.get("0") for array in arrays], causes)
        are_numbers = all(key.isdecimal() for key in keys)
        if len({tuple(array) for array in arrays}) == 1 or not are_numbers:
            each = {key: [array.get(key) for array in arrays] for key in keys}
            return {key: self._text(name, each[key], causes) for key in keys}
        lists = [list(array.values()) for array in arrays]
        start, end = _shared(lists)
        middle = self._middle(name, lists, start, end, causes)
        return numbered([*lists[0][:start], middle, *lists[0][len(lists[0]) - end :]])

    def _text(
        self, name: str, texts: Sequence[Text | None], causes: Iterable[str]
    ) -> Text:
        first = next((text for text in texts if text), text_at("", Place("")))
        if all(text and text.text == first.text for text in texts):
            return first
        lists = [list(text.words()) if text else [] for text in texts]
        start, end = _shared(lists)
        longest = max(range(len(lists)), key=lambda at: len(lists[at]))
        text, words = texts[longest], lists[longest]
        if text is None or len(words) == start + end:  # they differ in blanks alone
            return first
        spans = text.spans()
        before = text.part(0, spans[start][0])
        after = text.part(spans[len(spans) - end - 1][1], len(text.text))
        middle = self._middle(name, lists, start, end, causes, words[start].place)
        return join([before, middle, after])

    def _middle(
        self,
        name: str,
        lists: Sequence[Words],
        start: int,
        end: int,
        causes: Iterable[str],
        place: Place | None = None,
    ) -> Text:
        """What stands between what all lists begin and end with."""
        ways = tuple(words[start : len(words) - end] for words in lists)
        self._alternatives.append(ways)
        found = place or next((way[0].place for way in ways if way), Place(""))
        return unknown(name, found, "", causes, len(self._alternatives) - 1)


def blurred(
    name: str, before: Value | None, after: Value | None, causes: Iterable[str]
) -> Value:
    """A value that changes in no known way, but for the words that stay in front."""
    lists = [
        list(value.words() if isinstance(value, Text) else elements(value).values())
        for value in (before, after)
    ]
    kept = lists[0][: _shared(lists)[0]]
    place = next((word.place for words in lists for word in words), Place(""))
    found = [*kept, unknown(name, place, "", causes)]
    is_array = isinstance(before, dict) or isinstance(after, dict)
    return numbered(found) if is_array else join(found, " ")


def is_same(one: Value | None, other: Value | None) -> bool:
    """Whether two values are the same, wherever they stand."""
    if one is other:
        return True
    first, second = elements(one), elements(other)
    if type(one) is not type(other) or len(first) != len(second):
        return False
    pairs = zip(first.items(), second.items(), strict=True)
    return all(a == b and s.text == t.text for (a, s), (b, t) in pairs)


def _shared(lists: Sequence[Words]) -> tuple[int, int]:
    """How many words all lists begin with, and how many more they end with."""
    least = min(len(words) for words in lists)

    def shared(at: Iterable[int]) -> int:
        count = 0
        for index in at:
            if len({words[index].text for words in lists}) > 1:
                break
            count += 1
        return count

    start = shared(range(least))
    return start, shared(range(-1, start - least - 1, -1))


def elements(value: Value | None) -> dict[str, Text]:
    """The elements of an array; of a plain value, itself."""
    return {"0": value} if isinstance(value, Text) else value or {}


def numbered(words: Iterable[Text]) -> dict[str, Text]:
    """Words as the elements of an array."""
    return {str(at): word for at, word in enumerate(words)}
