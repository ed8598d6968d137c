"""What is known of a value, and what Python's own operations make of those that are.

A value is a `Setting`, a record, or a list of values. What a record's class is stands
under `CLASS`; where that is `Unknown`, so is every key that the record has not.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from placer.formats.jobs.findings import Place, Unknown
from placer.formats.jobs.settings import Setting

# Keywords of a call, its own name under CLASS.
Record = dict[str, Any]
CLASS = "()"
# Stands for what is no constant, or is not known.
NO_CONSTANT: Any = object()
_LARGEST = 10**15
LONGEST = 10_000  # items of a list, characters of a text
_MOST_ITEMS = 1000
_TYPES = {"str": str, "int": int, "float": float, "bool": bool, "list": list}


def unknown(text: str, place: Place, hint: str = "") -> Setting:
    """A value that the file does not tell."""
    return Setting(Unknown(text, hint), place)


def is_unknown(value: Any) -> bool:
    """Whether a value is not told; of a record, what it is beside its own keys."""
    if isinstance(value, dict):
        value = value.get(CLASS)
    return isinstance(value, Setting) and isinstance(value.value, Unknown)


def written(value: Any) -> str:
    """A value in a few words, as messages have it."""
    found = value.get(CLASS) if isinstance(value, dict) else value
    if not isinstance(found, Setting):
        return "..."
    inner = found.value
    if isinstance(inner, Unknown):
        return inner.text
    return f"{inner}(...)" if isinstance(value, dict) else repr(inner)


def plain(value: Any) -> Any:
    """A constant, or a list of them; `NO_CONSTANT` for anything else."""
    if isinstance(value, Setting) and not isinstance(value.value, Unknown):
        return value.value
    if isinstance(value, list):
        items = [plain(item) for item in value]
        return NO_CONSTANT if NO_CONSTANT in items else items
    return NO_CONSTANT


def truth(value: Any) -> bool | None:
    """Whether a value counts as true; None where that is not known."""
    if is_unknown(value):
        return None
    if isinstance(value, dict):
        return CLASS in value or bool(value)
    return bool(value.value if isinstance(value, Setting) else value)


def _times(one: Any, other: Any) -> Any:
    for many, count in ((one, other), (other, one)):
        if isinstance(many, str | list) and len(many) * abs(count) > LONGEST:
            raise ValueError
    return one * other


def _modulo(one: Any, other: Any) -> Any:
    if isinstance(one, str):
        raise ValueError  # it is a format
    return one % other


def _soon(apply: Callable[[Any, int], Any]) -> Callable[[Any, Any], Any]:
    """An operation that ends soon, on numbers that are not too large for it."""

    def bounded(one: Any, other: Any) -> Any:
        if abs(one) >= _LARGEST or abs(other) >= 64 or not isinstance(other, int):
            raise ValueError
        return apply(one, other)

    return bounded


def _few(*bounds: int) -> list[int]:
    numbers = range(*bounds)
    if len(numbers) > _MOST_ITEMS:
        raise ValueError
    return list(numbers)


# By the node of an operator, or the name of a function or, behind a dot, a method.
_OPERATIONS: dict[object, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _times,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: _modulo,
    ast.Pow: _soon(operator.pow),
    ast.LShift: _soon(operator.lshift),
    ast.RShift: operator.rshift,
    ast.USub: operator.neg,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.eq,
    ast.IsNot: operator.ne,
    ast.In: lambda one, other: one in other,
    ast.NotIn: lambda one, other: one not in other,
    ast.JoinedStr: lambda *parts: "".join(str(part)[: LONGEST + 1] for part in parts),
    **{kind.__name__: kind for kind in (int, float, str, bool, list)},
    **{apply.__name__: apply for apply in (abs, max, min, round, sum, len, sorted)},
    "tuple": list,
    "divmod": lambda one, other: list(divmod(one, other)),
    "range": _few,
    **{
        f".{name}": getattr(str, name)
        for name in ("lower", "upper", "strip", "startswith", "endswith")
    },
}


def result(operation: object, *values: Any) -> Any:
    """What an operation makes of constants; `NO_CONSTANT` where it is not known."""
    apply = _OPERATIONS.get(operation)
    constants = [plain(value) for value in values]
    if apply is None or any(constant is NO_CONSTANT for constant in constants):
        return NO_CONSTANT
    try:
        value = apply(*constants)
    except (TypeError, ValueError, ArithmeticError, AttributeError):
        return NO_CONSTANT
    if isinstance(value, str | list):
        return value if len(value) <= LONGEST else NO_CONSTANT
    is_number = isinstance(value, int | float | complex)
    if isinstance(value, complex) or (is_number and not abs(value) < _LARGEST):
        return NO_CONSTANT
    return value


def compared(kind: ast.cmpop, left: Any, right: Any) -> Any:
    """Whether two values compare so."""
    if isinstance(kind, ast.Is | ast.IsNot) and isinstance(left, dict | list):
        # A record is not None.
        known = plain(right) is None and not is_unknown(left)
        return isinstance(kind, ast.IsNot) if known else NO_CONSTANT
    if isinstance(kind, ast.In | ast.NotIn) and isinstance(right, dict):
        one = plain(left)
        known = isinstance(one, str) and CLASS not in right
        return (one in right) is isinstance(kind, ast.In) if known else NO_CONSTANT
    return result(type(kind), left, right)


def is_of_type(value: Any, name: str) -> Any:
    """Whether a constant is of a type of Python's own."""
    constant = plain(value)
    if name in _TYPES and isinstance(value, dict) and CLASS in value:
        return NO_CONSTANT if is_unknown(value) else False
    if name not in _TYPES or constant is NO_CONSTANT:
        return NO_CONSTANT
    return isinstance(constant, _TYPES[name])
