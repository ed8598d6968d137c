"""A plan difference as plain text, narrow enough for any terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from placer.base.units import counted, format_bytes, format_seconds
from placer.placement.plan import OBJECTIVES
from placer.report.columns import WIDTH, fitted, paragraphs, table, wrapped
from placer.report.words import (
    compared,
    hosts_text,
    hours_text,
    link_name,
    saved_text,
)

if TYPE_CHECKING:
    from placer.report.diff import PlanDiff

Facts = dict[str, Any]
Costs = Mapping[tuple[str, ...], tuple[float, float]]

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
    total = (key for key in _OBJECTIVE_OF if found.costs.get((key,), (0, 0))[0])
    key = next(total, None)
    if key is None:
        return
    (old, new), objective, saved = found.costs[key,], _OBJECTIVE_OF[key], found.saved
    if objective != "time" or saved is None or new == old:
        yield compared(objective, new, old, "before")
        return
    word = "Saves" if saved.saved_s > 0 else "Costs"
    times = f"{format_seconds(new)} instead of {format_seconds(old)} a step"
    yield f"{word} {saved_text('time', saved.to_dict())}: {times}"
    if not saved.can_be_measured:
        yield "too little to measure"
        return
    if hours := hours_text(found.new["world_size"], (old - new) / old):
        yield hours


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
    used = {"gained": found.nodes_gained, "lost": found.nodes_lost}
    tables = (
        (COST_HEAD, [*cost_rows(found.costs)]),
        (("critical path", *_HEAD), [*path_rows(found.path)]),
        (("busiest links", *_HEAD), [*link_rows(found.links)]),
    )
    parts = (
        _inputs(found),
        *(table(rows, head, width) if rows else () for head, rows in tables),
        _groups(found.axes),
        [f"nodes {w}: {len(n):,} ({hosts_text(n)})" for w, n in used.items() if n],
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


def _groups(axes: Facts) -> Iterator[str]:
    changed = {axis: facts for axis, facts in axes.items() if facts["changed_domain"]}
    if changed:
        yield "groups in another domain than before"
    for axis, facts in changed.items():
        entered, left, tiers = facts["entered"], facts["left"], facts["tiers"]
        count = f"  {axis}: {facts['changed_domain']:,} of {facts['groups']:,}"
        if not (entered or left) and len(tiers) == 1:
            yield f"{count}, in another {tiers[0]['old']}"
            continue
        yield f"{count} ({entered:,} entered a domain, {left:,} left one)"
        for way in tiers:
            yield from _tier(way, facts["domains"])


def _tier(way: Facts, domains: Sequence[Facts]) -> Iterator[str]:
    """From which tier to which, and the domains most groups left and entered.

    Domains are told where the tier is another one.
    """
    old, new = way["old"], way["new"]
    if old == new:
        yield f"    in another {new}: {way['groups']:,}"
        return
    yield f"    {old} -> {new}: {way['groups']:,}"
    pair = [c for c in domains if (c["old_tier"], c["new_tier"]) == (old, new)]
    changes = sorted(pair, key=lambda change: -change["groups"])
    for change in changes[:_SHOWN_DOMAINS]:
        yield "      {old} -> {new}: {groups:,}".format(**change)
    more = len(changes) - _SHOWN_DOMAINS
    if more > 0:
        yield f"      and {counted(more, 'more pair')} of domains"


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


def _fold(word: str, fold: Facts) -> str:
    index, old, new, nodes, ranks = fold.values()
    who = "" if index is None else f"{word} {index}, ".lstrip()
    where = f"{old} -> {new}" if old != new else f"in {old}"
    return f"{who}{counted(nodes, 'node')}: {where} ({counted(ranks, 'rank')})"


def _restart(work: Facts) -> Iterator[str]:
    nodes, state = work["nodes"], work["state_bytes"]
    if nodes:
        yield f"nodes whose ranks changed: {len(nodes):,} ({hosts_text(nodes)})"
    for word, key in (("start", "ranks_started"), ("stop", "ranks_stopped")):
        if work[key]:
            yield f"ranks that {word}: {work[key]:,}"
    if state:
        sizes = {kind: format_bytes(size) for kind, size in state["to_new"].items()}
        total = sizes.pop("total")
        parts = ", ".join(f"{size} {kind}" for kind, size in sizes.items())
        yield f"state to move: {total} ({parts})"
    elif nodes:
        yield "state to move: unknown without a job with a model"


_SHOWN_LINKS = 5
_HEAD = ("old", "new", "change")
COST_HEAD = ("cost", *_HEAD)
_LABELS = {
    "step_time_s": "step time",
    "exposed_scale_out_s": "exposed scale-out",
    "hop_cost": "hop cost",
    "exposed_s": "exposed",
}


def cost_rows(costs: Costs) -> Iterator[tuple[str, ...]]:
    """What changed as rows of texts, under `COST_HEAD`.

    The step time or hop cost in any case.
    """
    always = "step_time_s" if any(costs.get(("step_time_s",), ())) else "hop_cost"
    for (measure, *where), (old, new) in costs.items():
        if not _is_same(old, new) or measure == always:
            change = _relative(old, new)
            if measure == "crossings":
                change = f"{new - old:+,.10g}"
            amounts = _amount(measure, old), _amount(measure, new)
            yield _label(measure, *where), *amounts, change


def path_rows(path: Sequence[Facts]) -> Iterator[tuple[str, ...]]:
    """The critical paths, when they differ."""
    for entry in path if _differ(path) else ():
        old, new = (amount or 0.0 for amount in _amounts(entry, "seconds"))
        times = format_seconds(old), format_seconds(new)
        yield entry["operation"], *times, _relative(old, new)


def link_rows(links: Sequence[Facts]) -> Iterator[tuple[str, ...]]:
    """Busy times of the hottest links, when they differ.

    A link that one side does not list is at most as busy there as the last it lists.
    """
    busy = [_amounts(entry, "busy_s") for entry in links]
    most = [
        min((seconds for seconds in side if seconds is not None), default=0.0)
        for side in zip(*busy, strict=True)
    ]
    shown = links[:_SHOWN_LINKS] if _differ(links) else ()
    for entry, (old, new) in zip(shown, busy, strict=False):
        change = "" if old is None or new is None else _relative(old, new)
        yield link_name(entry), _busy(old, most[0]), _busy(new, most[1]), change


def _differ(entries: Sequence[Facts]) -> bool:
    return any(entry["old"] != entry["new"] for entry in entries)


def _amounts(entry: Facts, key: str) -> tuple[float | None, float | None]:
    """Number ``key`` before and after; None where the entry is not listed."""
    old, new = (one and float(one[key]) for one in (entry["old"], entry["new"]))
    return old, new


def _busy(seconds: float | None, most: float) -> str:
    return f"<= {format_seconds(most)}" if seconds is None else format_seconds(seconds)


def _label(measure: str, *where: str) -> str:
    if measure == "crossings":
        return "{} groups in one {}".format(*where)
    if measure == "traffic_bytes":
        return "{} traffic, {}".format(*where)
    return " ".join([_LABELS[measure], *where])


def _amount(measure: str, value: float) -> str:
    if measure.endswith("_s"):
        return format_seconds(value)
    if measure.endswith("_bytes"):
        return format_bytes(value)
    return f"{value:,.10g}"


def _is_same(old: float, new: float) -> bool:
    """Whether two amounts differ by no more than sums taken in another order do."""
    return math.isclose(old, new, rel_tol=1e-9)


def _relative(old: float, new: float) -> str:
    return f"{(new - old) / old:+z.2%}" if old and not _is_same(old, new) else ""
