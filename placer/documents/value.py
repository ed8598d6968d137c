"""A value of a file under its path, to be read as the type that a schema asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from placer.base.errors import InputError, Problem
from placer.documents.builder import Path
from placer.documents.scalars import (
    BOOLEANS,
    CONTROL,
    Boolean,
    Kind,
    kind_of,
    raw,
    shown,
    visible,
)

if TYPE_CHECKING:
    from placer.documents.document import Document
    from placer.documents.section import Section

_WHOLE = r"(?:0|[1-9][0-9]*(?:_[0-9]+)*)"
_PART = r"[0-9]+(?:_[0-9]+)*"
_DECIMAL = re.compile(rf"[-+]?{_WHOLE}")
_REAL = re.compile(
    rf"[-+]?(?:{_WHOLE}(?:\.(?:{_PART})?)?|\.{_PART})(?:[eE][-+]?[0-9]+)?"
)

Made = TypeVar("Made")

# Elements of a list: twice the nodes of the largest machine.
MAX_ITEMS = 1 << 18


class Value:
    """A value at a path, to be read as one type or another."""

    __slots__ = ("content", "document", "path")

    def __init__(self, document: Document, content: Any, path: Path) -> None:
        self.document = document
        self.content = content
        self.path = path

    @property
    def kind(self) -> Kind:
        """Kind of the value: text, number, boolean, null, list or mapping."""
        return kind_of(self.content)

    @property
    def key(self) -> str:
        """Its path as messages show it."""
        return key_text(self.path)

    @property
    def place(self) -> Problem:
        """Where it is, as a problem without a message."""
        line, column = self.document.place(self.path)
        return Problem("", self.document.source, line, column, self.key)

    def at(self, *keys: str) -> Value | None:
        """The value under a path of keys; None when there is none.

        A null counts as none, and so does the text ``null`` that printed answers of
        cloud tools hold.
        """
        content = self.content
        for key in keys:
            content = content.get(key) if isinstance(content, dict) else None
            if content is None or content == "null":
                return None
        return Value(self.document, content, (*self.path, *keys))

    def name(self, *keys: str, required: bool = False, longest: int = 1000) -> str:
        """The name under a path of keys; empty when there is none.

        A name is a text on one line, or a bare number of YAML as it is written. Any
        other value is a problem, and so is none at all when it is ``required``.
        """
        value = self.at(*keys)
        if value is None:
            if required:
                self.problem(f'the key "{".".join(keys)}" is missing')
            return ""
        text = value.content
        if not isinstance(text, str) or isinstance(text, Boolean) or not text.strip():
            kind = "null" if text == "" else value.kind
            got = "nothing" if kind == "null" else f"a {kind}"
            value.problem(f"expected a text, got {got}")
        elif CONTROL.search(text) or len(text) > longest:
            value.problem(f'"{visible(text)}" is no name')
        else:
            return str(text)
        return ""

    def names(self, *keys: str) -> list[str]:
        """The names in the list under a path of keys; none when there is no list."""
        return [item.name() for item in self.listed(*keys)]

    def listed(self, *keys: str) -> list[Value]:
        """The elements of the list under a path of keys; none when there is none."""
        value = self.at(*keys)
        return value.items() if value else []

    def problem(self, message: str, hint: str = "") -> None:
        """Record a problem at this value."""
        self.document.problem(message, self.path, hint)

    def made(
        self, make: Callable[..., Made], *given: Any, default: Made, hint: str = ""
    ) -> Made:
        """What a function makes of something; what is wrong with that is recorded."""
        try:
            return make(*given)
        except InputError as error:
            for problem in error.problems:
                self.problem(problem.message, problem.hint)
        except ValueError as error:
            self.problem(str(error), hint)
        return default

    def expected(self, what: str, hint: str = "") -> None:
        """Record that this value should be something else."""
        self.problem(f"expected {what}, got {self.shown()}", hint)

    def shown(self) -> str:
        """The value as a message shows it."""
        return shown(self.content)

    def text(self, default: str = "") -> str:
        """A non-empty text on one line; a bare ``no`` or ``010`` wants quotes."""
        if self.kind in ("number", "boolean"):
            hint = f'put it in quotes: "{visible(raw(self.content))}"'
            self.expected("a text", hint)
        elif self.kind != "text" or not self.content.strip():
            self.expected("a text")
        elif CONTROL.search(self.content):
            self.problem(f"control character in {self.shown()}", "remove it")
        else:
            return str(self.content)
        return default

    def integer(
        self, default: int = 1, *, minimum: int = 1, maximum: int = 10**9
    ) -> int:
        """A decimal integer in ``minimum .. maximum``.

        Octal, hexadecimal and base 60 are none.
        """
        content = self.content
        if type(content) is int and minimum <= content <= maximum:
            return content
        text, is_number = raw(content), self.kind == "number"
        if not is_number or not _DECIMAL.fullmatch(text):
            foreign = is_number and "." not in text
            hint = "write a decimal number without leading zeros" if foreign else ""
            self.expected("an integer", hint)
        elif len(text) > 30 or not minimum <= int(text) <= maximum:
            self._out_of_range(text, str(minimum), str(maximum))
        else:
            return int(text)
        return default

    def number(
        self, default: float = 1.0, *, minimum: float = 0.0, maximum: float = 1e18
    ) -> float:
        """A finite number in ``minimum .. maximum``."""
        text, is_number = raw(self.content), self.kind == "number"
        if not is_number or not _REAL.fullmatch(text):
            self.expected("a number", "write a decimal number" if is_number else "")
        elif len(text) > 100 or not minimum <= float(text) <= maximum:
            self._out_of_range(text, f"{minimum:g}", f"{maximum:g}")
        else:
            return float(text)
        return default

    def _out_of_range(self, text: str, minimum: str, maximum: str) -> None:
        self.problem(f"{visible(text)} is not between {minimum} and {maximum}")

    def quantity(self, parse: Callable[[str], float], default: float = 1.0) -> float:
        """A number with a unit, as ``parse`` (see `placer.base.units`) reads it."""
        if self.kind not in ("text", "number"):
            self.expected("a quantity")
            return default
        return self.made(parse, raw(self.content), default=default)

    def boolean(self, default: bool = False) -> bool:
        """True or false."""
        word = raw(self.content).lower()
        if self.kind != "boolean" or word not in BOOLEANS:
            self.expected("true or false")
            return default
        return BOOLEANS[word]

    def choice(self, options: Collection[str], default: str = "") -> str:
        """A text that is one of ``options``."""
        found = self.text()
        if not found:
            return default or next(iter(options))
        if found not in options:
            message = f"{self.shown()} is none of {', '.join(options)}"
            self.problem(message, closest(found, options))
            return default or next(iter(options))
        return found

    def section(self, hint: str = "") -> Section:
        """The mapping; an empty one, with a problem, when it is none."""
        return self.document.section(self, hint)

    def entries(self) -> Iterator[tuple[str, Value]]:
        """Keys and values of a mapping; none, with a problem, when it is none."""
        if self.kind != "mapping":
            self.expected("a mapping (key: value)")
            return
        for key, content in self.content.items():
            yield key, Value(self.document, content, (*self.path, key))

    def items(self) -> list[Value]:
        """The elements of a list; none, with a problem, when it is none."""
        if self.kind != "list":
            self.expected("a list")
            return []
        if len(self.content) > MAX_ITEMS:
            message = f"a list of {len(self.content)}, the most is {MAX_ITEMS}"
            raise InputError(message, self.document.source, key=self.key)
        return [
            Value(self.document, content, (*self.path, index))
            for index, content in enumerate(self.content)
        ]

    def texts(self) -> list[str]:
        """The elements of a list of texts."""
        return [item.text() for item in self.items()]

    def integers(self, *, minimum: int = 0, maximum: int = 10**9) -> list[int]:
        """The elements of a list of integers, fast when all of them are good."""
        are_numbers = self.kind == "list" and set(map(type, self.content)) == {int}
        if are_numbers and minimum <= min(self.content) <= max(self.content) <= maximum:
            return list(self.content)
        return [
            item.integer(minimum, minimum=minimum, maximum=maximum)
            for item in self.items()
        ]


def key_text(path: Path) -> str:
    """A path as messages show it: ``nodes[1].gpus``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{visible(step)}" if text else visible(step)
    return text


def closest(name: str, options: Iterable[str]) -> str:
    """Hint that names the option most like ``name``; empty when none is near."""
    known = list(options)
    same = [option for option in known if _unpadded(option) == _unpadded(name)]
    near = same or get_close_matches(name, known, n=1, cutoff=0.6)
    return f'did you mean "{near[0]}"?' if near else ""


def known_hint(name: str, known: Collection[str]) -> str:
    """Hint that names the one most like ``name``; all of them when none is near."""
    return closest(name, known) or f"known: {', '.join(known)}"


def _unpadded(name: str) -> str:
    """A name without zeros before its numbers: a1 for a01."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", name)
