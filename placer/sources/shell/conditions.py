"""What ``[ ... ]`` and ``[[ ... ]]`` say, with what is not set taken as empty.

Source: GNU Bash Reference Manual, Bash Conditional Expressions. Files that are asked
for are taken to be there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import translate

from placer.sources.shell.text import known, open_names

_FILES = frozenset("abcdefghkprstuwxGLNOS")
_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}
_TEXTS = ("=", "==", "!=", "<", ">", "=~")
_MOST_DEPTH = 40


@dataclass
class Outcome:
    """Whether a condition holds, and what is not known of it.

    Attributes
    ----------
    holds : bool
    names : list of str
        Of the variables that nobody sets and that it compares with something.
    """

    holds: bool
    names: list[str] = field(default_factory=list)


class Tester:
    """Reads the tokens of one condition.

    Parameters
    ----------
    tokens : sequence of str
        Expanded words and operators.
    number : callable
        Integer that a text means.
    is_set : callable
        Whether a variable is set.
    patterns : bool
        Whether ``==`` matches a pattern, as in ``[[ ]]``.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        number: Callable[[str], int],
        is_set: Callable[[str], bool],
        *,
        patterns: bool,
    ) -> None:
        self.tokens = tokens
        self.number = number
        self.is_set = is_set
        self.patterns = patterns
        self.at = 0
        self.depth = 0
        self.names: list[str] = []

    def outcome(self) -> Outcome:
        """Whether it holds; one that is not understood does not."""
        try:
            holds = self._any() if self.tokens else False
            holds = holds and self.at >= len(self.tokens)
        except ValueError:
            holds = False
        return Outcome(holds, list(dict.fromkeys(self.names)))

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self) -> str:
        if self.at >= len(self.tokens):
            raise ValueError("too short")
        self.at += 1
        return self.tokens[self.at - 1]

    def _any(self) -> bool:
        holds = self._all()
        while self._peek() in ("||", "-o"):
            self._take()
            holds = self._all() or holds
        return holds

    def _all(self) -> bool:
        holds = self._one()
        while self._peek() in ("&&", "-a"):
            self._take()
            holds = self._one() and holds
        return holds

    def _one(self) -> bool:
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise ValueError("nested too deeply")
        found = self._primary()
        self.depth -= 1
        return found

    def _primary(self) -> bool:
        word = self._take()
        following = self._peek()
        if following in _NUMBERS or (following in _TEXTS and word != "!"):
            return self._compared(word, self._take(), self._take())
        if word == "!":
            return not self._one()
        if word == "(":
            holds = self._any()
            if self._take() != ")":
                raise ValueError("not closed")
            return holds
        if len(word) == 2 and word[0] == "-" and self.at < len(self.tokens):
            return self._unary(word[1], self._take())
        return bool(known(word))

    def _unary(self, sign: str, operand: str) -> bool:
        if sign == "n":  # people ask so for what may be set, and mean that it is not
            return bool(known(operand))
        if sign == "z":
            return not known(operand)
        if sign == "v":
            return self.is_set(operand)
        return sign in _FILES

    def _compared(self, left: str, sign: str, right: str) -> bool:
        if sign in _NUMBERS:
            a, b = self.number(self._known(left)), self.number(self._known(right))
            return _NUMBERS[sign](a, b)
        left, right = self._known(left), self._known(right)
        if sign in ("<", ">"):
            return (left < right) if sign == "<" else (left > right)
        if sign == "=~":
            self.names.append(f"{left} =~ {right}")
            return False
        return self._matches(left, right) == (sign != "!=")

    def _matches(self, text: str, pattern: str) -> bool:
        if not self.patterns:
            return text == pattern
        return matches(text, pattern)

    def _known(self, text: str) -> str:
        self.names += open_names(text)
        return known(text)


def matches(text: str, pattern: str) -> bool:
    """Whether a text is what a pattern of file names stands for."""
    if not re.search(r"[*?\[]", pattern):
        return text == pattern
    if pattern.count("*") > 6 or len(pattern) > 200 or len(text) > 1000:
        return False
    try:
        return bool(re.match(translate(pattern), text))
    except re.error:
        return False
