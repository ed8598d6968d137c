"""Records of a configuration in Python, and their leaves by dotted key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from placer.sources.settings import Setting

# A record: keywords of a call, its own name under CLASS.
Record = dict[str, Any]
CLASS = "()"
_DEEPEST = 20
_MOST_VALUES = 20_000


def leaves(record: Any) -> Iterator[tuple[str, Setting]]:
    """Leaves of a record; a record is also the name of its class.

    One may hold itself, or others many times over: enough is enough.
    """
    return _Leaves().of(record, "")


class _Leaves:
    """The walk, with how many values it has seen."""

    def __init__(self) -> None:
        self.visited = 0

    def of(self, value: Any, prefix: str) -> Iterator[tuple[str, Setting]]:
        """The leaves of a value under a prefix."""
        self.visited += 1
        if self.visited > _MOST_VALUES or prefix.count(".") > _DEEPEST:
            return
        if isinstance(value, Setting):
            yield prefix, value
        elif isinstance(value, dict):
            yield from self._of_record(value, prefix)
        elif isinstance(value, list):
            yield from self._of_list(value, prefix)

    def _of_record(self, record: Record, prefix: str) -> Iterator[tuple[str, Setting]]:
        for key, inner in record.items():
            if key == CLASS:
                if prefix:
                    yield prefix, inner
                continue
            name = "model" if key == "model_spec" and not prefix else key
            yield from self.of(inner, f"{prefix}.{name}" if prefix else name)

    def _of_list(self, items: list[Any], prefix: str) -> Iterator[tuple[str, Setting]]:
        names = [found for item in items if (found := _name(item))]
        if names:
            yield prefix, Setting([name.value for name in names], names[0].place)
        for item in items:
            if isinstance(item, dict) and CLASS in item:
                inside = {k: v for k, v in item.items() if k != CLASS}
                yield from self.of(inside, f"{prefix}.{item[CLASS].value}")


def _name(item: Any) -> Setting | None:
    """An element of a list: itself, or the name of its class."""
    found = item.get(CLASS) if isinstance(item, dict) else item
    return found if isinstance(found, Setting) else None
