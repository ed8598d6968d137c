"""Operations of Python on values of a configuration that are known."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from placer.formats.jobs.findings import Unknown
from placer.formats.jobs.python_leaves import CLASS, is_unknown
from placer.formats.jobs.settings import Setting

# Stands for what is no constant, or is not known.
NO_CONSTANT: Any = object()
_LARGEST = 10**15
LONGEST = 10_000  # items of a list, characters of a text
_MOST_ITEMS = 1000
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
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
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "abs": abs,
    "max": max,
    "min": min,
    "round": round,
    "sum": sum,
    "len": len,
    "list": list,
    "tuple": list,
    "sorted": sorted,
    "divmod": lambda one, other: list(divmod(one, other)),
    "range": lambda *bounds: _few(range(*bounds)),
}
_METHODS = ("lower", "upper", "strip", "startswith", "endswith")
_TYPES = {"str": str, "int": int, "float": float, "bool": bool, "list": list}


def plain(value: Any) -> Any:
    """A constant, or a list of them; `NO_CONSTANT` for anything else."""
    if isinstance(value, Setting) and not isinstance(value.value, Unknown):
        return value.value
    if isinstance(value, list):
        items = [plain(item) for item in value]
        return NO_CONSTANT if any(item is NO_CONSTANT for item in items) else items
    return NO_CONSTANT


def truth(value: Any) -> bool | None:
    """Whether a value counts as true; None where that is not known."""
    if is_unknown(value):
        return None
    if isinstance(value, dict):
        return CLASS in value or bool(value)
    return bool(value.value if isinstance(value, Setting) else value)


def computed(kind: ast.operator, left: Any, right: Any) -> Any:
    """A number, text or list by arithmetic of two constants."""
    apply = _OPERATORS.get(type(kind))
    one, other = plain(left), plain(right)
    if apply is None or NO_CONSTANT in (one, other) or not _small(kind, one, other):
        return NO_CONSTANT
    return _result(apply, one, other)


def _small(kind: ast.operator, one: Any, other: Any) -> bool:
    """Whether an operation ends soon."""
    if isinstance(kind, ast.Pow | ast.LShift):
        return (
            isinstance(one, int | float)
            and isinstance(other, int)
            and abs(one) < _LARGEST
            and abs(other) < 64
        )
    sizes = [len(side) for side in (one, other) if isinstance(side, str | list)]
    counts = [abs(side) for side in (one, other) if isinstance(side, int)]
    if isinstance(kind, ast.Mult) and sizes:
        return max(counts, default=0) * max(sizes) <= LONGEST
    return not (isinstance(kind, ast.Mod) and isinstance(one, str))


def compared(kind: ast.cmpop, left: Any, right: Any) -> Any:
    """Whether two values compare so."""
    one, other = plain(left), plain(right)
    if isinstance(kind, ast.Is | ast.IsNot) and isinstance(left, dict | list):
        # A record is not None.
        known = other is None and not is_unknown(left)
        return isinstance(kind, ast.IsNot) if known else NO_CONSTANT
    if isinstance(kind, ast.In | ast.NotIn) and isinstance(right, dict):
        known = isinstance(one, str) and CLASS not in right
        return (one in right) is isinstance(kind, ast.In) if known else NO_CONSTANT
    apply = _COMPARISONS.get(type(kind))
    if apply is None or NO_CONSTANT in (one, other):
        return NO_CONSTANT
    return _result(apply, one, other)


def called(name: str, arguments: list[Any]) -> Any:
    """What a function of Python's own returns for constants."""
    apply = _FUNCTIONS.get(name)
    constants = [plain(argument) for argument in arguments]
    if apply is None or any(item is NO_CONSTANT for item in constants):
        return NO_CONSTANT
    return _result(apply, *constants)


def joined(parts: list[Any]) -> Any:
    """A text of constants one behind the other."""
    return _result(lambda: "".join(str(part)[: LONGEST + 1] for part in parts))


def is_of_type(value: Any, name: str) -> bool | None:
    """Whether a constant is of a type of Python's own; None where it is not known."""
    constant = plain(value)
    if name not in _TYPES or (constant is NO_CONSTANT and not isinstance(value, dict)):
        return None
    if isinstance(value, dict):
        return False if CLASS in value and not is_unknown(value) else None
    return isinstance(constant, _TYPES[name])


def of_text(value: Any, method: str, arguments: list[Any]) -> Any:
    """What a method of a text returns."""
    text = plain(value)
    constants = [plain(argument) for argument in arguments]
    if not isinstance(text, str) or method not in _METHODS:
        return NO_CONSTANT
    if any(item is NO_CONSTANT for item in constants):
        return NO_CONSTANT
    return _result(getattr(text, method), *constants)


def _result(apply: Callable[..., Any], *arguments: Any) -> Any:
    try:
        value = apply(*arguments)
    except (TypeError, ValueError, ArithmeticError, AttributeError):
        return NO_CONSTANT
    if isinstance(value, str | list):
        return value if len(value) <= LONGEST else NO_CONSTANT
    if isinstance(value, complex) or (
        isinstance(value, int | float) and not abs(value) < _LARGEST
    ):
        return NO_CONSTANT
    return value


def _few(numbers: range) -> list[int]:
    """The numbers of a range.

    Raises
    ------
    ValueError
        If they are too many.
    """
    if len(numbers) > _MOST_ITEMS:
        raise ValueError
    return list(numbers)
