"""The facts behind a score in words: what sets the step, which group, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placer.base.units import counted, format_seconds, plural
from placer.report.columns import columns, paragraphs, table, wrapped
from placer.report.words import (
    hop_cost,
    largest_island,
    link_cells,
    link_name,
    slowest_host,
)

_SHOWN_LINKS = 5
_SHOWN_HOPS = 8
_SHOWN_RANKS = 6
_SHOWN_DOMAINS = 4
_INDENT = "      "
_ROUNDING = 1e-9
_NEAR = 0.9995  # a ratio this close to 1 is not worth a word

Facts = Mapping[str, Any]


def explain_text(
    explained: Facts, tiers: Sequence[str], scale_up: int, period: str = "step"
) -> str:
    """The facts in words, at most 80 columns wide, without a final newline.

    ``explained``: as ``placer.explain.score.explain`` gives it. ``tiers``: tier names,
    innermost first. ``scale_up``: how many of the tiers are NVLink tiers. ``period``:
    what the score is of: a step, or of a workload a cycle.
    """
    island = largest_island(tiers, scale_up)
    blocks = (
        _critical_path(explained.get("critical_path", ())),
        wrapped(slowest_host(explained.get("slowest_host")), "  "),
        _worst_groups(explained.get("worst_groups", {}), island),
        _slowest_replica(explained.get("slowest_replica"), island),
        _links(explained.get("hottest_links", ()), period),
        _free_scale_out(explained.get("free_scale_out"), island, period),
        _hop_cost(explained.get("hop_cost"), tiers),
    )
    return paragraphs(blocks)


def _critical_path(entries: Sequence[Facts]) -> Iterator[str]:
    """What sets the step, longest first, without what rounding leaves."""
    entries = [entry for entry in entries if entry["share"] > _ROUNDING]
    if not entries:
        return
    yield "critical path, longest first"
    yield from columns(
        [
            (
                f"  {number}. {entry['operation']}",
                format_seconds(entry["seconds"]),
                f"{entry['share']:z.1%}",
            )
            for number, entry in enumerate(entries, 1)
        ]
    )


def _worst_groups(axes: Mapping[str, Facts], island: str) -> Iterator[str]:
    """The worst group of each axis: who, how long, where and why."""
    if axes:
        yield "worst group of each axis"
    for axis, facts in axes.items():
        worst, best = facts["worst"], facts["best"]
        took = f"{format_seconds(worst['seconds'])} for {facts['operation']}"
        if worst["group"] == best["group"]:
            who = f"all {facts['groups']:,} groups alike, such as"
        else:
            who = f"group {worst['group']} of {facts['groups']:,}:"
            seconds, usual = worst["seconds"], best["seconds"]
            share = usual / seconds if seconds else 1.0
            less = f"takes {format_seconds(usual)} ({share:z.1%})"
            less = less if share < _NEAR else "hardly less"
            took += f"; the best group, {best['group']}, {less}"
        text = f"  {axis:<3} {who} ranks {rank_text(worst['ranks'])}"
        yield from wrapped(text, _INDENT)
        yield from _detail(took)
        yield from _detail(where(worst, island))
        reasons = [_reason(name, worst, best, island) for name in facts["why"]]
        if reasons:
            yield from _detail(f"why: {'; '.join(reasons)}")


def _detail(text: str) -> list[str]:
    return wrapped(_INDENT + text, _INDENT + "  ")


def where(facts: Facts, island: str) -> str:
    """Where a group lies: members by scale-up domain and lowest common tier."""
    members = facts["members"]
    if len(members) == 1:
        (name,) = members
        return f"all inside {island} {name}, in one {facts['common_tier']}"
    low, high = min(members.values()), max(members.values())
    if len(members) <= _SHOWN_DOMAINS:
        spread = ", ".join(f"{count} in {name}" for name, count in members.items())
    elif low == high:
        spread = f"{low} in each of {counted(len(members), island)}"
    else:
        spread = f"{low} to {high} in each of {counted(len(members), island)}"
    nics = f"{counted(facts['nics'], 'NIC')} a {island}"
    return f"{spread}; {nics}; together in one {facts['common_tier']}"


def _reason(name: str, worst: Facts, best: Facts, island: str) -> str:
    """One fact in which the worst group is the worse one."""
    if name == "common_tier":
        tier, usual = worst["common_tier"], best["common_tier"]
        return f"it spans one {tier}, the best group one {usual}"
    if name == "members":
        count, usual = len(worst["members"]), len(best["members"])
        return f"it spans {counted(count, island)}, not {usual}"
    if name == "nics":
        return f"it uses {worst['nics']} of a {island}'s NICs, not {best['nics']}"
    if name == "bandwidth_factor":
        share = f"{worst['bandwidth_factor']:z.0%}"
        return f"{worst['slowest_node']} reaches {share} of its bandwidth"
    if name == "hops":
        hops = ", ".join(
            f"{hops} in the {tier} (not {best['hops'][tier]})"
            for tier, hops in worst["hops"].items()
            if hops != best["hops"][tier]
        )
        return f"hops: {hops}"
    link = worst["fullest_uplink"]
    busy = format_seconds(link["busy_s"])
    usual = best["fullest_uplink"]
    instead = f", not {format_seconds(usual['busy_s'])}" if usual else ""
    return f"its fullest link ({link_name(link)}) is busy {busy}{instead}"


def rank_text(ranks: Sequence[int]) -> str:
    """Ranks in short: ``0-3``, ``0, 4``, ``0, 64, 128, ... 8128 (128 ranks)``."""
    if len(ranks) > 1 and ranks[-1] - ranks[0] == len(ranks) - 1:
        return f"{ranks[0]}-{ranks[-1]}"
    if len(ranks) <= _SHOWN_RANKS:
        return ", ".join(map(str, ranks))
    first = ", ".join(map(str, ranks[: _SHOWN_RANKS // 2]))
    return f"{first}, ... {ranks[-1]} ({len(ranks):,} ranks)"


def _slowest_replica(facts: Facts | None, island: str) -> Iterator[str]:
    """The replica that sets the pipeline, and the hops that leave its domain."""
    if facts is None:
        return
    leaving = facts["hops_leaving"]
    yield "slowest replica"
    yield from wrapped(
        f"  replica {facts['replica']} of {facts['replicas']:,}: pipeline "
        f"{format_seconds(facts['pipeline_s'])}, {len(leaving)} of {facts['hops']} "
        f"hops leave the {island}",
        _INDENT,
    )
    yield from table(
        [
            (
                f"    stage {hop['from_stage']} -> {hop['to_stage']}",
                f"{hop['tier']} tier",
                f"{hop['from_domain']} -> {hop['to_domain']}",
                f"{hop['lanes_leaving']} of {hop['lanes']} lanes",
                format_seconds(hop["seconds"]),
            )
            for hop in leaving[:_SHOWN_HOPS]
        ]
    )
    if len(leaving) > _SHOWN_HOPS:
        yield f"    and {len(leaving) - _SHOWN_HOPS} more"
    yield from wrapped(
        f"  {facts['replicas_leaving']:,} of {facts['replicas']:,} replicas have a hop "
        f"that leaves the {island}",
        _INDENT,
    )


def _links(links: Sequence[Facts], period: str) -> Iterator[str]:
    """The busiest links and which axes load them."""
    rows = []
    for link in links[:_SHOWN_LINKS]:
        name, *cells = link_cells(link)
        largest = sorted(link["share_by_axis"].items(), key=lambda item: -item[1])
        shares = ", ".join(f"{axis} {share:z.0%}" for axis, share in largest)
        rows.append((f"  {name}", *cells, shares))
    if rows:
        yield from table(rows, ("busiest links", f"a {period}", "busy", "of it"))


def _free_scale_out(facts: Facts | None, island: str, period: str) -> Iterator[str]:
    """What a fabric that costs nothing would give."""
    if facts is None:
        return
    by_axis = ", ".join(
        f"{axis} {format_seconds(seconds)}"
        for axis, seconds in facts["saved_by_axis_s"].items()
        if abs(seconds) > 1e-9
    )
    of_which = f": {by_axis}" if by_axis else ""
    yield f"free fabric between {plural(island, 2)}"
    yield from wrapped(
        f"  {format_seconds(facts['step_time_s'])} a {period}, "
        f"{format_seconds(facts['saved_s'])} ({facts['saved_share']:z.1%}) "
        f"less{of_which}",
        "  ",
    )


def _hop_cost(
    cost_by_axis: Mapping[str, Mapping[str, float]] | None, tiers: Sequence[str]
) -> Iterator[str]:
    """Hop cost by axis and tier of the hop, and the share of each axis."""
    if not cost_by_axis:
        return
    used = [t for t in tiers if any(t in row for row in cost_by_axis.values())]
    total = sum(sum(row.values()) for row in cost_by_axis.values())
    rows = [
        (
            f"  {axis}",
            *(hop_cost(row[tier]) if tier in row else "-" for tier in used),
            f"{sum(row.values()) / total:z.1%}" if total else "-",
        )
        for axis, row in cost_by_axis.items()
    ]
    yield from table(rows, ("hop cost", *used, "share"))
