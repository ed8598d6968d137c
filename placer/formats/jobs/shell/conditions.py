"""What ``[ ... ]`` and ``[[ ... ]]`` say, where it is known.

What nobody sets is empty for ``-z`` and ``-n``, as in a fresh shell, and not known
where it is compared. Source: GNU Bash Reference Manual, Bash Conditional Expressions.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from typing import TYPE_CHECKING

from placer.formats.jobs.shell.text import open_names, readable, roots

if TYPE_CHECKING:
    from placer.formats.jobs.shell.variables import Environment

_FILES = frozenset("abcdefghkprstuwxGLNOS")
_THERE = "aefrs"  # of these, what lies beside the script has them
# No repetition of a repetition, which may take for ever to try.
_PLAIN_EXPRESSION = re.compile(r"(?!.*\)[*+?{])[\w^$\[\]*+?|(){},:/=-]{1,200}")
_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq,
    "-ne": operator.ne,
    "-lt": operator.lt,
    "-le": operator.le,
    "-gt": operator.gt,
    "-ge": operator.ge,
}
_TEXTS = ("=", "==", "!=", "<", ">", "=~")
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
    """Reads the tokens of one condition, expanded words and operators.

    ``patterns``: whether ``==`` matches a pattern, as in ``[[ ]]``.
    """

    def __init__(
        self, tokens: Sequence[str], environment: Environment, *, patterns: bool
    ) -> None:
        self.tokens = tokens
        self.environment = environment
        self.patterns = patterns
        self.at = 0
        self.names: list[str] = []
        self.absent: list[str] = []

    def outcome(self) -> Outcome:
        """Whether it holds; ``[`` that makes no sense does not."""
        try:
            holds = self._any() if self.tokens else False
            if self.at < len(self.tokens):
                raise ValueError("too long")
        except (ValueError, RecursionError):
            holds = None if self.patterns else False
            self.names.append(readable(" ".join(self.tokens)))
        names = tuple(dict.fromkeys(self.names)) if holds is None else ()
        return Outcome(bool(holds), names, tuple(dict.fromkeys(self.absent)))

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self) -> str:
        if self.at >= len(self.tokens):
            raise ValueError("too short")
        self.at += 1
        return self.tokens[self.at - 1]

    def _any(self) -> bool | None:
        return self._joined(("||", "-o"), self._all, True)

    def _all(self) -> bool | None:
        return self._joined(("&&", "-a"), self._one, False)

    def _joined(
        self, signs: Sequence[str], read: Callable[[], bool | None], decides: bool
    ) -> bool | None:
        """What several say, of which one is enough that says what ``decides``."""
        found = {read()}
        while self._peek() in signs:
            self._take()
            found.add(read())
        return decides if decides in found else None if None in found else not decides

    def _one(self) -> bool | None:
        word = self._take()
        following = self._peek()
        if following in _NUMBERS or (following in _TEXTS and word != "!"):
            return self._compared(word, self._take(), self._take())
        if word == "!":
            return _opposite(self._one())
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
            return _opposite(self._filled(operand))
        if sign == "v":
            if self.environment.value(operand) is None:
                self.absent.append(operand)
                return False
            return True
        if sign not in _FILES:
            raise ValueError("no such test")
        if sign in _THERE and self.environment.is_there(operand):
            return True
        self.names.append(f"-{sign} {readable(operand)}")
        return None

    def _filled(self, text: str) -> bool | None:
        is_empty = self.environment.either.is_empty(text)
        if is_empty is None:
            self.names += roots(text)
        elif is_empty:
            self.absent += open_names(text)
        return _opposite(is_empty)

    def _compared(self, left: str, sign: str, right: str) -> bool | None:
        missing = roots(left + right)
        if missing:
            self.names += missing
            return None
        if sign in _NUMBERS:
            return _NUMBERS[sign](*map(self.environment.integer, (left, right)))
        if sign in ("<", ">"):
            return (left < right) if sign == "<" else (left > right)
        same: bool | None = left == right
        if sign == "=~":
            same = _found(left, right)
        elif self.patterns:
            same = matches(left, right)
        if same is None:
            self.names.append(f"{left} {sign} {right}")
            return None
        return same == (sign != "!=")


def _opposite(holds: bool | None) -> bool | None:
    return None if holds is None else not holds


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


def matches(text: str, pattern: str) -> bool | None:
    """Whether a pattern stands for a text; None where it takes too long to tell."""
    if pattern == "*" or not re.search(r"[*?\[]", pattern):
        return pattern in ("*", text)
    if pattern.count("*") > 6 or len(pattern) > 200 or len(text) > 1000:
        return None
    return re.match(translate(pattern), text) is not None
