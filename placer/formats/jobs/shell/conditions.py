"""What ``[ ... ]`` and ``[[ ... ]]`` say, where it is known.

What nobody sets is empty for ``-z`` and ``-n``, as in a fresh shell, and not known
where it is compared. Source: GNU Bash Reference Manual, Bash Conditional Expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import translate

from placer.formats.jobs.shell.text import open_names, readable, roots

_FILES = frozenset("abcdefghkprstuwxGLNOS")
_THERE = "aefrs"  # of these, what lies beside the script has them
# No repetition of a repetition, which may take for ever to try.
_PLAIN_EXPRESSION = re.compile(r"(?!.*\)[*+?{])[\w^$\[\]*+?|(){},:/=-]{1,200}")
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
_MOST_TEXT, _MOST_REPEATS = 200, 2


@dataclass(frozen=True)
class Outcome:
    """Whether a condition holds, or a command succeeds."""

    holds: bool
    # What must be known before that is; empty where it is known.
    names: tuple[str, ...] = ()
    # Variables that nobody sets, and which it takes to be empty.
    absent: tuple[str, ...] = ()

    def negated(self) -> Outcome:
        """The opposite."""
        return Outcome(not self.holds, self.names, self.absent)


HOLDS, FAILS = Outcome(True), Outcome(False)


class Tester:
    """Reads the tokens of one condition.

    ``tokens``: expanded words and operators. ``number``: integer that a text means.
    ``is_set``, ``is_empty``, ``is_there``: whether a variable is set, a text empty, a
    file there; None where that is not known. ``patterns``: whether ``==`` matches a
    pattern, as in ``[[ ]]``.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        number: Callable[[str], int],
        is_set: Callable[[str], bool],
        is_empty: Callable[[str], bool | None],
        is_there: Callable[[str], bool | None],
        *,
        patterns: bool,
    ) -> None:
        self.tokens = tokens
        self.number = number
        self.is_set = is_set
        self.is_empty = is_empty
        self.is_there = is_there
        self.patterns = patterns
        self.at = 0
        self.depth = 0
        self.names: list[str] = []
        self.absent: list[str] = []

    def outcome(self) -> Outcome:
        """Whether it holds; ``[`` that makes no sense does not."""
        try:
            holds = self._any() if self.tokens else False
            if self.at < len(self.tokens):
                raise ValueError("too long")
        except ValueError:
            holds = None if self.patterns else False
            self.names.append(readable(" ".join(self.tokens)))
        absent = tuple(dict.fromkeys(self.absent))
        if holds is None:
            return Outcome(False, tuple(dict.fromkeys(self.names)), absent)
        return Outcome(holds, (), absent)

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self) -> str:
        if self.at >= len(self.tokens):
            raise ValueError("too short")
        self.at += 1
        return self.tokens[self.at - 1]

    def _any(self) -> bool | None:
        found = [self._all()]
        while self._peek() in ("||", "-o"):
            self._take()
            found.append(self._all())
        return True if True in found else None if None in found else False

    def _all(self) -> bool | None:
        found = [self._one()]
        while self._peek() in ("&&", "-a"):
            self._take()
            found.append(self._one())
        return False if False in found else None if None in found else True

    def _one(self) -> bool | None:
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise ValueError("nested too deeply")
        found = self._primary()
        self.depth -= 1
        return found

    def _primary(self) -> bool | None:
        word = self._take()
        following = self._peek()
        if following in _NUMBERS or (following in _TEXTS and word != "!"):
            return self._compared(word, self._take(), self._take())
        if word == "!":
            found = self._one()
            return None if found is None else not found
        if word == "(":
            holds = self._any()
            if self._take() != ")":
                raise ValueError("not closed")
            return holds
        if len(word) == 2 and word[0] == "-" and self.at < len(self.tokens):
            return self._unary(word[1], self._take())
        return self._filled(word)

    def _unary(self, sign: str, operand: str) -> bool | None:
        if sign == "n":  # people ask so for what may be set, and mean that it is not
            return self._filled(operand)
        if sign == "z":
            filled = self._filled(operand)
            return None if filled is None else not filled
        if sign == "v":
            if not (is_set := self.is_set(operand)):
                self.absent.append(operand)
            return is_set
        if sign not in _FILES:
            raise ValueError("no such test")
        is_there = self.is_there(operand) if sign in _THERE else None
        if is_there is None:
            self.names.append(f"-{sign} {readable(operand)}")
        return is_there

    def _filled(self, text: str) -> bool | None:
        is_empty = self.is_empty(text)
        if is_empty is None:
            self.names += roots(text)
            return None
        if is_empty:
            self.absent += open_names(text)
        return not is_empty

    def _compared(self, left: str, sign: str, right: str) -> bool | None:
        missing = roots(left + right)
        if missing:
            self.names += missing
            return None
        if sign in _NUMBERS:
            return _NUMBERS[sign](self.number(left), self.number(right))
        if sign in ("<", ">"):
            return (left < right) if sign == "<" else (left > right)
        if sign == "=~":
            found = _found(left, right)
            if found is None:
                self.names.append(f"{left} =~ {right}")
            return found
        same = matches(left, right) if self.patterns else left == right
        return same == (sign != "!=")


def _found(text: str, expression: str) -> bool | None:
    """Whether a plain regular expression is found; None where it is not plain."""
    repeats = sum(expression.count(sign) for sign in "*+?{")
    plain = _PLAIN_EXPRESSION.fullmatch(expression) is not None
    if len(text) > _MOST_TEXT or repeats > _MOST_REPEATS or not plain:
        return None
    try:
        return re.search(expression, text) is not None
    except re.error:
        return None


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
