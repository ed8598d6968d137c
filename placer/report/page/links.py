"""The busiest uplinks of a report as rows with bars; those alike are one row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.units import format_beside, format_seconds
from placer.cost.links import total_load
from placer.draw.machine_view import short_names
from placer.explain.ways import ways
from placer.report.page.bars import kinds_of_tiers, permille

if TYPE_CHECKING:
    from placer.cost.links import LinkLoad
    from placer.cost.step import Step
    from placer.explain.ways import Way
    from placer.report.page.side import Side

_SHOWN = 6
_NAMED = 4


@dataclass(frozen=True)
class Alike:
    """Links that are in use equally long."""

    # name, remark and hover: what they are, where they lead, and the names of some.
    name: str
    remark: str
    hover: str
    tier: str
    busy_s: float


def busiest(side: Side) -> list[Alike]:
    """The links of a side, the longest in use first."""
    found = list(_listed(side) if side.step is None else _measured(side.step))
    return sorted(found, key=lambda alike: -alike.busy_s)


def _measured(step: Step) -> Iterator[Alike]:
    load = total_load(step.traffic().values())
    if load is None:
        return
    kinds: dict[tuple[int, str, bytes], list[Way]] = {}
    for way in ways(step.model.fabric):
        busy = way.busy_s(load)
        told = np.array([format_seconds(seconds) for seconds in busy.tolist()])
        for text in dict.fromkeys(told[busy > 0].tolist()):
            links = np.flatnonzero(told == text).tobytes()
            kinds.setdefault((way.tier, text, links), []).append(way)
    for (_, _, links), same in kinds.items():
        yield _alike(same, np.frombuffer(links, dtype=np.int64).tolist(), load)


def _alike(same: Sequence[Way], links: Sequence[int], load: LinkLoad) -> Alike:
    """One row of links that are alike, in one direction or both."""
    way = same[0]
    tiers = way.fabric.topology.tiers
    below = tiers[way.tier - 1].name if way.tier else "GPU"
    tier, all_links = tiers[way.tier].name, len(way.capacity)
    names = [way.name(link) for link in links[:_NAMED]]
    busy = float(way.busy_s(load)[links[0]])
    if len(links) == 1:
        remark = " and ".join(other.name(links[0])["direction"] for other in same)
        own = names[0]["domain"]
        known = way.fabric.topology.domain_names[way.tier - 1] if way.tier else [own]
        short = dict(zip(known, short_names(known, below), strict=True)).get(own, own)
        hover = own if own != short else ""
        return Alike(short, f"{remark}, into the {tier}", hover, tier, busy)
    many = f"all {all_links:,}" if len(links) == all_links else ""
    many = many or f"{len(links):,} of {all_links:,}"
    noun = "links" if way.kind == "between" else "uplinks"
    remark = f"{' and '.join(other.kind for other in same)}, into the {tier}"
    if way.kind == "between":
        remark = f"within the {tier}"
    more = ", ..." if len(links) > _NAMED else ""
    hover = ", ".join(f"{name['domain']}" for name in names) + more
    return Alike(f"{many} {below} {noun} alike", remark, hover, tier, busy)


def _listed(side: Side) -> Iterator[Alike]:
    """Those that the score names, where no more is known."""
    for link in side.plan.score.get("hottest_links", []):
        remark = f"{link['direction']}, into the {link['tier']}"
        yield Alike(link["domain"], remark, "", link["tier"], link["busy_s"])


class LinkRow(NamedTuple):
    """Links alike: names, the classes of their bar, and how long they are in use."""

    name: str
    remark: str
    hover: str
    bar: str
    busy: str


class LinkTable(NamedTuple):
    """The busiest links of a side."""

    name: str
    rows: list[LinkRow]


def link_tables(sides: Sequence[Side]) -> Iterator[LinkTable]:
    """The busiest links of each side, all bars to one scale."""
    lists = [busiest(side)[:_SHOWN] for side in sides]
    most = max((alike.busy_s for found in lists for alike in found), default=0.0)
    kinds = kinds_of_tiers(sides[-1].plan)
    for side, found in zip(sides, lists, strict=True):
        yield LinkTable(side.name, [_row(one, most, kinds) for one in found])


def _row(alike: Alike, most: float, kinds: Mapping[str, str]) -> LinkRow:
    width = permille(alike.busy_s / most) if most else 0
    bar = f"w{width} {kinds.get(alike.tier, '')}".strip()
    busy = format_beside(alike.busy_s, most)
    return LinkRow(alike.name, alike.remark, alike.hover, bar, busy)


def links_heading(sides: Sequence[Side]) -> str:
    """What the busiest link does, as a heading."""
    lists = [side.plan.score.get("hottest_links", []) for side in sides]
    busy = [max((link["busy_s"] for link in found), default=0.0) for found in lists]
    now, period = format_seconds(busy[-1]), sides[-1].plan.period
    if not busy[-1]:
        return "No uplink carries anything"
    if len(busy) == 1 or abs(busy[0] - busy[1]) < 1e-6 * busy[0]:
        return f"The busiest uplink is in use for {now} of each {period}"
    word = "less" if busy[1] < busy[0] else "more"
    was = format_seconds(busy[0])
    return (
        f"The busiest uplink carries {word} now: {now} of each {period}, {was} before"
    )
