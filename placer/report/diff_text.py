"""A plan difference as plain text, narrow enough for any terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from placer.base.units import counted, format_bytes, format_seconds
from placer.placement.plan import OBJECTIVES
from placer.report.changes import CostChange, EntryChange
from placer.report.columns import WIDTH, fitted, paragraphs, table, wrapped
from placer.report.group_tiers import AxisChange, DomainChange
from placer.report.moves import Fold
from placer.report.restart import Restart
from placer.report.words import compared, gpu_hours_a_day, hosts_text, saved_text

if TYPE_CHECKING:
    from placer.report.diff import PlanDiff

_OBJECTIVE_OF = {key: name for name, key in OBJECTIVES.items()}


def diff_verdict(found: PlanDiff) -> dict[str, Any]:
    """What the new plan saves of the old, as a plan's ``verdict`` has it."""
    facts: dict[str, Any] = {}
    if found.saved is not None:
        facts = found.saved.to_dict()
        better = found.saved.is_measurable
        facts = {"advice": "move" if better else "keep", "against": "before", **facts}
    return {**facts, "ranks_moved": len(found.moved), "text": diff_sentence(found)}


def diff_sentence(found: PlanDiff) -> str:
    """The sentence, without a full stop: cost after and before, and how many move."""
    if found.is_empty:
        ranks = counted(found.ranks_compared, "rank")
        return f"no difference: {ranks} on the same GPUs"
    moved = f"{len(found.moved):,} of {found.ranks_compared:,} ranks move"
    return "; ".join([*_cost(found), moved])


def _cost(found: PlanDiff) -> Iterator[str]:
    """The first total that both have, and what it is worth where anybody can tell."""
    total = next((c for c in found.costs if c.measure in _OBJECTIVE_OF and c.old), None)
    if total is None:
        return
    objective, saved = _OBJECTIVE_OF[total.measure], found.saved
    if objective != "time" or saved is None or total.new == total.old:
        yield compared(objective, total.new, total.old, "before")
        return
    word = "saves" if saved.saved_s > 0 else "costs"
    times = f"{format_seconds(total.new)} instead of {format_seconds(total.old)} a step"
    yield f"{word.capitalize()} {saved_text('time', saved.to_dict())}: {times}"
    if not saved.can_be_measured:
        yield "too little to measure"
        return
    size = found.new["world_size"]
    hours = gpu_hours_a_day(size, (total.old - total.new) / total.old)
    if abs(hours) >= 1:
        yield f"{word} {abs(hours):,.0f} GPU hours a day"


_SHOWN_FOLDS = 20
_SHOWN_DOMAINS = 3
_WHO = {"dp": "DP replica", "pp": "PP stage"}


def diff_text(found: PlanDiff, width: int = WIDTH) -> str:
    """What changed, no wider than ``width``; the verdict first, then all the rest."""
    said = "\n".join(wrapped(diff_sentence(found), "  ", width))
    return said + "\n" if found.is_empty else f"{said}\n\n{changes_text(found, width)}"


def changes_text(found: PlanDiff, width: int = WIDTH) -> str:
    """Cost, then groups, nodes and ranks; empty where nothing changed."""
    if found.is_empty:
        return ""
    parts = (
        _inputs(found),
        cost_lines(found.costs, width),
        path_lines(found.path, width),
        link_lines(found.links, width),
        _groups(found.axes),
        _nodes(found),
        _ranks(found),
        _restart(found.restart),
    )
    return paragraphs(fitted(lines, width) for lines in parts) + "\n"


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


def _groups(axes: Iterable[AxisChange]) -> Iterator[str]:
    changed = [axis for axis in axes if axis.changed_domain]
    if changed:
        yield "groups in another domain than before"
    for axis in changed:
        count = f"  {axis.axis}: {axis.changed_domain:,} of {axis.groups:,}"
        if not (axis.entered or axis.left) and len(axis.tiers) == 1:
            ((tier, _),) = axis.tiers
            yield f"{count}, in another {tier}"
            continue
        yield f"{count} ({axis.entered:,} entered a domain, {axis.left:,} left one)"
        yield from _tiers(axis)


def _tiers(axis: AxisChange) -> Iterator[str]:
    """From which tier to which, and the domains where that is another one."""
    for (old, new), count in axis.tiers.items():
        if old == new:
            yield f"    in another {new}: {count:,}"
            continue
        yield f"    {old} -> {new}: {count:,}"
        pair = [c for c in axis.domains if (c.old_tier, c.new_tier) == (old, new)]
        yield from _domains(pair)


def _domains(changes: list[DomainChange]) -> Iterator[str]:
    """The domains that most groups left and entered."""
    changes = sorted(changes, key=lambda change: -change.groups)
    for change in changes[:_SHOWN_DOMAINS]:
        yield f"      {change.old} -> {change.new}: {change.groups:,}"
    more = len(changes) - _SHOWN_DOMAINS
    if more > 0:
        yield f"      and {counted(more, 'more pair')} of domains"


def _nodes(found: PlanDiff) -> Iterator[str]:
    for word, nodes in (("gained", found.nodes_gained), ("lost", found.nodes_lost)):
        if nodes:
            yield f"nodes {word}: {len(nodes):,} ({hosts_text(nodes)})"


def _ranks(found: PlanDiff) -> Iterator[str]:
    yield f"ranks moved: {len(found.moved):,} of {found.ranks_compared:,}"
    # By stage when that takes fewer lines, as it does where a rack holds one stage.
    axis = min(_WHO.keys() & found.folds, key=lambda a: (len(found.folds[a]), a))
    axis = "role" if "role" in found.folds else axis
    for fold in found.folds[axis][:_SHOWN_FOLDS]:
        yield f"  {_fold(_WHO.get(axis, ''), fold)}"
    more = len(found.folds[axis]) - _SHOWN_FOLDS
    if more > 0:
        yield f"  and {more:,} more; --format json lists every rank"


def _fold(word: str, fold: Fold) -> str:
    who = "" if fold.index is None else f"{word} {fold.index}, ".lstrip()
    what = counted(fold.nodes, "node")
    where = f"{fold.old} -> {fold.new}" if fold.old != fold.new else f"in {fold.old}"
    return f"{who}{what}: {where} ({counted(fold.ranks, 'rank')})"


def _restart(work: Restart) -> Iterator[str]:
    if work.nodes:
        hosts = hosts_text(work.nodes)
        yield f"nodes whose ranks changed: {len(work.nodes):,} ({hosts})"
    for word, count in (("start", work.started), ("stop", work.stopped)):
        if count:
            yield f"ranks that {word}: {count:,}"
    if work.to_new is None:
        if work.nodes:
            yield "state to move: unknown without a job with a model"
    else:
        parts = ", ".join(
            f"{format_bytes(n)} {kind}" for kind, n in work.to_new.items()
        )
        total = format_bytes(sum(work.to_new.values()))
        yield f"state to move: {total} ({parts})"


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
    """What changed as rows of texts, under `COST_HEAD`."""
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
