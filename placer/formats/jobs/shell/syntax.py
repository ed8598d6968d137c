"""What a script consists of, and where its words end; these are kept as written.

Source: POSIX.1-2024, Shell Command Language, section 2; GNU Bash Reference Manual.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from placer.base.errors import InputError, Problem
from placer.formats.jobs.shell.text import NOTHING, Text


class Assignment(NamedTuple):
    """``NAME=value``, ``NAME+=value``, ``NAME[index]=value`` or ``NAME=(values)``."""

    name: Text
    value: Text | tuple[Text, ...]
    key: Text | None = None  # of one element
    append: bool = False


@dataclass(slots=True)
class Redirection:
    """``> word``, ``< word`` or a here document."""

    operator: str
    target: Text
    document: Text | None = None
    is_quoted: bool = False  # the end mark, so that the document is not expanded


@dataclass(slots=True)
class Simple:
    """Assignments, words and redirections of one command."""

    assignments: list[Assignment] = field(default_factory=list)
    words: list[Text] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)


class Condition(NamedTuple):
    """``[[ ... ]]``: words, and operators as they are."""

    tokens: tuple[Text, ...]


class Arithmetic(NamedTuple):
    """``(( ... ))``."""

    expression: Text


class Chain(NamedTuple):
    """Commands, and what stands before each: ``&&``, ``||``, ``|``, ``!``, nothing."""

    links: tuple[tuple[str, Node], ...]


class Choice(NamedTuple):
    """``if``; an ``elif`` is a choice in what is done otherwise."""

    condition: tuple[Node, ...]
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


class Case(NamedTuple):
    """``case``: patterns with what is done."""

    word: Text
    branches: tuple[tuple[tuple[Text, ...], tuple[Node, ...]], ...]


class Loop(NamedTuple):
    """``for`` over words (None: the arguments), or while a condition holds.

    ``select`` is a menu: the user takes one of the words.
    """

    body: tuple[Node, ...]
    condition: tuple[Node, ...] = ()
    step: tuple[Node, ...] = ()  # what ends each pass
    name: Text | None = None
    words: tuple[Text, ...] | None = None
    is_menu: bool = False


class Group(NamedTuple):
    """``{ ...; }`` or ``( ... )``, which changes no variables outside."""

    body: tuple[Node, ...]
    is_inner: bool = False


class Function(NamedTuple):
    """``name() { ... }``."""

    name: str
    body: Node


Node = Simple | Condition | Arithmetic | Chain | Choice | Case | Loop | Group | Function


_PLAIN = re.compile(r"[^\s;&|<>()\"'\\$`]+")
_SPECIAL = "\"'\\$`"
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
# What opens and closes what may have others inside, with what is plain there; braces in
# quotation marks have no quotations of one sign.
_NESTED = {
    '"': ('"', re.compile(r"[^\"\\$`]+")),
    "(": (")", re.compile(r"[^()\"'\\$`]+")),
    "$(": (")", re.compile(r"[^()\"'\\$`]+")),
    "${": ("}", re.compile(r"[^}\"'\\$`]+")),
    "$[": ("]", re.compile(r"[^\]\"'\\$`]+")),
    '"${': ("}", re.compile(r"[^}\"\\$`]+")),
}
# Quotations without any inside.
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

    @property
    def is_over(self) -> bool:
        """Whether nothing comes next."""
        return self.at >= len(self.raw)

    def peek(self) -> str:
        """The operator or the word that comes next."""
        return self.operator() or self.raw[self.at : self.end_of_word(self.at)]

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
        raw, at = self.raw, self.at
        match = _OPERATOR.match(raw, at)
        # A word begins with ``<( )``, ``>( )`` or ``<path>``, to be filled in.
        is_word = raw[at : at + 2] in ("<(", ">(") or _PLACEHOLDER.match(raw, at)
        return "" if match is None or is_word else match[0]

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
            elif raw[at] in _SPECIAL:
                at = self._past(at, 0)
            elif match := _PLACEHOLDER.match(raw, at):
                at = match.end()
            elif raw[at : at + 2] in ("<(", ">("):
                at = self._end("(", at, at + 2, 1)
            else:
                break
        return at

    def end_of_parentheses(self, at: int) -> int:
        """Offset behind the parenthesis that closes the one at an offset."""
        return self._end("(", at, at + 1, 1)

    def end_of_quote(self, at: int) -> int:
        """Offset behind the quotation, escape or expansion that begins at one."""
        if match := _PARAMETER.match(self.raw, at):
            return match.end()
        return self._past(at, 0)

    def _past(self, at: int, depth: int) -> int:
        """Offset behind the quotation, escape or expansion that begins at one."""
        raw = self.raw
        self._check(at, depth)
        if raw[at] == "\\":
            return min(at + 2, len(raw))
        opening = raw[at : at + 2] if raw[at] == "$" else raw[at]
        if plain := _LITERAL.get(opening):
            end = plain.match(raw, at + len(opening))
            if end is None:
                refuse_at(self.text, at, f"{opening[-1]} is not closed")
            return end.end()
        if opening in _NESTED:
            return self._end(opening, at, at + len(opening), depth + 1)
        return at + 1

    def _check(self, at: int, depth: int) -> None:
        if depth > MOST_DEPTH:
            refuse_at(self.text, at, f"nested more than {MOST_DEPTH} deep")

    def _end(self, opening: str, start: int, at: int, depth: int) -> int:
        """Offset behind the sign that closes what was opened at ``start``."""
        raw, (close, plain) = self.raw, _NESTED[opening]
        self._check(start, depth - 1)
        while at < len(raw):
            if match := plain.match(raw, at):
                at = match.end()
            elif raw[at] == close:
                return at + 1
            elif raw[at] == "(" and close == ")":
                at = self._end("(", at, at + 1, depth + 1)
            elif close == '"' and raw.startswith("${", at):
                at = self._end('"${', at, at + 2, depth + 1)
            elif raw[at] in _SPECIAL:
                at = self._past(at, depth)
            else:
                at += 1
        refuse_at(self.text, start, f"{raw[start]} is not closed")
