"""JSON text to values: strict JSON (RFC 8259), read token by token to keep places."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from placer.base.errors import InputError

if TYPE_CHECKING:
    from placer.documents.builder import Builder
    from placer.documents.scalars import Kind

_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
      (?P<text>"(?:[^"\\\x00-\x1f]|\\.)*")
    | (?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![\w.]))
    | (?P<boolean>true|false)\b
    | (?P<null>null)\b
    | (?P<mark>[][{},:]) | (?P<end>\Z) )""",
    re.VERBOSE,
)
_SPACE = re.compile(r"[ \t\r\n]*")
_VALUES = ("text", "number", "boolean", "null", "[", "{")


def read_json(text: str, builder: Builder) -> None:
    """Give the JSON value in ``text`` to a builder."""
    reader = _Reader(text, builder)
    reader.value("a value")
    reader.take("the end of the file", "end")


class _Reader:
    """Takes one token after the other."""

    def __init__(self, text: str, builder: Builder) -> None:
        self.text = text
        self.builder = builder
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self.start = self.end = 0  # of the last token

    def take(self, expect: str, *wanted: str) -> tuple[Any, str]:
        """Kind and text of the next token; a mark is its own kind."""
        space = _SPACE.match(self.text, self.end)
        self.start = space.end() if space else self.end
        found = _TOKEN.match(self.text, self.start)
        kind = found.lastgroup if found else ""
        lexeme = found[kind] if found and kind else ""
        kind = lexeme if kind == "mark" else kind
        if found is None or kind not in wanted:
            raise self._unlike(expect)
        self.end = found.end()
        return kind, lexeme

    def value(self, expect: str, closer: str = "") -> bool:
        """Read a value; false where the list that it would be in ends instead."""
        kind, lexeme = self.take(expect, *_VALUES, closer)
        if kind == closer:
            return False
        if kind in ("[", "{"):
            self.builder.begin("list" if kind == "[" else "mapping", *self._place())
            self._items() if kind == "[" else self._entries()
            self.builder.end()
        else:
            self._scalar(kind, lexeme)
        return True

    def _items(self) -> None:
        expect, closer = 'a value or "]"', "]"
        while self.value(expect, closer):
            if self.take('a comma or "]"', ",", "]")[0] == "]":
                return
            expect, closer = "a value", ""

    def _entries(self) -> None:
        kind, lexeme = self.take('a key or "}"', "text", "}")
        while kind != "}":
            self._scalar("text", lexeme)
            self.take("a colon", ":")
            self.value("a value")
            if self.take('a comma or "}"', ",", "}")[0] == "}":
                return
            kind, lexeme = self.take("a key", "text")

    def _scalar(self, kind: Kind, lexeme: str) -> None:
        place = self._place()
        if kind == "text":
            try:
                lexeme = json.loads(lexeme)
            except ValueError:
                message = "not JSON: invalid escape in a string"
                raise self.builder.error(message, *place) from None
        self.builder.scalar(kind, lexeme, *place)

    def _place(self) -> tuple[int, int]:
        line = bisect_right(self.starts, self.start)
        return line, self.start - self.starts[line - 1] + 1

    def _unlike(self, expect: str) -> InputError:
        found = self.text[self.start : self.start + 1]
        got = f'"{found}"' if found.isprintable() and found else "a control character"
        got = got if self.start < len(self.text) else "the end of the file"
        return self.builder.error(
            f"not JSON: expected {expect}, got {got}", *self._place()
        )
