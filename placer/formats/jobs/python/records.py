"""Records of a configuration in Python: leaves by dotted key, copies and merging."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from placer.formats.jobs.python.values import (
    CLASS,
    Record,
    is_unknown,
    unknown,
    written,
)
from placer.formats.jobs.settings import Setting

if TYPE_CHECKING:
    from placer.formats.jobs.findings import Place

Leaf = tuple[str, Setting]
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
    elif isinstance(value, dict):
        yield from _of_record(value, prefix, seen)
    elif isinstance(value, list):
        yield from _of_list(value, prefix, seen)


def _of_record(record: Record, prefix: str, seen: Iterator[int]) -> Iterator[Leaf]:
    for key, inner in record.items():
        if key == CLASS:
            if prefix or is_unknown(inner):
                yield prefix, inner
            continue
        name = "model" if key == "model_spec" and not prefix else key
        yield from _leaves(inner, f"{prefix}.{name}" if prefix else name, seen)


def _of_list(items: list[Any], prefix: str, seen: Iterator[int]) -> Iterator[Leaf]:
    names = [found for item in items if (found := _name(item))]
    if names:
        open_one = next(filter(is_unknown, names), None)
        told = Setting([name.value for name in names], names[0].place)
        yield prefix, open_one or told
    for item in items:
        if isinstance(item, dict) and CLASS in item and not is_unknown(item):
            inside = {k: v for k, v in item.items() if k != CLASS}
            yield from _leaves(inside, f"{prefix}.{item[CLASS].value}", seen)


def _name(item: Any) -> Setting | None:
    """An element of a list: itself, or the name of its class."""
    found = item.get(CLASS) if isinstance(item, dict) else item
    return found if isinstance(found, Setting) else None


class Copy:
    """A copy of values in which those that were one are one.

    ``originals``: what a record or list of the copy was copied from, by its ``id``.
    """

    def __init__(self, value: Any) -> None:
        self.originals: dict[int, Any] = {}
        self._copies: dict[int, Any] = {}
        self._left: list[Any] = []
        self.value = self._of(value)
        while self._left:
            original = self._left.pop()
            copy = self._copies[id(original)]
            if isinstance(original, dict):
                copy.update((key, self._of(item)) for key, item in original.items())
            else:
                copy.extend(self._of(item) for item in original)

    def _of(self, value: Any) -> Any:
        if not isinstance(value, dict | list):
            return value
        if id(value) not in self._copies:
            copy: Any = type(value)()
            self._copies[id(value)] = copy
            self.originals[id(copy)] = value
            self._left.append(value)
        return self._copies[id(value)]

    def __len__(self) -> int:
        """How many records and lists it has."""
        return len(self._copies)


class Merge:
    """What is known after one of several ways was gone, and not which.

    ``ways``: copies of the same values, each changed by a way. ``words``: when each is
    gone, in words behind a value; empty where nothing is to be said. ``place``: of what
    decides.
    """

    def __init__(
        self, ways: Sequence[Copy], words: Sequence[str], place: Place
    ) -> None:
        self.ways = ways
        self.words = words
        self.place = place
        self._merged: dict[tuple[int, ...], Any] = {}

    def of(self, values: Sequence[Any]) -> Any:
        """The value that is one of these, one for each way."""
        first = values[0]
        if all(isinstance(value, dict) for value in values):
            return self._record(values)
        if all(isinstance(value, list) for value in values) and (
            len({len(value) for value in values}) == 1
        ):
            return [self.of(items) for items in zip(*values, strict=True)]
        if all(_same(first, value) for value in values):
            return first
        texts = [written(value) for value in values]
        longest = max(texts, key=len)
        if all(map(is_unknown, values)) and all(text in longest for text in texts):
            return values[texts.index(longest)]
        ways = [f"{text}{word}" for text, word in zip(texts, self.words, strict=True)]
        told = [w for w, v in zip(ways, values, strict=True) if v is not _MISSING]
        return {CLASS: unknown(" or ".join(told), self.place)}

    def _record(self, records: Sequence[Record]) -> Record:
        key = tuple(map(id, records))
        if key in self._merged:
            found: Record = self._merged[key]
            return found
        originals = [
            way.originals.get(id(record))
            for way, record in zip(self.ways, records, strict=True)
        ]
        one = originals[0]
        in_place = all(item is one for item in originals)
        whole: Record = one if isinstance(one, dict) and in_place else {}
        self._merged[key] = whole
        names = list(dict.fromkeys(name for record in records for name in record))
        merged = {
            name: self.of(_with_defaults([_part(r, name) for r in records]))
            for name in names
        }
        whole.clear()
        whole.update(merged)
        if isinstance(kind := whole.get(CLASS), dict):
            whole[CLASS] = kind[CLASS]
        return whole


def _part(record: Record, name: str) -> Any:
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
