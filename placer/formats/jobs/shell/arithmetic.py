"""Integers that ``$(( ))`` computes, and the variables that it sets.

Source: GNU Bash Reference Manual, Shell Arithmetic: C's operators, 64 bits.
"""

from __future__ import annotations

import operator
import re
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from placer.formats.jobs.findings import Place
from placer.formats.jobs.shell.text import (
    Text,
    elements,
    filled,
    readable,
    roots,
    text_at,
    unknown,
)

if TYPE_CHECKING:
    from placer.formats.jobs.shell.variables import Environment

_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|[0-9]+#[0-9a-zA-Z]+|[0-9]+)"
    r"|\$?(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>(?:<<|>>|[-+*/%&^|])=(?!=)|\+\+|--|\*\*|<<|>>|<=|>=|==|!=|&&|\|\|"
    r"|[-+*/%<>!~&^|?:()=,]))\s*"
)
_STEPS = {"++": 1, "--": -1}
_UNARY: dict[str, Callable[[int], int]] = {
    "+": operator.pos,
    "-": operator.neg,
    "!": operator.not_,
    "~": operator.invert,
}
_MOST_TOKENS, _MOST_DIGITS = 10_000, 24


def _quotient(a: int, b: int) -> int:
    """``a / b`` towards zero; ValueError where ``b`` is 0."""
    if b == 0:
        raise ValueError("division by 0")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _power(a: int, b: int) -> int:
    if b < 0:
        raise ValueError("an exponent below 0")
    return pow(a, b, 2**64)


# Binary operators: how tightly each binds, and what it computes.
_COMMA, _ASSIGN, _CHOICE, _POWER = 0, 1, 2, 13
_BINARY: dict[str, tuple[int, Callable[[int, int], int]]] = {
    ",": (_COMMA, lambda _, b: b),
    "||": (3, lambda a, b: bool(a or b)),
    "&&": (4, lambda a, b: bool(a and b)),
    "|": (5, operator.or_),
    "^": (6, operator.xor),
    "&": (7, operator.and_),
    "==": (8, operator.eq),
    "!=": (8, operator.ne),
    "<=": (9, operator.le),
    ">=": (9, operator.ge),
    "<": (9, operator.lt),
    ">": (9, operator.gt),
    "<<": (10, lambda a, b: a << (b & 63)),
    ">>": (10, lambda a, b: a >> (b & 63)),
    "+": (11, operator.add),
    "-": (11, operator.sub),
    "*": (12, operator.mul),
    "/": (12, _quotient),
    "%": (12, lambda a, b: a - b * _quotient(a, b)),
    "**": (_POWER, _power),
}


