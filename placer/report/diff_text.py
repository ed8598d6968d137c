"""A plan difference as plain text, narrow enough for any terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from placer.hostlist import compress
from placer.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from placer.report.cost_changes import CostChange
    from placer.report.diff import PlanDiff
    from placer.report.group_tiers import AxisChange
    from placer.report.moves import Fold

_SHOWN_FOLDS = 20
_SHOWN_HOSTS = 200
_LABELS = {
    "step_time_s": "step time",
    "exposed_scale_out_s": "exposed scale-out",
    "hop_cost": "hop cost",
    "exposed_s": "exposed",
    "crossings": "groups",
    "traffic_bytes": "traffic",
}


def diff_text(found: PlanDiff) -> str:
    """What changed, for people; cost first, then groups, nodes and ranks."""
    if found.is_empty:
        return f"no difference: {found.ranks_compared:,} ranks on the same GPUs\n"
    parts = (
        _inputs(found),
        _costs(found.costs),
        _groups(found.axes),
        _nodes(found),
        _ranks(found),
    )
    blocks = ("\n".join(lines) for lines in map(list, parts) if lines)
    return "\n\n".join(blocks) + "\n"


def _inputs(found: PlanDiff) -> Iterator[str]:
    """What the two plans were made from, where they differ."""
    for key in ("topology", "job"):
        old, new = found.old[key], found.new[key]
        if old != new:
            yield f"another {key}: {_input(old)} -> {_input(new)}"
    old_size, new_size = found.old["world_size"], found.new["world_size"]
    if old_size != new_size:
        yield (
            f"world size: {old_size:,} -> {new_size:,} "
            f"({found.ranks_compared:,} ranks compared)"
        )


def _input(about: dict[str, str]) -> str:
    return f"{about['name']} ({str(about['sha256'])[:12]})"


def _costs(costs: Iterable[CostChange]) -> Iterator[str]:
    """A table of what changed, and of the step time in any case."""
    rows = [
        (_label(cost), _amount(cost, cost.old), _amount(cost, cost.new), _change(cost))
        for cost in costs
        if cost.old != cost.new or cost.measure == "step_time_s"
    ]
    if rows:
        yield from _table(("cost", "old", "new", "change"), rows)


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
    return f"{(cost.new - cost.old) / cost.old:+.2%}" if cost.old else ""


def _groups(axes: Iterable[AxisChange]) -> Iterator[str]:
    changed = [axis for axis in axes if axis.changed_domain]
    if changed:
        yield "groups in another lowest common domain"
    for axis in changed:
        yield f"  {axis.axis}: {axis.changed_domain:,} of {axis.groups:,}"
        for (old, new), count in axis.tiers.items():
            yield f"    {old} -> {new}: {count:,}"


def _nodes(found: PlanDiff) -> Iterator[str]:
    for word, nodes in (("gained", found.nodes_gained), ("lost", found.nodes_lost)):
        if nodes:
            hosts = compress(nodes)
            more = "..." if len(hosts) > _SHOWN_HOSTS else ""
            yield f"nodes {word}: {len(nodes):,} ({hosts[:_SHOWN_HOSTS]}{more})"


def _ranks(found: PlanDiff) -> Iterator[str]:
    yield f"ranks moved: {len(found.moved):,} of {found.ranks_compared:,}"
    for fold in found.folds[:_SHOWN_FOLDS]:
        yield f"  {_fold(fold)}"
    more = len(found.folds) - _SHOWN_FOLDS
    if more > 0:
        yield f"  and {more:,} more; --format json lists every rank"


def _fold(fold: Fold) -> str:
    who = "" if fold.replica is None else f"DP replica {fold.replica}: "
    what = f"{fold.nodes:,} node{'s' * (fold.nodes != 1)}"
    where = f"{fold.old} -> {fold.new}" if fold.old != fold.new else f"in {fold.old}"
    return f"{who}{what} {where} ({fold.ranks:,} rank{'s' * (fold.ranks != 1)})"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Lines with the first column to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for first, *rest in (head, *rows):
        cells = [
            text.rjust(width) for text, width in zip(rest, widths[1:], strict=True)
        ]
        yield "  ".join([first.ljust(widths[0]), *cells]).rstrip()
