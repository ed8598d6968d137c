"""What is known of a value, and what Python's own operations make of those that are.

A value is a `Setting`, a record, or a list of values. What a record's class is stands
under `CLASS`; where that is `Unknown`, so is every key that the record has not.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress, count, repeat
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
    for many, times in ((one, other), (other, one)):
        if isinstance(many, str | list) and len(many) * abs(times) > LONGEST:
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


Leaf = tuple[str, Setting]
Part = dict[str, Any] | list[Any]
_DEEPEST = 20
_MOST_VALUES = 20_000
_MISSING = object()


def leaves(record: Any) -> Iterator[Leaf]:
    """Leaves of a record; a record is also the name of its class.

    One may hold itself, or others many times over: enough is enough. What is unknown
    as a whole stands under the empty key.
    """
    if isinstance(record, Setting):
        record = {CLASS: record}
    return _leaves(record, "", count())


def _leaves(value: Any, prefix: str, seen: Iterator[int]) -> Iterator[Leaf]:
    """The leaves of a value under a prefix, of so many that were ``seen``."""
    if next(seen) >= _MOST_VALUES or prefix.count(".") > _DEEPEST:
        return
    if isinstance(value, Setting):
        yield prefix, value
    for key, inner in value.items() if isinstance(value, dict) else ():
        if key != CLASS:
            name = "model" if key == "model_spec" and not prefix else key
            yield from _leaves(inner, f"{prefix}.{name}" if prefix else name, seen)
        elif prefix or is_unknown(inner):
            yield prefix, inner
    if isinstance(value, list):
        yield from _of_list(value, prefix, seen)


def _of_list(items: list[Any], prefix: str, seen: Iterator[int]) -> Iterator[Leaf]:
    """Its elements: themselves, or the names of their classes, and what these hold."""
    found = [item.get(CLASS) if isinstance(item, dict) else item for item in items]
    names = [name for name in found if isinstance(name, Setting)]
    if names:
        open_one = next(filter(is_unknown, names), None)
        told = Setting([name.value for name in names], names[0].place)
        yield prefix, open_one or told
    for item in items:
        if isinstance(item, dict) and CLASS in item and not is_unknown(item):
            inside = {k: v for k, v in item.items() if k != CLASS}
            yield from _leaves(inside, f"{prefix}.{item[CLASS].value}", seen)


def parts_of(roots: Iterable[Part]) -> list[Part]:
    """Every record and list that can be reached, each once."""
    found: dict[int, Part] = {}
    left: list[Any] = list(roots)
    while left:
        part = left.pop()
        if isinstance(part, dict | list) and id(part) not in found:
            found[id(part)] = part
            left += part.values() if isinstance(part, dict) else part
    return list(found.values())


def refill(part: Part, content: Part) -> None:
    """Give a record or a list what another of its kind holds."""
    part.clear()
    if isinstance(part, dict):
        part.update(content)
    else:
        part += content


class Merge:
    """What is known after one of several ways was gone, and not which.

    ``words``: when each is gone, in words behind a value; empty where nothing is to be
    said. ``place``: of what decides.
    """

    def __init__(self, words: Sequence[str], place: Place) -> None:
        self.words = words
        self.place = place
        self._merged: dict[tuple[int, ...], Record] = {}

    def content(self, ways: Sequence[Part]) -> Part:
        """What a record or list holds that holds these, one for each way."""
        if all(isinstance(way, dict) for way in ways):
            names = dict.fromkeys(name for record in ways for name in record)
            record = {
                name: self.of(_with_defaults([_part(r, name) for r in ways]))
                for name in names
            }
            if isinstance(kind := record.get(CLASS), dict):
                record[CLASS] = kind[CLASS]
            return record
        if len({len(way) for way in ways}) == 1:
            return [self.of(items) for items in zip(*ways, strict=True)]
        return [self._either(["..." for _ in ways], repeat(True))]

    def of(self, values: Sequence[Any]) -> Any:
        """The value that is one of these, one for each way."""
        first = values[0]
        if all(_same(first, value) for value in values):
            return first
        if all(isinstance(value, dict) for value in values):
            key = tuple(map(id, values))
            if key not in self._merged:
                self._merged[key] = {}
                refill(self._merged[key], self.content(values))
            return self._merged[key]
        if all(isinstance(value, list) for value in values):
            return self.content(values)
        texts = [written(value) for value in values]
        longest = max(texts, key=len)
        if all(map(is_unknown, values)) and all(text in longest for text in texts):
            return values[texts.index(longest)]
        made = [value is not _MISSING for value in values]
        return self._either(texts, made)

    def _either(self, texts: Sequence[str], made: Iterable[bool]) -> Record:
        ways = map("".join, zip(texts, self.words, strict=True))
        return {CLASS: unknown(" or ".join(compress(ways, made)), self.place)}


def _part(record: Any, name: str) -> Any:
    """A part of a record; one that an unknown record has not is unknown too."""
    return record.get(name, record[CLASS] if is_unknown(record) else _MISSING)


def _with_defaults(values: list[Any]) -> list[Any]:
    """The values; a part that only some ways make has its defaults in the others."""
    made = [v for v in values if v is not _MISSING]
    if all(isinstance(value, dict) and CLASS not in value for value in made):
        return [{} if value is _MISSING else value for value in values]
    return values


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Setting) and isinstance(other, Setting):
        return type(one.value) is type(other.value) and one.value == other.value
    return one is other