class _Calculation:
    """Reads expressions by how tightly their operators bind, and computes them.

    ``missing``: texts that are not known and are taken for 1. ``changes``: variables
    that are set. Whatever is no expression raises ValueError.
    """

    def __init__(self, variables: Environment, place: Place, missing: str) -> None:
        self.variables = variables
        self.place = place
        self.missing = [missing] if missing else []
        self.changes: dict[str, int] = {}
        self._tokens: deque[str] = deque()
        self._count = 0

    def value(self, expression: str) -> int:
        """The value of an expression; 0 of none."""
        tokens = [match[match.lastgroup or 0] for match in _TOKEN.finditer(expression)]
        self._count += len(tokens) + 1
        if self._count > _MOST_TOKENS or _TOKEN.sub("", expression).strip():
            raise ValueError("no expression, or one without end")
        outer, self._tokens = self._tokens, deque(tokens)
        found = self._read(_COMMA) if tokens else 0
        if self._tokens:
            raise ValueError(f'unexpected "{self._tokens[0]}"')
        self._tokens = outer
        return found

    def _next(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def _take(self, wanted: str = "") -> str:
        found = self._tokens.popleft() if self._tokens else ""
        if wanted and found != wanted:
            raise ValueError(f'expected "{wanted}"')
        return found

    def _read(self, least: int) -> int:
        """What operators that bind as tightly as ``least``, or more, make."""
        value = self._first(least)
        while True:
            sign = self._next()
            binds, compute = _BINARY.get(sign, (-1, operator.or_))
            if sign == "?" and least <= _CHOICE:
                self._take()
                yes = self._read_if(value != 0, _ASSIGN)
                self._take(":")
                no = self._read_if(value == 0, _CHOICE)
                value = yes if value else no
            elif binds >= least:
                self._take()
                is_done = sign in ("&&", "||") and (value != 0) == (sign == "||")
                right = self._read_if(not is_done, binds + (binds != _POWER))
                value = _wrapped(compute(value, right))
            else:
                return value

    def _read_if(self, counts: bool, least: int) -> int:
        """What operators make; only where it ``counts`` it changes anything."""
        before, missing = dict(self.changes), list(self.missing)
        value = self._read(least)
        if not (counts or missing):
            self.changes, self.missing = before, missing
        return value

    def _first(self, least: int) -> int:
        """What stands in front of an operator: a sign and a value, an assignment."""
        word = self._take()
        if word in _UNARY:
            return _wrapped(_UNARY[word](self._first(_POWER)))
        if word in _STEPS:
            if not _is_name(self._next()):  # two signs of a number
                return self._first(_POWER)
            name = self._take()
            return self._set(name, self._of(name) + _STEPS[word])
        if word == "(":
            value = self._read(_COMMA)
            self._take(")")
            return value
        if word[:1].isdigit():
            return _number(word)
        if not _is_name(word):
            raise ValueError(f'unexpected "{word}"')
        sign = self._next()
        if sign[-1:] == "=" and sign not in _BINARY and least <= _ASSIGN:
            self._take()
            value = self._read(_ASSIGN)
            if sign != "=":
                value = _BINARY[sign[:-1]][1](self._of(word), value)
            return self._set(word, value)
        value = self._of(word)
        if sign in _STEPS:
            self._set(word, value + _STEPS[self._take()])
        return value

    def _of(self, name: str) -> int:
        """The integer of a variable, whose value may be an expression."""
        if name in self.changes:
            return self.changes[name]
        value = elements(self.variables.value(name)).get("0")
        if value is not None and not value.is_open:
            return self.value(value.text)
        self.missing.append((value or unknown(name, self.place)).text)
        return 1

    def _set(self, name: str, value: int) -> int:
        self.changes[name] = _wrapped(value)
        return self.changes[name]


def _is_name(word: str) -> bool:
    return word[:1].isalpha() or word[:1] == "_"


def _number(word: str) -> int:
    if len(word) > _MOST_DIGITS:
        raise ValueError("a number of too many digits")
    base, hash_sign, digits = word.partition("#")
    if hash_sign:
        return int(digits, int(base)) if 2 <= int(base) <= 36 else 0
    if word[:2].lower() == "0x":
        return int(word, 16)
    return int(word, 8) if word[0] == "0" and len(word) > 1 else int(word)


def _wrapped(value: int) -> int:
    """The value in 64 bits."""
    return (value + 2**63) % 2**64 - 2**63


def calculated(written: Text, place: Place, variables: Environment) -> Text:
    """The value of an expression; unknown, by what it needs, when a variable is."""
    missing = written.text if written.is_open else ""
    calculation = _Calculation(variables, place, missing)
    shown = f"$(({readable(written.text).strip()}))"
    unsure: tuple[str, ...] = ()
    number = 0
    try:
        number = calculation.value(filled(written.text, "1"))
    except (ValueError, RecursionError):
        unsure = (shown,)
    unsure = roots("".join(calculation.missing)) or unsure
    for name, change in calculation.changes.items():
        value = unknown(name, place, shown, unsure)
        variables.assign(name, value if unsure else text_at(str(change), place))
    if unsure:
        return unknown(unsure[0], place, shown, unsure)
    return text_at(str(number), place)
