"""JSON text to a tree: strict JSON (RFC 8259), read token by token to keep places."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from placer.base.errors import InputError

if TYPE_CHECKING:
    from placer.documents.tree import Kind, Node, TreeBuilder

_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
      (?P<string>"(?:[^"\\\x00-\x1f]|\\.)*")
    | (?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![\w.]))
    | (?P<word>true|false|null)\b
    | (?P<mark>[][{},:]) )""",
    re.VERBOSE,
)
_SPACE = re.compile(r"[ \t\r\n]*")


def json_tree(text: str, builder: TreeBuilder) -> Node:
    """Tree of the JSON value in ``text``."""
    return _Parser(text, builder).run()


class _Parser:
    """A state machine: what may come next, and which brackets are open."""

    def __init__(self, text: str, builder: TreeBuilder) -> None:
        self.text = text
        self.builder = builder
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self.closers: list[str] = []
        self.expect = "a value"

    def run(self) -> Node:
        position = 0
        while True:
            start = self._skip_space(position)
            if start == len(self.text):
                break
            found = _TOKEN.match(self.text, position)
            if found is None or found.lastgroup is None:
                raise self._error(start)
            self._accept(found.lastgroup, found.group(found.lastgroup), start)
            position = found.end()
        if self.expect != "the end of the file" or self.builder.root is None:
            raise self._error(len(self.text))
        return self.builder.root

    def _accept(self, group: str, lexeme: str, start: int) -> None:
        if group == "mark":
            self._mark(lexeme, start)
            return
        is_key = self.expect.startswith("a key")
        if not (is_key or self.expect.startswith("a value")):
            raise self._error(start)
        if is_key and group != "string":
            raise self._error(start)
        line, column = self._place(start)
        if group == "string":
            self.builder.scalar("text", self._string(lexeme, start), line, column)
        elif group == "number":
            self.builder.scalar("number", lexeme, line, column)
        else:
            kind: Kind = "null" if lexeme == "null" else "boolean"
            self.builder.scalar(kind, lexeme, line, column)
        self._after("a colon" if is_key else "")

    def _mark(self, lexeme: str, start: int) -> None:
        if lexeme in "[{" and self.expect.startswith("a value"):
            kind: Kind = "list" if lexeme == "[" else "mapping"
            self.builder.begin(kind, *self._place(start))
            closer = "]" if lexeme == "[" else "}"
            self.closers.append(closer)
            self.expect = ("a value" if lexeme == "[" else "a key") + f' or "{closer}"'
        elif lexeme in "]}" and self._may_close(lexeme):
            self.closers.pop()
            self.builder.end()
            self._after("")
        elif lexeme == ":" and self.expect == "a colon":
            self.expect = "a value"
        elif lexeme == "," and self.expect.startswith("a comma"):
            self.expect = "a value" if self.closers[-1] == "]" else "a key"
        else:
            raise self._error(start)

    def _may_close(self, lexeme: str) -> bool:
        return self.expect.endswith(f'or "{lexeme}"')

    def _after(self, expect: str) -> None:
        """Set what follows a complete value (or ``expect``, after a key)."""
        if not expect:
            closer = self.closers[-1] if self.closers else ""
            expect = f'a comma or "{closer}"' if closer else "the end of the file"
        self.expect = expect

    def _string(self, lexeme: str, start: int) -> str:
        try:
            value: str = json.loads(lexeme)
        except ValueError:
            line, column = self._place(start)
            message = "not JSON: invalid escape in a string"
            raise self.builder.error(message, line, column) from None
        return value

    def _skip_space(self, position: int) -> int:
        found = _SPACE.match(self.text, position)
        return found.end() if found else position

    def _place(self, position: int) -> tuple[int, int]:
        line = bisect_right(self.starts, position)
        return line, position - self.starts[line - 1] + 1

    def _error(self, position: int) -> InputError:
        found = self.text[position : position + 1]
        got = f'"{found}"' if found.isprintable() and found else "a control character"
        got = got if position < len(self.text) else "the end of the file"
        message = f"not JSON: expected {self.expect}, got {got}"
        return self.builder.error(message, *self._place(position))
