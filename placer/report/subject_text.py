"""Ranks, groups and hosts of a plan in words: where, with whom, what for, what else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placer.base.hostlist import compress
from placer.base.units import counted, format_bandwidth, format_bytes, format_seconds
from placer.report.columns import WIDTH, fitted, paragraphs
from placer.report.explain_text import rank_text, where
from placer.report.words import amount, hop_cost, largest_island

Facts = Mapping[str, Any]

_SHOWN_MEMBERS = 16
_SHOWN_HOSTS = 60  # characters
_SAME = 1e-9  # relative difference that is none


def subjects_text(
    explained: Facts,
    tiers: Sequence[str],
    scale_up: int,
    width: int = WIDTH,
    period: str = "step",
) -> str:
    """What `placer.explain` found, at most 80 columns wide, without a final newline.

    ``explained``: as ``placer.api.explain.explain`` gives it. ``tiers``: tier names,
    innermost first. ``scale_up``: how many of the tiers are NVLink tiers. ``width``:
    columns at most. ``period``: what the score is of: a step, or of a workload a cycle.
    """
    island = largest_island(tiers, scale_up)
    return paragraphs(
        fitted(block, width)
        for subject in explained["subjects"]
        for block in (
            _head(subject),
            # The groups that it is in, or itself.
            *(
                _group(facts, island, period)
                for facts in subject.get("groups") or [subject.get("facts")]
                if facts
            ),
            _messages(subject.get("messages", {})),
            _members(subject.get("members", ())),
            _exchanges(subject["exchanges"], explained),
        )
    )


def _head(subject: Facts) -> Iterator[str]:
    """Who and where."""
    if "facts" in subject:
        return
    if "ranks" in subject:
        ranks = [seat["rank"] for seat in subject["ranks"]]
        yield f"host {subject['host']}: ranks {rank_text(ranks)}"
        at = _ranges([seat["coordinates"] for seat in subject["ranks"]])
    else:
        yield f"rank {subject['rank']}: GPU {subject['gpu']} of {subject['host']}"
        at = _ranges([subject["coordinates"]])
    outer = list(subject["domains"].items())[1:-1]
    yield from _detail(", ".join(f"{tier} {name}" for tier, name in outer))
    if "compute_factor" in subject:
        yield from _detail(
            f"works at {subject['compute_factor']:z.0%} of the usual speed"
        )
    yield from _detail(at)


def _ranges(coordinates: Sequence[Mapping[str, int]]) -> str:
    """``tp 0-3, dp 37``: the coordinates that some ranks have."""
    parts = []
    for axis in coordinates[0]:
        values = sorted({entry[axis] for entry in coordinates})
        parts.append(f"{axis} {rank_text(values)}")
    return ", ".join(parts)


def _group(facts: Facts, island: str, period: str) -> Iterator[str]:
    """One group: where it lies, whom it joins, what it sends and costs."""
    name = f"{facts['axis']}:{facts['group']}"
    ranks = rank_text(facts["ranks"])
    count = f"of {facts['groups']:,}"
    yield f"group {name} {count}: ranks {ranks}"
    if "through" in facts:
        yield from _detail(f"the slowest of {facts['through']} through this host")
    yield from _detail(where(facts, island))
    if facts["bandwidth_factor"] < 1:
        share = f"{facts['bandwidth_factor']:z.0%}"
        yield from _detail(f"{facts['slowest_node']} reaches {share} of its bandwidth")
    yield from _detail(_neighbours(facts.get("neighbours", {})))
    yield from _sent(facts, period)
    if "seconds" in facts:
        yield from _detail(_speed(facts))
        added = format_seconds(facts["exposed_s"])
        yield from _detail(
            f"{facts['exposed_axis']} adds {added} to the {period}; {_alone(facts)}"
        )
    if "hop_cost" in facts:
        yield from _detail(f"hop cost {hop_cost(facts['hop_cost'])}")


def _neighbours(found: Mapping[str, Sequence[Facts]]) -> str:
    """Whom a rank talks to."""
    if "all" in found:
        tiers = Counter(hop["tier"] for hop in found["all"])
        counts = ", ".join(f"{count} in the {tier}" for tier, count in tiers.items())
        return f"talks to all {len(found['all'])} others: {counts}"
    words = {"next": "sends to", "previous": "receives from"}
    if len(found) == 2 and found["next"] == found["previous"]:
        return f"exchanges with {_hop(found['next'][0])}"
    return ", ".join(f"{words[key]} {_hop(hops[0])}" for key, hops in found.items())


def _hop(hop: Facts) -> str:
    return f"rank {hop['rank']} on {hop['host']}:{hop['gpu']} ({hop['tier']})"


def _sent(facts: Facts, period: str) -> Iterator[str]:
    """Bytes by tier with what a GPU reaches there, and the uplinks of each tier."""
    sent = [
        f"{format_bytes(size)} at the {tier} tier"
        f" ({format_bandwidth(facts['bandwidth'][tier])} a GPU)"
        for tier, size in facts.get("bytes_by_tier", {}).items()
    ]
    if sent:
        yield from _detail(f"sends a {period}: {', '.join(sent)}")
    by_tier: dict[str, list[Facts]] = {}
    for link in facts.get("links", ()):
        by_tier.setdefault(link["tier"], []).append(link)
    for tier, links in by_tier.items():
        busiest, count = links[0], f"{len(links):,} links into the {tier} tier"
        yield from _detail(
            f"{count}, {busiest['domain']} {busiest['direction']} the busiest "
            f"({format_bandwidth(busiest['bandwidth'])}): "
            f"{format_bytes(busiest['bytes'])} of this group, {busiest['share']:z.1%} "
            f"of what keeps it busy {format_seconds(busiest['busy_s'])} a {period}"
        )


def _messages(ways: Mapping[str, Facts]) -> Iterator[str]:
    """What a rank sends and receives beside its groups."""
    if ways:
        yield "messages"
    for way, facts in ways.items():
        tiers = ", ".join(
            f"{format_bytes(size)} at the {tier} tier"
            for tier, size in facts["bytes_by_tier"].items()
        )
        ends = "to" if way == "sends" else "from"
        count, largest = facts["ranks"], facts["largest"]
        yield from _detail(f"{way} {tiers}, {ends} {counted(count, 'rank')}:")
        for hop in largest:
            yield f"    {format_bytes(hop['bytes'])} {ends} {_hop(hop)}"
        if count > len(largest):
            yield f"    and {count - len(largest):,} more"


def _speed(facts: Facts) -> str:
    """How long one operation takes, beside the other groups of the axis."""
    took = f"{format_seconds(facts['seconds'])} for {facts['operation']}"
    slack = _SAME * facts["slowest_s"]
    fastest, slowest = (format_seconds(facts[k]) for k in ("fastest_s", "slowest_s"))
    if facts["groups"] == 1:
        return took
    if facts["slowest_s"] - facts["fastest_s"] <= slack:
        return f"{took}, as for all {facts['groups']:,} groups"
    if facts["slowest_s"] - facts["seconds"] > slack:
        return f"{took}; {slowest} for the slowest group"
    others = facts["as_slow"] - 1
    alike = f", as {counted(others, 'other')}" if others else ""
    return f"{took}: the slowest{alike}; {fastest} for the fastest"


def _alone(facts: Facts) -> str:
    """What would be gained if nobody waited for this group."""
    alone = format_seconds(facts["alone_s"])
    if facts["alone_s"] > _SAME * facts["exposed_s"]:
        return f"if it did not wait for this group it would be {alone} shorter"
    return "without this group it would be as long, as others take as long"


def _members(members: Sequence[Facts]) -> Iterator[str]:
    """Where the members of a group are."""
    if not members:
        return
    yield "members"
    for seat in members[:_SHOWN_MEMBERS]:
        at = _ranges([seat["coordinates"]])
        yield from _detail(
            f"rank {seat['rank']} on {seat['host']}:{seat['gpu']} ({at})"
        )
    if len(members) > _SHOWN_MEMBERS:
        yield f"  and {len(members) - _SHOWN_MEMBERS:,} more"


def _exchanges(kinds: Sequence[Facts], explained: Facts) -> Iterator[str]:
    """The exchanges that the plan refuses, by kind of unit."""
    if not kinds:
        return
    objective = explained["objective"]
    tried = sum(kind["tried"] for kind in kinds)
    best = [kind["best"]["change"] for kind in kinds if kind["best"]]
    slack = _SAME * abs(explained["value"])
    if best and min(best) < -slack:
        verdict = "one is better than the plan"
    else:
        verdict = "none is better" + " (proved optimal)" * explained["proved"]
    others = sum(kind["others"] for kind in kinds)
    yield f"exchanges: {tried:,} of {others:,} tried, {verdict}"
    for kind in kinds:
        yield f"  {_kind(kind, objective, slack)}"


def _kind(kind: Facts, objective: str, slack: float) -> str:
    """Exchanges of one kind of unit: the cheapest legal one, and what others break."""
    who = kind["unit"]
    if len(kind["ranks"]) > 1:
        who += f" {rank_text(kind['ranks'])}"
    parts = []
    best, after = kind["best"], kind["next"]
    if best is None:
        parts.append(f"none of {kind['tried']:,} tried is legal")
    elif abs(best["change"]) > slack:
        parts.append(f"the best costs {_change(best, objective)}")
    else:
        parts.append(f"{kind['same']:,} of {kind['legal']:,} legal cost the same")
    if after is not None and after is not best:
        parts.append(f"the next costs {_change(after, objective)}")
    if kind["breaks"]:
        rules = ", ".join(f"{rule} {n:,}" for rule, n in kind["breaks"].items())
        parts.append(f"refused by {rules}")
    illegal = kind["best_illegal"]
    if illegal is not None and illegal["change"] < -slack:
        parts.append(f"the best of these would cost {_change(illegal, objective)}")
    return f"{who}: {'; '.join(parts)}"


def _change(exchange: Facts, objective: str) -> str:
    """``+1.2 ms with n04``."""
    change = exchange["change"]
    sign = "+" if change > 0 else "-"
    return f"{sign}{amount(objective, abs(change))} with {_hosts(exchange)}"


def _hosts(exchange: Facts) -> str:
    """The other unit: its rank, or its hosts."""
    hosts = exchange["hosts"]
    if len(exchange["with"]) == 1:
        return f"rank {exchange['with'][0]} on {hosts[0]}"
    shown = compress(hosts)
    if len(shown) > _SHOWN_HOSTS:
        shown = f"{hosts[0]} and {len(hosts) - 1} more"
    return shown


def _detail(text: str) -> list[str]:
    return [f"  {text}"] if text else []
