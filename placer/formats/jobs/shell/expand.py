"""Words as bash would pass them on: expansions made, quotation marks removed.

Source: GNU Bash Reference Manual, Shell Expansions. File names are not expanded, and of
braces those that hold plain words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from placer.formats.jobs.shell.arithmetic import calculated
from placer.formats.jobs.shell.lexer import Lexer
from placer.formats.jobs.shell.pieces import Part, Words, changed, unbraced
from placer.formats.jobs.shell.text import (
    Text,
    join,
    known,
    opens,
    readable,
    roots,
    text_at,
    unknown,
)

if TYPE_CHECKING:
    from placer.formats.jobs.findings import Place
    from placer.formats.jobs.shell.either import Value
    from placer.formats.jobs.shell.variables import Environment

_PLAIN = re.compile(r"[^\"'\\$`]+")
_PLAIN_QUOTED = re.compile(r"[^\"\\$`]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]|[@*#?$!-]")
_BRACED = re.compile(
    r"(?P<sign>[#!]?)(?P<name>[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])"
    r"(?:\[(?P<index>[^\]]*)\])?(?P<rest>[\s\S]*)",
)
_ELEMENTS = re.compile(r"\$(?:@|\{(?:@|[A-Za-z_]\w*\[@\])\})")
_DEFAULT = re.compile(r"(:?[-=+?])")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_ALL = ("@", "*")
_MOST_DEPTH = 40


_BREAK = object()  # between the elements of an array


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
        if not any(sign in raw.text for sign in "\"'\\$`<"):
            return [raw]
        words = Words()
        for part in self._parts(raw, quoted=False):
            if not isinstance(part, Part):
                words.end()
            elif part.quoted:
                words.add(part.text)
            else:
                words.divide(part.text)
        found = words.found(raw)
        self.variables.spend(sum(len(word.text) + 1 for word in found))
        return found

    def text(self, raw: Text, *, quoted: bool = False) -> Text:
        """One text, as an assignment or a here document has it."""
        if not any(sign in raw.text for sign in "\"'\\$`<"):
            return raw
        blank = text_at(" ", raw.place)
        parts = self._parts(raw, quoted)
        found = join(part.text if isinstance(part, Part) else blank for part in parts)
        self.variables.spend(len(found.text) + 1)
        return found

    def _parts(
        self, raw: Text, quoted: bool, *, divides: bool = False
    ) -> Iterator[Part | object]:
        """The pieces of a written word, or of what stands in quotation marks.

        ``divides``: plain blanks divide words, as in the default of an expansion.
        """
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            self.variables.spend(1 << 40)
        text, at, lexer = raw.text, 0, Lexer(raw)
        plain = _PLAIN_QUOTED if quoted else _PLAIN
        while at < len(text):
            sign = text[at]
            if match := plain.match(text, at):
                piece = self._placeholder(raw.part(at, match.end()), quoted)
                yield Part(piece, not divides)
                at = match.end()
            elif sign == "\\":
                yield from self._escape(raw, at, quoted)
                at += 2
            elif sign == "'":
                end = lexer.end_of_quote(at)
                yield Part(raw.part(at + 1, end - 1), True)
                at = end
            elif sign == '"' and quoted:  # of a here document
                yield Part(raw.part(at, at + 1), True)
                at += 1
            elif sign == '"':
                end = lexer.end_of_quote(at)
                inside = raw.part(at + 1, end - 1)
                empty = not _ELEMENTS.fullmatch(inside.text)  # of none, no word
                for part in self._parts(inside, True):
                    empty = False
                    yield part
                if empty:
                    yield Part(text_at("", raw.place_at(at)), True)
                at = end
            else:
                end = lexer.end_of_quote(at)
                yield from self._expansion(raw, at, end, quoted)
                at = end
        self._depth -= 1

    def _placeholder(self, text: Text, quoted: bool) -> Text:
        """What is left to be filled in, ``<path>``, is not known."""
        if quoted or "<" not in text.text:
            return text
        match = re.search(r"<[^<>]*>", text.text)
        if match is None:
            return text
        before, after = (
            text.part(0, match.start()),
            text.part(match.end(), len(text.text)),
        )
        unsure = unknown(match[0], text.place_at(match.start()), match[0])
        return join([before, unsure, after])

    def _escape(self, raw: Text, at: int, quoted: bool) -> Iterator[Part]:
        following = raw.text[at + 1 : at + 2]
        if following == "\n":
            return
        if quoted and following not in ("$", "`", '"', "\\"):
            yield Part(raw.part(at, at + 2), True)
        elif following:
            yield Part(raw.part(at + 1, at + 2), True)

    def _expansion(
        self, raw: Text, at: int, end: int, quoted: bool
    ) -> Iterator[Part | object]:
        """What ``$...`` or a command in backquotes stands for."""
        text, place = raw.text, raw.place_at(at)
        if text[at] == "`":
            inside = re.sub(r"\\([`$\\])", r"\1", text[at + 1 : end - 1])
            command = text_at(inside, place)
            yield Part(self.variables.output(command, place), quoted)
        elif text.startswith("$((", at) and text[end - 2 : end] == "))":
            yield Part(self.number(raw.part(at + 3, end - 2), place), quoted)
        elif text.startswith("$[", at):  # as it was written before $(( ))
            yield Part(self.number(raw.part(at + 2, end - 1), place), quoted)
        elif text.startswith("$(", at):
            command = raw.part(at + 2, end - 1)
            yield Part(self.variables.output(command, place), quoted)
        elif text.startswith("${", at):
            yield from self._braced(raw.part(at + 2, end - 1), place, quoted)
        elif text.startswith("$'", at):
            yield Part(text_at(_unescaped(text[at + 2 : end - 1]), place), True)
        elif end - at > 1:
            yield from self._parameter(text[at + 1 : end], None, place, quoted)
        else:
            yield Part(raw.part(at, end), True)

    def _parameter(
        self, name: str, index: str | None, place: Place, quoted: bool
    ) -> Iterator[Part | object]:
        """The value of a parameter: one part, or one for each element."""
        if name in _ALL:
            elements: list[Text] = self.variables.arguments()
        else:
            value = self.variables.value(name)
            if not isinstance(value, dict) or index not in _ALL:
                yield Part(self._element(name, value, index, place), quoted)
                return
            elements = list(value.values())
        yield from self._elements(elements, index or name, place, quoted)

    def _elements(
        self, elements: list[Text], index: str, place: Place, quoted: bool
    ) -> Iterator[Part | object]:
        """One part for each; in quotation marks ``*`` joins them."""
        apart = index == "@" or not quoted
        for number, element in enumerate(elements):
            if number:
                yield _BREAK if apart else Part(text_at(" ", place), quoted)
            yield Part(element, quoted)

    def _element(
        self, name: str, value: Value | None, index: str | None, place: Place
    ) -> Text:
        """One value; unknown when nobody sets it."""
        if value is None:
            return unknown(name, place)
        if not isinstance(value, dict):
            return value if index in (None, "0", *_ALL) else text_at("", place)
        written = self.text(text_at(index or "0", place)).text
        if causes := roots(written):
            return unknown(f"{name}[{readable(written)}]", place, "", causes)
        wanted = self._index(written)
        return value.get(wanted, text_at("", place))

    def _index(self, found: str) -> str:
        if re.fullmatch(r"[A-Za-z_]\w*", found):
            value = self.variables.value(found)
            if isinstance(value, Text) and value.text.isdigit():
                return value.text
        return found

    def _braced(
        self, inside: Text, place: Place, quoted: bool
    ) -> Iterator[Part | object]:
        """What ``${...}`` stands for."""
        match = _BRACED.fullmatch(inside.text)
        written = f"${{{inside.text}}}"
        if match is None:
            yield Part(unknown(written, place, written), quoted)
            return
        sign, name, index = match["sign"], match["name"], match["index"]
        rest = inside.part(*match.span("rest"))
        if sign == "#":
            yield Part(self._length(name, index, place), quoted)
        elif sign == "!" and index in _ALL:
            yield from self._elements(self._keys(name, place), index, place, quoted)
        elif sign == "!":
            yield from self._indirect(name, rest, place, quoted)
        elif not rest.text:
            yield from self._parameter(name, index, place, quoted)
        elif default := _DEFAULT.match(rest.text):
            word = rest.part(default.end(), len(rest.text))
            yield from self._default(default[1], name, index, word, place, quoted)
        elif index in _ALL or name in _ALL:
            yield from self._slice(written, name, index, rest, place, quoted)
        else:
            value = self._element(name, self.variables.value(name), index, place)
            yield Part(changed(value, rest, written, place, self.text), quoted)

    def _indirect(
        self, name: str, rest: Text, place: Place, quoted: bool
    ) -> Iterator[Part | object]:
        """``${!X}``: the variable that another names."""
        target = self.variables.value(name)
        if isinstance(target, Text) and _NAME.fullmatch(target.text):
            inside = join([text_at(target.text, place), rest])
            yield from self._braced(inside, place, quoted)
            return
        causes = roots(target.text) if isinstance(target, Text) else (name,)
        yield Part(unknown(f"!{name}", place, f"${{!{name}}}", causes), quoted)

    def _keys(self, name: str, place: Place) -> list[Text]:
        value = self.variables.value(name)
        if isinstance(value, dict):
            return [text_at(key, place) for key in value]
        return [] if value is None else [text_at("0", place)]

    def _slice(
        self,
        written: str,
        name: str,
        index: str | None,
        rest: Text,
        place: Place,
        quoted: bool,
    ) -> Iterator[Part | object]:
        """``${X[@]:1:2}``; any other change of all elements, one by one."""
        if name in _ALL:
            elements = self.variables.arguments()
        else:
            value = self.variables.value(name)
            elements = list(value.values()) if isinstance(value, dict) else []
            if value is None or isinstance(value, Text):
                elements = [self._element(name, value, None, place)]
        count = re.fullmatch(r":\s*([0-9]{1,6})(?::\s*([0-9]{1,6}))?", rest.text)
        if rest.text.startswith(":"):
            if count is None or any(e.is_open for e in elements):
                yield Part(unknown(written, place, written), quoted)
                return
            start = int(count[1]) - (name in _ALL)
            end = start + int(count[2]) if count[2] else len(elements)
            elements = elements[max(start, 0) : max(end, 0)]
        else:
            elements = [
                changed(element, rest, written, place, self.text)
                for element in elements
            ]
        yield from self._elements(elements, index or name, place, quoted)

    def _default(
        self,
        sign: str,
        name: str,
        index: str | None,
        word: Text,
        place: Place,
        quoted: bool,
    ) -> Iterator[Part | object]:
        """``${X:-word}`` and its like."""
        value = self.variables.value(name)
        is_set: bool | None
        if name in _ALL:
            is_set = bool(self.variables.arguments())
        elif isinstance(value, dict):
            is_set = bool(value)
        elif value is None or ":" not in sign:
            is_set = value is not None
        else:
            is_empty = self.variables.is_empty(value.text)
            is_set = None if is_empty is None else not is_empty
        if is_set is None and isinstance(value, Text):
            yield Part(unknown(name, place, "", roots(value.text)), quoted)
        elif sign[-1] == "+":
            if is_set:
                yield from self._parts(word, quoted, divides=not quoted)
        elif is_set:
            yield from self._parameter(name, index, place, quoted)
        elif sign[-1] == "?":
            yield Part(unknown(name, place), quoted)
        else:
            if sign[-1] == "=":
                self.variables.assign(name, self.text(word, quoted=quoted))
            yield from self._parts(word, quoted, divides=not quoted)

    def _length(self, name: str, index: str | None, place: Place) -> Text:
        value = self.variables.value(name)
        if name in _ALL or index in _ALL:
            elements = self.variables.arguments() if name in _ALL else _listed(value)
            # An unknown element may stand for several.
            unsure = [e.text for e in elements if not known(e.text) and opens(e.text)]
            if not unsure:
                return text_at(str(len(elements)), place)
        else:
            text = self._element(name, value, index, place)
            if not text.is_open:
                return text_at(str(len(text.text)), place)
            unsure = [text.text]
        return unknown(name, place, f"${{#{name}}}", roots("".join(unsure)))

    def number(self, expression: Text, place: Place) -> Text:
        """What ``$(( ))`` computes; unknown when a variable of it is."""
        written = self.text(expression, quoted=True)
        return calculated(written, place, self.variables)


def _listed(value: Value | None) -> list[Text]:
    if isinstance(value, dict):
        return list(value.values())
    return [] if value is None else [value]


def _unescaped(text: str) -> str:
    r"""``$'...'`` with its escapes made."""
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[0]), text, flags=re.DOTALL)
