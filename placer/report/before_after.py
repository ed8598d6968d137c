"""Parts of the score that are lists, before and after: hottest links, critical path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placer.placement.launcher_orders import natural_key

if TYPE_CHECKING:
    from placer.placement.plan import Plan

_LINK = ("tier", "domain", "direction")


@dataclass(frozen=True)
class EntryChange:
    """One entry of such a list, before and after."""

    # What tells it from the others: a link's tier, domain and direction, or the
    # operation.
    name: Mapping[str, str]
    # old and new: what each score says of it; None where it is not in that score's
    # list.
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None

    def to_dict(self) -> dict[str, Any]:
        """The change as plain data."""
        return {**self.name, "old": self.old, "new": self.new}

    def amounts(self, key: str) -> tuple[float | None, float | None]:
        """Number ``key`` before and after; None where the entry is not listed."""
        return (
            None if self.old is None else float(self.old[key]),
            None if self.new is None else float(self.new[key]),
        )


def link_changes(old: Plan, new: Plan) -> tuple[EntryChange, ...]:
    """The hottest links of both plans, busiest first; none unless both list them.

    A link that only one plan lists is not among the busiest of the other.
    """
    return _changes(old, new, "hottest_links", _LINK, "busy_s")


def path_changes(old: Plan, new: Plan) -> tuple[EntryChange, ...]:
    """The critical paths of both plans, longest operation first.

    An operation that only one plan lists takes no time in the other.
    """
    return _changes(old, new, "critical_path", ("operation",), "seconds")


def _changes(
    old: Plan, new: Plan, key: str, named_by: tuple[str, ...], size: str
) -> tuple[EntryChange, ...]:
    before, after = old.score.get(key), new.score.get(key)
    if before is None or after is None:
        return ()
    was, now = _by_name(before, named_by), _by_name(after, named_by)
    changes = [
        EntryChange(
            dict(zip(named_by, key[0], strict=True)), was.get(key), now.get(key)
        )
        for key in {**was, **now}
    ]

    def order(change: EntryChange) -> tuple[float, list[Any]]:
        amounts = (value or 0.0 for value in change.amounts(size))
        return -max(amounts), [natural_key(name) for name in change.name.values()]

    return tuple(sorted(changes, key=order))


def _by_name(
    entries: Iterable[Mapping[str, Any]], named_by: tuple[str, ...]
) -> dict[tuple[tuple[str, ...], int], dict[str, Any]]:
    """Entries by name, and by a count where several have one name."""
    found: dict[tuple[tuple[str, ...], int], dict[str, Any]] = {}
    seen: Counter[tuple[str, ...]] = Counter()
    for entry in entries:
        name = tuple(str(entry[key]) for key in named_by)
        rest = {key: value for key, value in entry.items() if key not in named_by}
        found[name, seen[name]] = rest
        seen[name] += 1
    return found
