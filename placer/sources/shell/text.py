"""Text that knows where each part of it stands, and which part is not known."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from placer.sources.findings import Place, refuse_long

# A part that is not known stands in the text as its name between these.
_OPEN, _CLOSE = "\ue000", "\ue001"
_UNKNOWN = re.compile(f"{_OPEN}([^{_CLOSE}]*){_CLOSE}")
_WORD = re.compile(r"[^ \t\n]+")
_LONGEST = 500_000  # characters of a script
# Blanks in the name of an unknown part must not divide words.
_BLANK, _NO_BREAK = re.compile(r"\s"), "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True)
class Text:
    """A text and the places of its parts.

    Attributes
    ----------
    text : str
    starts : tuple of int
        Offsets from which on the text stands at the next place, on one line.
    places : tuple of Place
    """

    text: str
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
        source, line, column = self.places[first - 1] if first else Place("")
        column += start - (self.starts[first - 1] if first else 0)
        place = Place(source, line, column)
        if first >= last:
            return Text(self.text[start:end], (0,), (place,))
        starts = (0, *(at - start for at in self.starts[first:last]))
        return Text(self.text[start:end], starts, (place, *self.places[first:last]))

    @property
    def is_open(self) -> bool:
        """Whether any part of it is not known."""
        return _OPEN in self.text

    def words(self) -> Iterator[Text]:
        """Its words, as blanks divide them."""
        for match in _WORD.finditer(self.text):
            yield self.part(*match.span())


def text_of_file(text: str, source: str) -> Text:
    """The text of a file, with its lines and columns.

    Raises
    ------
    InputError
        If it is longer than any script.
    """
    refuse_long(text, source, _LONGEST)
    clean = text.replace(_OPEN, "?").replace(_CLOSE, "?")
    lengths = (len(line) + 1 for line in clean.split("\n"))
    starts = (0, *accumulate(lengths))[:-1]
    places = (Place(source, line, 1) for line in range(1, len(starts) + 1))
    return Text(clean, starts, tuple(places))


def text_at(text: str, place: Place) -> Text:
    """A text that stands at a place as a whole."""
    return Text(text, (0,), (place,))


NOTHING = Text("", (), ())


def unknown(name: str, place: Place) -> Text:
    """A text of which only the name is known."""
    clean = _BLANK.sub(_NO_BREAK, known(readable(name)))
    return text_at(f"{_OPEN}{clean[:200]}{_CLOSE}", place)


def join(parts: Iterable[Text]) -> Text:
    """The parts one after the other."""
    listed = [part for part in parts if part.text]
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


def open_names(text: str) -> list[str]:
    """Names of the parts that are not known, each once."""
    names = (name.replace(_NO_BREAK, " ") for name in _UNKNOWN.findall(text))
    return list(dict.fromkeys(names))


def known(text: str) -> str:
    """The text as it is when nobody sets what is not known."""
    return _UNKNOWN.sub("", text) if _OPEN in text else text


def readable(text: str) -> str:
    """The text with unknown parts as a user would write them."""
    return _UNKNOWN.sub(lambda m: _shown(m[1].replace(_NO_BREAK, " ")), text)


def _shown(name: str) -> str:
    """A variable as ``${X}``, anything else as it is written."""
    return f"${{{name}}}" if name.isidentifier() or name.isdecimal() else name
