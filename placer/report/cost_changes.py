"""Cost before and after, number by number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placer.job.axes import AXES, EXPERT_AXES

if TYPE_CHECKING:
    from placer.placement.plan import Plan

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
