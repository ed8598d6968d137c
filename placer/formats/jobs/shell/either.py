"""Values of which one of several holds, as what is not known decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from placer.formats.jobs.findings import Place
from placer.formats.jobs.shell.text import Text, join, known, opens, text_at, unknown

Value = Text | dict[str, Text]
Words = Sequence[Text]
_MOST_DEPTH = 12


class Either:
    """The alternatives of unknown parts, each a list of words, by their numbers."""

    def __init__(self) -> None:
        self._alternatives: list[tuple[Words, ...]] = []

    def of(self, number: int) -> tuple[Words, ...]:
        """The alternatives of a number; none where they cannot be told."""
        return self._alternatives[number] if number >= 0 else ()

    def is_empty(self, text: str, depth: int = 0) -> bool | None:
        """Whether a text is empty; None where that is not known.

        A variable that nothing sets is empty, as in a fresh shell. A command that is
        run for what it prints prints something.
        """
        if known(text):
            return False
        is_sure = True
        for part in opens(text):
            if part.origin:
                return False
            found = part.is_unset or self._are_empty(part.number, depth)
            if found is False:
                return False
            is_sure = is_sure and found is True
        return True if is_sure else None

    def _are_empty(self, number: int, depth: int) -> bool | None:
        ways = self.of(number)
        if not ways or depth > _MOST_DEPTH:
            return None
        found = {
            self.is_empty("".join(word.text for word in way), depth + 1) for way in ways
        }
        return found.pop() if len(found) == 1 else None

    def join(
        self, name: str, values: Sequence[Value | None], causes: Iterable[str]
    ) -> Value:
        """One value for the several that a variable may have; None: it has none.

        What all of them begin and end with stays as it is.
        """
        if not any(isinstance(value, dict) for value in values):
            return self._join_texts(name, [_text(value) for value in values], causes)
        arrays = [_array(value) for value in values]
        keys = list(dict.fromkeys(key for array in arrays for key in array))
        lists = [list(array.values()) for array in arrays]
        are_numbers = all(key.isdecimal() for key in keys)
        if len({tuple(array) for array in arrays}) == 1 or not are_numbers:
            return {
                key: self._join_texts(name, [a.get(key) for a in arrays], causes)
                for key in keys
            }
        start, end = _shared(lists)
        middles = [words[start : len(words) - end] for words in lists]
        place = next((words[0].place for words in middles if words), Place(""))
        middle = self._unknown(name, middles, causes, place)
        last = lists[0][len(lists[0]) - end :]
        return numbered([*lists[0][:start], middle, *last])

    def _join_texts(
        self, name: str, texts: Sequence[Text | None], causes: Iterable[str]
    ) -> Text:
        if all(t is not None and texts[0] and t.text == texts[0].text for t in texts):
            return texts[0] or text_at("", Place(""))
        lists = [list(text.words()) if text else [] for text in texts]
        start, end = _shared(lists)
        middles = [words[start : len(words) - end] for words in lists]
        number = max(range(len(lists)), key=lambda at: len(middles[at]))
        text, middle = texts[number], middles[number]
        if text is None or not middle:  # they differ in blanks alone
            return next((t for t in texts if t is not None), text_at("", Place("")))
        spans = text.spans()
        before = text.part(0, spans[start][0])
        after = text.part(spans[len(spans) - end - 1][1], len(text.text))
        unsure = self._unknown(name, middles, causes, middle[0].place)
        return join([before, unsure, after])

    def _unknown(
        self, name: str, ways: Sequence[Words], causes: Iterable[str], place: Place
    ) -> Text:
        number = len(self._alternatives)
        self._alternatives.append(tuple(ways))
        return unknown(name, place, "", causes, number)


def blurred(
    name: str, before: Value | None, after: Value | None, causes: Iterable[str]
) -> Value:
    """A value that changes in no known way, but for the words that stay in front."""
    lists = [_words(before), _words(after)]
    kept = lists[0][: _shared(lists)[0]]
    place = next((word.place for words in lists for word in words), Place(""))
    found = [*kept, unknown(name, place, "", causes)]
    if isinstance(before, dict) or isinstance(after, dict):
        return numbered(found)
    blank = text_at(" ", place)
    return join([part for word in found for part in (word, blank)][:-1])


def is_same(one: Value | None, other: Value | None) -> bool:
    """Whether two values are the same, wherever they stand."""
    if one is other:
        return True
    if isinstance(one, Text) and isinstance(other, Text):
        return one.text == other.text
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(
            a.text == b.text for a, b in zip(one.values(), other.values(), strict=True)
        )
    return False


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


def _text(value: Value | None) -> Text | None:
    return value if isinstance(value, Text) else None


def _array(value: Value | None) -> dict[str, Text]:
    if isinstance(value, Text):
        return {"0": value}
    return value or {}


def _words(value: Value | None) -> list[Text]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value.words()) if value else []


def numbered(words: Iterable[Text]) -> dict[str, Text]:
    """Words as the elements of an array."""
    return {str(at): word for at, word in enumerate(words)}
