"""Integers that ``$(( ))`` computes, and the variables that it sets.

Source: GNU Bash Reference Manual, Shell Arithmetic: C's operators, 64 bits.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from placer.formats.jobs.shell.text import (
    Text,
    filled,
    readable,
    roots,
    text_at,
    unknown,
)

if TYPE_CHECKING:
    from placer.formats.jobs.findings import Place
    from placer.formats.jobs.shell.variables import Environment

_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|[0-9]+#[0-9a-zA-Z]+|[0-9]+)"
    r"|\$?(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>(?:<<|>>|[-+*/%&^|])=(?!=)|\+\+|--|\*\*|<<|>>|<=|>=|==|!=|&&|\|\|"
    r"|[-+*/%<>!~&^|?:()=,]))"
)
_COMPARED = ("==", "!=", "<=", ">=")
_STEPS = {"++": 1, "--": -1}
_SIGNS: dict[str, Callable[[int], int]] = {
    "+": operator.pos,
    "-": operator.neg,
    "!": lambda a: int(not a),
    "~": operator.invert,
}
_MOST_DEPTH = 60
_MOST_SIGNS = 10_000


def _quotient(a: int, b: int) -> int:
    """``a / b`` towards zero."""
    if b == 0:
        raise ValueError("division by 0")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


# Binary operators: how tightly each binds, and what it computes.
_OPERATORS: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "||": (0, lambda a, b: int(bool(a or b))),
    "&&": (1, lambda a, b: int(bool(a and b))),
    "|": (2, operator.or_),
    "^": (3, operator.xor),
    "&": (4, operator.and_),
    "==": (5, lambda a, b: int(a == b)),
    "!=": (5, lambda a, b: int(a != b)),
    "<=": (6, lambda a, b: int(a <= b)),
    ">=": (6, lambda a, b: int(a >= b)),
    "<": (6, lambda a, b: int(a < b)),
    ">": (6, lambda a, b: int(a > b)),
    "<<": (7, lambda a, b: a << (b & 63)),
    ">>": (7, lambda a, b: a >> (b & 63)),
    "+": (8, operator.add),
    "-": (8, operator.sub),
    "*": (9, operator.mul),
    "/": (9, _quotient),
    "%": (9, lambda a, b: a - b * _quotient(a, b)),
}


def evaluate(
    expression: str,
    value_of: Callable[[str], int],
    assign: Callable[[str, int], None],
) -> int:
    """The value of an expression.

    Parameters
    ----------
    value_of : callable
        Integer of a variable.
    assign : callable
        Sets a variable.

    Raises
    ------
    ValueError
        If it is none, or divides by 0; whatever ``value_of`` and ``assign`` raise.
    """
    reader = _Reader(expression, value_of, assign)
    value = reader.listed() if reader.tokens else 0
    if reader.at < len(reader.tokens):
        raise ValueError(f'unexpected "{reader.peek()}"')
    return value


class _Reader:
    def __init__(
        self,
        expression: str,
        value_of: Callable[[str], int],
        assign: Callable[[str, int], None],
    ) -> None:
        self.tokens: list[str] = []
        self.at = 0
        self.depth = 0
        self.value_of = value_of
        self.assign = assign
        offset, end = 0, len(expression.rstrip())
        while offset < end:
            match = _TOKEN.match(expression, offset)
            if match is None or len(self.tokens) >= _MOST_SIGNS:
                raise ValueError(f'"{expression[offset : offset + 20].strip()}"')
            self.tokens.append(match[match.lastgroup or 0])
            offset = match.end()

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        word = self.peek()
        self.at += 1
        return word

    def deeper(self, read: Callable[[], int]) -> int:
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise ValueError("nested too deeply")
        value = read()
        self.depth -= 1
        return value

    def listed(self) -> int:
        """``a, b``."""
        value = self.assigned()
        while self.peek() == ",":
            self.take()
            value = self.assigned()
        return value

    def assigned(self) -> int:
        """``a = b``, ``a += b``."""
        name, sign = self.peek(), "".join(self.tokens[self.at + 1 : self.at + 2])
        if not _is_name(name) or sign[-1:] != "=" or sign in _COMPARED:
            return self.deeper(self.choice)
        self.at += 2
        value = self.deeper(self.assigned)
        if sign != "=":
            value = _wrapped(_OPERATORS[sign[:-1]][1](self.value_of(name), value))
        self.assign(name, value)
        return value

    def choice(self) -> int:
        """``a ? b : c``."""
        value = self.binary(0)
        if self.peek() != "?":
            return value
        self.take()
        yes = self.assigned()
        if self.take() != ":":
            raise ValueError('expected ":"')
        no = self.deeper(self.choice)
        return yes if value else no

    def binary(self, least: int) -> int:
        """Operators that bind as tightly as ``least``, or more."""
        value = self.power()
        while (found := _OPERATORS.get(self.peek(), (-1, operator.or_)))[0] >= least:
            self.take()
            value = _wrapped(found[1](value, self.binary(found[0] + 1)))
        return value

    def power(self) -> int:
        value = self.unary()
        if self.peek() != "**":
            return value
        self.take()
        exponent = self.power()
        if exponent < 0:
            raise ValueError("an exponent below 0")
        return _wrapped(pow(value, exponent, 2**64))

    def unary(self) -> int:
        sign = self.peek()
        if sign in _SIGNS:
            return _SIGNS[self.take()](self.deeper(self.unary))
        if sign not in _STEPS:
            return self.atom()
        self.take()
        if not _is_name(self.peek()):  # two signs of a number
            return self.unary()
        name = self.take()
        value = _wrapped(self.value_of(name) + _STEPS[sign])
        self.assign(name, value)
        return value

    def atom(self) -> int:
        word = self.take()
        if word == "(":
            value = self.listed()
            if self.take() != ")":
                raise ValueError('expected ")"')
            return value
        if word[:1].isdigit():
            return _number(word)
        if not _is_name(word):
            raise ValueError(f'unexpected "{word}"')
        value = self.value_of(word)
        if self.peek() in _STEPS:
            self.assign(word, _wrapped(value + _STEPS[self.take()]))
        return value


def _is_name(word: str) -> bool:
    return word[:1].isalpha() or word[:1] == "_"


def _number(word: str) -> int:
    if len(word) > 24:
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
    missing = [written.text] if written.is_open else []
    changes: dict[str, int] = {}
    depth = 0

    def value_of(name: str) -> int:
        nonlocal depth
        if name in changes:
            return changes[name]
        value = variables.value(name)
        if isinstance(value, dict):
            value = value.get("0")
        if value is None or value.is_open:
            missing.append((value or unknown(name, place)).text)
            return 1
        depth += 1
        if depth > 200:
            raise ValueError("variables that stand for each other")
        found = evaluate(value.text, value_of, changes.__setitem__)
        depth -= 1
        return found

    shown = f"$(({readable(written.text).strip()}))"
    unsure: tuple[str, ...] = ()
    number = 0
    try:
        plain = filled(written.text, "1")
        number = evaluate(plain, value_of, changes.__setitem__)
    except (ValueError, RecursionError):
        unsure = (shown,)
    unsure = roots("".join(missing)) or unsure
    for name, change in changes.items():
        value = text_at(str(change), place)
        if unsure:
            value = unknown(name, place, shown, unsure)
        variables.assign(name, value)
    if unsure:
        return unknown(unsure[0], place, shown, unsure)
    return text_at(str(number), place)
