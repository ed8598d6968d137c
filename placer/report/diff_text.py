"""A plan difference as plain text, narrow enough for any terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from placer.base.units import format_bytes, format_seconds
from placer.report.columns import WIDTH, fitted, paragraphs, wrapped
from placer.report.diff_cost_text import (
    cost_lines,
    link_lines,
    path_lines,
)
from placer.report.words import compared, gpu_hours_a_day, hosts_text, saved_text

if TYPE_CHECKING:
    from placer.report.diff import PlanDiff
    from placer.report.group_tiers import AxisChange, DomainChange
    from placer.report.moves import Fold
    from placer.report.restart import Restart

_OBJECTIVES = {"step_time_s": "time", "hop_cost": "hop-cost"}


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
        return f"no difference: {found.ranks_compared:,} ranks on the same GPUs"
    moved = f"{len(found.moved):,} of {found.ranks_compared:,} ranks move"
    return "; ".join([*_cost(found), moved])


def _cost(found: PlanDiff) -> Iterator[str]:
    """The first total that both have, and what it is worth where anybody can tell."""
    total = next((c for c in found.costs if c.measure in _OBJECTIVES and c.old), None)
    if total is None:
        return
    objective, saved = _OBJECTIVES[total.measure], found.saved
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
        yield f"      and {more:,} more pair{'s' * (more != 1)} of domains"


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
    what = f"{fold.nodes:,} node{'s' * (fold.nodes != 1)}"
    where = f"{fold.old} -> {fold.new}" if fold.old != fold.new else f"in {fold.old}"
    return f"{who}{what}: {where} ({fold.ranks:,} rank{'s' * (fold.ranks != 1)})"


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
