"""The cost in a plan difference as plain text: totals, critical path, links."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from placer.base.units import format_bytes, format_seconds
from placer.report.columns import table

if TYPE_CHECKING:
    from placer.report.before_after import EntryChange
    from placer.report.cost_changes import CostChange

_SHOWN_LINKS = 5
_HEAD = ("old", "new", "change")
COST_HEAD = ("cost", *_HEAD)
_LABELS = {
    "step_time_s": "step time",
    "exposed_scale_out_s": "exposed scale-out",
    "hop_cost": "hop cost",
    "exposed_s": "exposed",
    "crossings": "groups",
    "traffic_bytes": "traffic",
}


def cost_lines(costs: Iterable[CostChange], width: int) -> Iterator[str]:
    """A table of what changed, and of the step time or hop cost in any case."""
    rows = cost_rows(costs)
    return table(rows, COST_HEAD, width) if rows else iter(())


def cost_rows(costs: Iterable[CostChange]) -> list[tuple[str, ...]]:
    """The same as rows of texts, under `COST_HEAD`."""
    costs = list(costs)
    is_timed = any(c.measure == "step_time_s" and (c.old or c.new) for c in costs)
    always = "step_time_s" if is_timed else "hop_cost"
    return [
        (_label(cost), _amount(cost, cost.old), _amount(cost, cost.new), _change(cost))
        for cost in costs
        if not _is_same(cost.old, cost.new) or cost.measure == always
    ]


def path_lines(path: Iterable[EntryChange], width: int) -> Iterator[str]:
    """The critical paths as a table, when they differ."""
    changes = list(path)
    if all(entry.old == entry.new for entry in changes):
        return iter(())
    rows = []
    for entry in changes:
        old, new = (amount or 0.0 for amount in entry.amounts("seconds"))
        times = (format_seconds(old), format_seconds(new))
        rows.append((entry.name["operation"], *times, _relative(old, new)))
    return _table("critical path", rows, width)


def link_lines(links: Iterable[EntryChange], width: int) -> Iterator[str]:
    """Busy times of the hottest links as a table, when they differ.

    A link that one side does not list is at most as busy there as the last it lists.
    """
    changes = list(links)
    if all(entry.old == entry.new for entry in changes):
        return iter(())
    busy = [entry.amounts("busy_s") for entry in changes]
    most = [
        min((seconds for seconds in side if seconds is not None), default=0.0)
        for side in zip(*busy, strict=True)
    ]
    rows = []
    for entry, (old, new) in zip(changes[:_SHOWN_LINKS], busy, strict=False):
        name = "{domain} {direction}, {tier} tier".format(**entry.name)
        change = "" if old is None or new is None else _relative(old, new)
        rows.append((name, _busy(old, most[0]), _busy(new, most[1]), change))
    return _table("busiest links", rows, width)


def _busy(seconds: float | None, most: float) -> str:
    return f"<= {format_seconds(most)}" if seconds is None else format_seconds(seconds)


def _label(cost: CostChange) -> str:
    measure, *where = cost.path
    if measure == "crossings":
        axis, tier = where
        return f"{axis} groups in one {tier}"
    if measure == "traffic_bytes":
        axis, tier = where
        return f"{axis} traffic, {tier}"
    return " ".join([_LABELS[measure], *where])


def _amount(cost: CostChange, value: float) -> str:
    if cost.measure.endswith("_s"):
        return format_seconds(value)
    if cost.measure.endswith("_bytes"):
        return format_bytes(value)
    return f"{value:,.10g}"


def _change(cost: CostChange) -> str:
    if cost.measure == "crossings":
        return f"{cost.new - cost.old:+,.10g}"
    return _relative(cost.old, cost.new)


def _is_same(old: float, new: float) -> bool:
    """Whether two amounts differ by no more than sums taken in another order do."""
    return math.isclose(old, new, rel_tol=1e-9)


def _relative(old: float, new: float) -> str:
    return f"{(new - old) / old:+z.2%}" if old and not _is_same(old, new) else ""


def _table(title: str, rows: Sequence[tuple[str, ...]], width: int) -> Iterator[str]:
    """Lines under a head; none without rows."""
    return table(rows, (title, *_HEAD), width) if rows else iter(())
