"""Records of a configuration in Python: their leaves, and what several ways make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, count, repeat
from typing import Any

from placer.formats.jobs.findings import Place
from placer.formats.jobs.python.values import (
    CLASS,
    Record,
    is_unknown,
    unknown,
    written,
)
from placer.formats.jobs.settings import Setting

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
