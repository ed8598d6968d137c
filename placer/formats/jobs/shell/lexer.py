"""Where the words of a script end.

Source: POSIX.1-2024, Shell Command Language, section 2; GNU Bash Reference Manual.
"""

from __future__ import annotations

import re
from typing import NoReturn

from placer.base.errors import InputError, Problem
from placer.formats.jobs.shell.text import NOTHING, Text

_PLAIN = re.compile(r"[^\s;&|<>()\"'\\$`]+")
_IN_QUOTES = re.compile(r"[^\"\\$`]+")
_IN_PARENS = re.compile(r"[^()\"'\\$`]+")
_IN_BRACKETS = re.compile(r"[^\]\"'\\$`]+")
_IN_BRACES = re.compile(r"[^}\"'\\$`]+")
_IN_QUOTED_BRACES = re.compile(r"[^}\"\\$`]+")
_BLANK = re.compile(r"(?:[ \t\r\f\v]+|\\\n)+")
_BLANK_LINES = re.compile(r"(?:\s+|\\\n)+")
_COMMENT = re.compile(r"#[^\n]*")
# What people leave to be filled in: <path to data>. A redirection has a blank before
# its second sign.
_PLACEHOLDER = re.compile(r"<(?![<(&=])[^<>\n;|&]*[^<>\s;|&]>")
_OPERATOR = re.compile(
    r"\n|;;&|;;|;&|;|&&|\|\||\|&|\||&>>|&>|&|\(|\)"
    r"|[0-9]*(?:<<<|<<-|<<|<&|<>|<|>>|>&|>\||>)"
)
# What ends an expansion, and what is plain in it; and quotations without any inside.
_NESTED = {
    "$(": (")", _IN_PARENS),
    "${": ("}", _IN_BRACES),
    "$[": ("]", _IN_BRACKETS),
}
_LITERAL = {
    "'": re.compile(r"[^']*+'"),
    "`": re.compile(r"(?:[^`\\]|\\.)*+`", re.DOTALL),
    "$'": re.compile(r"(?:[^'\\]|\\.)*+'", re.DOTALL),
}
_PARAMETER = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
MOST_DEPTH = 40


def refuse_at(text: Text, offset: int, message: str) -> NoReturn:
    """Refuse a script for what stands at an offset."""
    raise InputError([Problem(message, *text.place_at(offset))])


class Lexer:
    """Goes through a script word by word.

    ``at``: offset of what comes next.
    """

    def __init__(self, text: Text) -> None:
        self.text = text
        self.raw = text.text
        self.at = 0
        self._operator = self._peeked = (-1, "")

    @property
    def is_over(self) -> bool:
        """Whether nothing comes next."""
        return self.at >= len(self.raw)

    def peek(self) -> str:
        """The operator or the word that comes next."""
        if sign := self.operator():
            return sign
        if self._peeked[0] != self.at:
            self._peeked = (self.at, self.raw[self.at : self.end_of_word(self.at)])
        return self._peeked[1]

    def skip_blanks(self, *, lines: bool = False) -> None:
        """Go over blanks and comments, and over ends of lines where that is said."""
        blank = _BLANK_LINES if lines else _BLANK
        while True:
            match = blank.match(self.raw, self.at) or _COMMENT.match(self.raw, self.at)
            if match is None:
                return
            self.at = match.end()

    def operator(self) -> str:
        """The operator that comes next; empty when a word does, or nothing."""
        if self._operator[0] != self.at:
            match = _OPERATOR.match(self.raw, self.at)
            sign = "" if match is None or self._is_word(self.at) else match[0]
            self._operator = (self.at, sign)
        return self._operator[1]

    def _is_word(self, at: int) -> bool:
        """Whether ``<( )``, ``>( )`` or ``<path>``, to be filled in, begins here."""
        is_command = self.raw[at : at + 2] in ("<(", ">(")
        return is_command or _PLACEHOLDER.match(self.raw, at) is not None

    def word(self) -> Text:
        """The word that comes next, as it is written; empty when there is none."""
        start = self.at
        self.at = self.end_of_word(start)
        return self.text.part(start, self.at) if self.at > start else NOTHING

    def end_of_word(self, at: int) -> int:
        """Offset behind the word that begins at an offset."""
        raw = self.raw
        while at < len(raw):
            if match := _PLAIN.match(raw, at):
                at = match.end()
            elif raw[at] in "\"'\\$`":
                at = self._past(at, 0)
            elif match := _PLACEHOLDER.match(raw, at):
                at = match.end()
            elif raw[at : at + 2] in ("<(", ">("):
                at = self._end(at + 2, ")", _IN_PARENS, 1, at)
            else:
                break
        return at

    def end_of_parentheses(self, at: int) -> int:
        """Offset behind the parenthesis that closes the one at an offset."""
        return self._end(at + 1, ")", _IN_PARENS, 1, at)

    def end_of_quote(self, at: int) -> int:
        """Offset behind the quotation, escape or expansion that begins at one."""
        raw = self.raw
        if raw[at] == "$" and (match := _PARAMETER.match(raw, at)):
            return match.end()
        return self._past(at, 0)

    def _past(self, at: int, depth: int) -> int:
        """Offset behind the quotation, escape or expansion that begins at one."""
        raw, sign = self.raw, self.raw[at]
        self._check(at, depth)
        if sign == "\\":
            return min(at + 2, len(raw))
        if sign == '"':
            return self._end(at + 1, '"', _IN_QUOTES, depth + 1, at)
        opening = raw[at : at + 2] if sign == "$" else sign
        if plain := _LITERAL.get(opening):
            end = plain.match(raw, at + len(opening))
            if end is None:
                refuse_at(self.text, at, f"{opening[-1]} is not closed")
            return end.end()
        if opening in _NESTED:
            return self._end(at + 2, *_NESTED[opening], depth + 1, at)
        return at + 1

    def _check(self, at: int, depth: int) -> None:
        if depth > MOST_DEPTH:
            refuse_at(self.text, at, f"nested more than {MOST_DEPTH} deep")

    def _end(
        self, at: int, close: str, plain: re.Pattern[str], depth: int, opened: int
    ) -> int:
        """Offset behind the sign that closes what was opened."""
        raw = self.raw
        while at < len(raw):
            if match := plain.match(raw, at):
                at = match.end()
            elif raw[at] == close:
                return at + 1
            elif raw[at] == "(" and close == ")":
                self._check(at, depth)
                at = self._end(at + 1, ")", _IN_PARENS, depth + 1, at)
            elif close == '"' and raw.startswith("${", at):  # ' is a plain sign in it
                self._check(at, depth)
                at = self._end(at + 2, "}", _IN_QUOTED_BRACES, depth + 1, at)
            elif raw[at] in "\"'\\$`":
                at = self._past(at, depth)
            else:
                at += 1
        refuse_at(self.text, opened, f"{raw[opened]} is not closed")
