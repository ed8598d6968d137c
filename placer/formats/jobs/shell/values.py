"""Values of which one of several holds, as what is not known decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from placer.formats.jobs.findings import Place
from placer.formats.jobs.shell.text import Text, join, known, opens, text_at, unknown

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
