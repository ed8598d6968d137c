"""Words as bash would pass them on: expansions made, quotation marks removed.

Source: GNU Bash Reference Manual, Shell Expansions. File names are not expanded, and of
braces those that hold plain words.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from placer.formats.jobs.findings import Place
from placer.formats.jobs.shell.arithmetic import calculated
from placer.formats.jobs.shell.outputs import changed, printed, unbraced
from placer.formats.jobs.shell.syntax import Lexer
from placer.formats.jobs.shell.text import (
    NOTHING,
    Text,
    elements,
    join,
    known,
    numbered,
    opens,
    readable,
    roots,
    text_at,
    unknown,
)

if TYPE_CHECKING:
    from placer.formats.jobs.shell.variables import Environment

_EXPANDED = re.compile(r"[\"'\\$`<]")
_PLAIN = re.compile(r"[^\"'\\$`]+")
_PLAIN_QUOTED = re.compile(r"[^\"\\$`]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]|[@*#?$!-]")
_BRACED = re.compile(
    r"(?P<sign>[#!]?)(?P<name>[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])"
    r"(?:\[(?P<index>[^\]]*)\])?(?P<rest>[\s\S]*)",
)
_ELEMENTS = re.compile(r"\$(?:@|\{(?:@|[A-Za-z_]\w*\[@\])\})")
_DEFAULT = re.compile(r":?[-=+?]")
_SLICE = re.compile(r":\s*([0-9]{1,6})(?::\s*([0-9]{1,6}))?")
_PLACEHOLDER = re.compile(r"<[^<>]*>")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_ALL = ("@", "*")
_MOST_DEPTH = 40

# A piece of a word, and whether it is quoted: blanks in another divide the word. None
# stands between the elements of an array.
Piece = tuple[Text, bool] | None


class Expander:
    """Expands words with the variables of a script."""

    def __init__(self, variables: Environment) -> None:
        self.variables = variables
        self._depth = 0

    def words(self, raw: Text) -> list[Text]:
        """The words that one written word becomes: none, one or many."""
        if "{" in raw.text and (several := unbraced(raw)):
            self.variables.spend(sum(len(one.text) + 1 for one in several))
            return [word for one in several for word in self.words(one)]
        if not _EXPANDED.search(raw.text):
            return [raw]
        found = _divided(self._pieces(raw, quoted=False), raw.place)
        self.variables.spend(sum(len(word.text) + 1 for word in found))
        return found

    def text(self, raw: Text, *, quoted: bool = False) -> Text:
        """One text, as an assignment or a here document has it."""
        if not _EXPANDED.search(raw.text):
            return raw
        blank = text_at(" ", raw.place)
        pieces = self._pieces(raw, quoted)
        found = join(piece[0] if piece else blank for piece in pieces)
        self.variables.spend(len(found.text) + 1)
        return found

    def number(self, expression: Text, place: Place) -> Text:
        """What ``$(( ))`` computes; unknown when a variable of it is."""
        written = self.text(expression, quoted=True)
        return calculated(written, place, self.variables)

    def _pieces(
        self, raw: Text, quoted: bool, *, divides: bool = False
    ) -> Iterator[Piece]:
        """The pieces of a written word, or of what stands in quotation marks.

        ``divides``: plain blanks divide words, as in the default of an expansion.
        """
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            self.variables.spend(1 << 40)
        text, at, lexer = raw.text, 0, Lexer(raw)
        plain = _PLAIN_QUOTED if quoted else _PLAIN
        while at < len(text):
            sign, start = text[at], at
            if match := plain.match(text, start):
                at = match.end()
                piece = raw.part(start, at)
                yield piece if quoted else _filled_in(piece), not divides
            elif sign == '"' and quoted:  # of a here document
                at += 1
                yield raw.part(start, at), True
            else:
                at = lexer.end_of_quote(start)
                if sign == "'":
                    yield raw.part(start + 1, at - 1), True
                elif sign == "\\":
                    if (piece := _escaped(raw.part(start, at), quoted)).text:
                        yield piece, True
                elif sign == '"':
                    yield from self._quoted(raw.part(start + 1, at - 1))
                else:
                    yield from self._expansion(raw.part(start, at), quoted)
        self._depth -= 1

    def _quoted(self, inside: Text) -> Iterator[Piece]:
        """What stands in quotation marks: a word, even if empty."""
        if not _ELEMENTS.fullmatch(inside.text):  # of none, no word
            yield text_at("", inside.place), True
        yield from self._pieces(inside, True)

    def _expansion(self, written: Text, quoted: bool) -> Iterator[Piece]:
        """What ``$...`` or a command in backquotes stands for."""
        text, place, end = written.text, written.place, len(written.text)
        if text[0] == "`":
            inside = re.sub(r"\\([`$\\])", r"\1", text[1:-1])
            yield printed(text_at(inside, place), place, self.variables), quoted
        elif text.startswith("$((") and text.endswith("))"):
            yield self.number(written.part(3, end - 2), place), quoted
        elif text.startswith("$["):  # as it was written before $(( ))
            yield self.number(written.part(2, end - 1), place), quoted
        elif text.startswith("$("):
            yield printed(written.part(2, end - 1), place, self.variables), quoted
        elif text.startswith("${"):
            yield from self._braced(written.part(2, end - 1), place, quoted)
        elif text.startswith("$'"):
            made = re.sub(r"(?s)\\(.)", lambda m: _ESCAPES.get(m[1], m[0]), text[2:-1])
            yield text_at(made, place), True
        elif end > 1:
            values = self._values(text[1:], None, place)
            yield from _apart(values, text[1:], place, quoted)
        else:
            yield written, True

    def _values(self, name: str, index: str | None, place: Place) -> list[Text]:
        """The value of a parameter, or its elements; unknown when nobody sets it."""
        if name in _ALL:
            return self.variables.arguments()
        value = self.variables.value(name)
        if value is None:
            return [unknown(name, place)]
        if index in _ALL:
            return list(elements(value).values())
        array = elements(value)
        written = self.text(text_at(index or "0", place)).text
        key = self.variables.key(written, array)
        unsure = written
        if not roots(written) and all(other.isdecimal() for other in array):
            before = itertools.takewhile(lambda other: other != key, array)
            texts = [array[other].text for other in before]
            is_one = self.variables.either.is_one
            unsure += "".join(text for text in texts if not is_one(text))
            if array and not key.isdecimal():
                unsure += self.number(text_at(key, place), place).text
        if causes := roots(unsure):
            return [unknown(f"{name}[{readable(written)}]", place, "", causes)]
        return [array.get(key, text_at("", place))]

    def _braced(self, inside: Text, place: Place, quoted: bool) -> Iterator[Piece]:
        """What ``${...}`` stands for."""
        match = _BRACED.fullmatch(inside.text)
        written = f"${{{inside.text}}}"
        if match is None:
            yield unknown(written, place, written), quoted
            return
        name, index = match["name"], match["index"]
        rest = inside.part(*match.span("rest"))
        every = next((sign for sign in (index, name) if sign in _ALL), None)
        if match["sign"] == "#":
            yield self._length(name, index, place), quoted
        elif match["sign"] and index in _ALL:
            keys = elements(self.variables.value(name))
            yield from _apart([text_at(k, place) for k in keys], every, place, quoted)
        elif match["sign"]:
            yield from self._indirect(name, rest, place, quoted)
        elif default := _DEFAULT.match(rest.text):
            word = rest.part(default.end(), len(rest.text))
            yield from self._default(default[0], name, index, word, place, quoted)
        else:
            found = self._values(name, index, place)
            if every and rest.text.startswith(":"):
                found = _sliced(found, rest.text, written, place, name)
            elif rest.text:
                found = [changed(v, rest, written, place, self.text) for v in found]
            yield from _apart(found, every, place, quoted)

    def _indirect(
        self, name: str, rest: Text, place: Place, quoted: bool
    ) -> Iterator[Piece]:
        """``${!X}``: the variable that another names."""
        target = self.variables.value(name)
        if isinstance(target, Text) and _NAME.fullmatch(target.text):
            inside = join([text_at(target.text, place), rest])
            yield from self._braced(inside, place, quoted)
            return
        causes = roots(target.text) if isinstance(target, Text) else (name,)
        yield unknown(f"!{name}", place, f"${{!{name}}}", causes), quoted

    def _default(
        self,
        sign: str,
        name: str,
        index: str | None,
        word: Text,
        place: Place,
        quoted: bool,
    ) -> Iterator[Piece]:
        """``${X:-word}`` and its like."""
        value = self.variables.value(name)
        if name in _ALL:
            value = numbered(self.variables.arguments())
        is_set: bool | None = bool(value)
        if isinstance(value, Text) and ":" in sign:
            is_empty = self.variables.either.is_empty(value.text)
            is_set = None if is_empty is None else not is_empty
        kind = sign[-1]
        if is_set is None and isinstance(value, Text):
            yield unknown(name, place, "", roots(value.text)), quoted
        elif is_set and kind != "+":
            found = self._values(name, index, place)
            yield from _apart(found, index or name, place, quoted)
        elif kind == "?":
            yield unknown(name, place), quoted
        elif is_set or kind != "+":
            if kind == "=":
                self.variables.assign(name, self.text(word, quoted=quoted))
            yield from self._pieces(word, quoted, divides=not quoted)

    def _length(self, name: str, index: str | None, place: Place) -> Text:
        is_all = name in _ALL or index in _ALL
        found = self._values(name, index, place)
        if index in _ALL and self.variables.value(name) is None:
            found = []
        unsure = [v.text for v in found if v.is_open]
        if is_all:  # an unknown element may stand for several
            unsure = [text for text in unsure if not known(text) and opens(text)]
        if unsure:
            return unknown(name, place, f"${{#{name}}}", roots("".join(unsure)))
        return text_at(str(len(found) if is_all else len(found[0].text)), place)


def _divided(pieces: Iterable[Piece], place: Place) -> list[Text]:
    """The words that pieces make; a quoted one makes a word even if empty."""
    words: list[list[Text]] = []
    goes_on = False  # whether the last word may
    for piece in pieces:
        if piece is None:
            goes_on = False
            continue
        text, quoted = piece
        goes_on = goes_on and (quoted or not text.text[:1].isspace())
        for number, part in enumerate([text] if quoted else text.words()):
            if not goes_on or number:
                words.append([])
            words[-1].append(part)
            goes_on = True
        goes_on = goes_on and (quoted or not text.text[-1:].isspace())
    joined = (join(parts) for parts in words)
    return [word if word.text else text_at("", place) for word in joined]


def _apart(
    found: list[Text], sign: str | None, place: Place, quoted: bool
) -> Iterator[Piece]:
    """One piece for each; in quotation marks ``*`` joins them."""
    for number, text in enumerate(found):
        if number:
            is_word = sign == "@" or not quoted
            yield None if is_word else (text_at(" ", place), quoted)
        yield text, quoted


def _sliced(
    found: list[Text], operation: str, written: str, place: Place, name: str
) -> list[Text]:
    """``${X[@]:1:2}``."""
    match = _SLICE.fullmatch(operation)
    if match is None or any(text.is_open for text in found):
        return [unknown(written, place, written)]
    start = int(match[1]) - (name in _ALL)
    end = start + int(match[2]) if match[2] else len(found)
    return found[max(start, 0) : max(end, 0)]


def _filled_in(text: Text) -> Text:
    """What is left to be filled in, ``<path>``, is not known."""
    match = _PLACEHOLDER.search(text.text)
    if match is None:
        return text
    before, after = text.part(0, match.start()), text.part(match.end(), len(text.text))
    return join(
        [before, unknown(match[0], text.place_at(match.start()), match[0]), after]
    )


def _escaped(written: Text, quoted: bool) -> Text:
    """What a backslash and a sign stand for; nothing where a line goes on."""
    following = written.text[1:]
    if following == "\n":
        return NOTHING
    kept = quoted and following not in ("$", "`", '"', "\\")
    return written if kept else written.part(1, 2)
