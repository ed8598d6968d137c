"""Pieces of words, and the words that they make."""

from __future__ import annotations

from placer.formats.jobs.shell.text import Text, join, text_at


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
