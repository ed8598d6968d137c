"""The score before and after: its numbers, the hottest links, the critical path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from placer.job.axes import AXES, EXPERT_AXES
from placer.placement.launcher_orders import natural_key
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


_TOTALS = ("step_time_s", "exposed_scale_out_s", "hop_cost")
# Measures by axis, or by axis and tier; what is absent there is zero.
_BY_AXIS = {"exposed_s": 1, "crossings": 2, "traffic_bytes": 2}


@dataclass(frozen=True)
class CostChange:
    """One number of the score, before and after."""

    path: tuple[str, ...]  # keys in the score: measure, and for some axis and tier
    old: float
    new: float

    @property
    def measure(self) -> str:
        """The score's key."""
        return self.path[0]


def cost_changes(old: Plan, new: Plan) -> tuple[CostChange, ...]:
    """Every number of the cost that both plans state, changed or not."""
    tiers = old.topology.get("tiers", ())
    order = (*_BY_AXIS, *AXES, *EXPERT_AXES, *tiers)
    place = {name: i for i, name in enumerate(order)}
    details = sorted(
        _details(old.score, new.score),
        key=lambda change: [(place.get(key, len(place)), key) for key in change.path],
    )
    return (*_totals(old.score, new.score), *details)


def cost_dict(changes: tuple[CostChange, ...]) -> dict[str, Any]:
    """The changes nested like a score, with ``old`` and ``new`` at the bottom."""
    nested: dict[str, Any] = {}
    for change in changes:
        inside = nested
        for key in change.path:
            inside = inside.setdefault(key, {})
        inside.update(old=change.old, new=change.new)
    return nested


def _totals(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[CostChange]:
    for key in _TOTALS:
        if old.get(key) is not None and new.get(key) is not None:
            yield CostChange((key,), old[key], new[key])


def _details(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[CostChange]:
    for key, depth in _BY_AXIS.items():
        if old.get(key) is None or new.get(key) is None:
            continue
        before = dict(_leaves(old[key], (key,), depth))
        after = dict(_leaves(new[key], (key,), depth))
        for path in {**before, **after}:
            yield CostChange(path, before.get(path, 0), after.get(path, 0))


def _leaves(
    value: Any, path: tuple[str, ...], depth: int
) -> Iterator[tuple[tuple[str, ...], float]]:
    if value is None:
        return
    if not depth:
        yield path, value
        return
    for key, item in value.items():
        yield from _leaves(item, (*path, key), depth - 1)
