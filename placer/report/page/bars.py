"""Rows of a report with bars in them and its busiest links: what `bars.html` draws.

A bar's width is a class: ``w125`` is 12.5 %, ``l125`` starts there (`widths`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from placer.base.units import counted, format_beside, format_seconds
from placer.cost.links import LinkLoad, total_load
from placer.cost.step import Step
from placer.draw import palette
from placer.draw.machine_view import short_names
from placer.draw.time_line import PART_COLOURS
from placer.explain.ways import Way, ways
from placer.placement.plan import Plan
from placer.report.page.headlines import homes, parts
from placer.report.page.side import Side

_SIDES = ("old", "new")
_AXES = ("tp", "cp", "ep", "pp", "dp")
_MINUS = "\N{MINUS SIGN}"


class Piece(NamedTuple):
    """A piece of a bar: its classes, and what it says on hover."""

    kind: str
    told: str = ""


class GroupRow(NamedTuple):
    """How many groups of an axis each tier holds: a bar a side, and its pieces."""

    axis: str
    total: str
    moved: bool
    bars: list[tuple[str, list[Piece]]]
    text: str


class StepRow(NamedTuple):
    """A part of the step: where it lies, what it takes on each side, its change.

    ``kind`` is ``down``, ``up`` or ``flat``; without a side to compare with ``change``
    is empty.
    """

    name: str
    kind: str
    bars: list[Piece]
    seconds: list[str]
    change: str
    change_bar: Piece | None


# Of a class such as ``w125``: what it sets, how many make one, and the unit.
_SIZES = {
    "w": ("width", 10, "%"),
    "l": ("left", 10, "%"),
    "h": ("height", 1, "px"),
    "r": ("line-height", 1, "px"),
}


def widths(body: str) -> str:
    """Style rules of all sizes and starts that a body uses."""
    used = {
        name
        for names in re.findall(r'class="([^"]*)"', body)
        for name in names.split()
        if re.fullmatch(r"[wlhr]\d+", name)
    }
    rules = ((name, *_SIZES[name[0]]) for name in sorted(used))
    return "".join(
        f".{name}{{{what}:{int(name[1:]) / one:g}{unit}}}"
        for name, what, one, unit in rules
    )


def permille(share: float) -> int:
    """Thousandths of a share, the number of the class of a width."""
    return round(1000 * min(max(share, 0.0), 1.0))


def group_rows(sides: Sequence[Side]) -> Iterator[GroupRow]:
    """A row an axis, before and after."""
    plan = sides[-1].plan
    kinds = kinds_of_tiers(plan)
    home_of = {home.axis: home for home in homes(sides)}
    for axis in plan.score.get("crossings", {}):
        counts = [side.plan.score.get("crossings", {}).get(axis, {}) for side in sides]
        total = sum(counts[-1].values())
        bars = [
            (name, _pieces(found, kinds))
            for name, found in zip(_SIDES[-len(sides) :], counts, strict=True)
        ]
        text, home = _reach(counts), home_of.get(axis)
        if home and home.leaving[-1]:
            text += f": {home.leaving[-1]:,} leave their {home.tier}"
        many = counted(total, "group")
        yield GroupRow(axis, many, counts[0] != counts[-1], bars, text)


def _pieces(found: Mapping[str, int], kinds: Mapping[str, str]) -> list[Piece]:
    total = max(sum(found.values()), 1)
    return [
        Piece(
            f"{kinds.get(tier, 'k-net')} w{permille(n / total)}", f"{n:,} in one {tier}"
        )
        for tier, n in found.items()
        if n
    ]


def _reach(counts: Sequence[Mapping[str, int]]) -> str:
    """Tiers of the groups, innermost and outermost: ``rack to cluster``."""
    told = []
    for found in counts:
        reached = [tier for tier, count in found.items() if count]
        told.append(" to ".join(dict.fromkeys((*reached[:1], *reached[-1:]))))
    if not all(told):
        return ""
    if len(told) == 1 or told[0] == told[1]:
        return f"inside one {told[-1]}" if " to " not in told[-1] else told[-1]
    return f"{told[0]} \N{RIGHTWARDS ARROW} {told[1]}"


def step_rows(sides: Sequence[Side]) -> Iterator[StepRow]:
    """A row a part of the step, one after the other, and the whole step at the end."""
    found = [parts(side) for side in sides]
    steps = [float(side.plan.score.get("step_time_s", 0.0)) for side in sides]
    longest = max(*steps, 1e-12)
    names = [name for name in found[-1] if any(row.get(name) for row in found)]
    rows = {name: [row.get(name, 0.0) for row in found] for name in names}
    widest = max(abs(row[-1] - row[0]) for row in (*rows.values(), steps))
    starts = [0.0] * len(sides)
    for name, values in rows.items():
        kind = f"p-{name.split()[0]}"
        yield _step_row(name, kind, starts, values, widest, longest)
        starts = [start + own for start, own in zip(starts, values, strict=True)]
    period = sides[-1].plan.period
    row = _step_row(period, "p-step", [0.0] * len(sides), steps, widest, longest)
    yield row._replace(kind=f"{row.kind} sum")


def _step_row(
    name: str, colour: str, starts: Sequence[float], values: Sequence[float],
    widest: float, longest: float,
) -> StepRow:  # fmt: skip
    bars = [
        Piece(f"{side} {colour} {_place(start / longest, length / longest)}")
        for side, start, length in zip(
            _SIDES[-len(values) :], starts, values, strict=True
        )
        if length
    ]
    change = values[-1] - values[0]
    is_flat = abs(change) < 1e-6 * longest
    kind = "flat" if is_flat else "down" if change < 0 else "up"
    seconds = [format_beside(value, longest) for value in values]
    if len(values) == 1:
        return StepRow(name, kind, bars, seconds, "", None)
    if is_flat:
        return StepRow(name, kind, bars, seconds, "same", None)
    size = max(permille(abs(change) / widest / 2), 2)
    bar = Piece(f"d {kind} l{500 - size if change < 0 else 500} w{size}")
    sign = "+" if change > 0 else _MINUS
    told = f"{sign}{format_beside(abs(change), widest)}"
    return StepRow(name, kind, bars, seconds, told, bar)


def _place(start: float, length: float) -> str:
    return f"l{permille(start)} w{max(permille(length), 1)}"


def kinds_of_tiers(plan: Plan) -> dict[str, str]:
    """Class of each tier."""
    return {tier: f"t{t}" for t, tier in enumerate(plan.topology.get("tiers", ()))}


def colours_of_tiers(plan: Plan) -> dict[str, str]:
    """Colour of each tier, the same in bars, maps and legends."""
    tiers = plan.topology.get("tiers", ())
    colours = palette.of_tiers(len(tiers), plan.topology.get("scale_up", 0))
    return dict(zip(tiers, colours, strict=True))


def tier_style(plan: Plan) -> str:
    """Style rules of the classes, and of the parts of a step."""
    joined = set(plan.topology.get("tiers", ())[: plan.topology.get("scale_up", 0)])
    colours, rules = colours_of_tiers(plan), []
    for tier, kind in kinds_of_tiers(plan).items():
        colour = colours[tier]
        hatch = f"repeating-linear-gradient(135deg,{colour} 0 5px,transparent 5px 7px)"
        rules.append(f".{kind}{{background:{colour if tier in joined else hatch}}}")
    parts = (f".fall .p-{a}{{background:{PART_COLOURS[a]}}}" for a in _AXES)
    return "".join((*rules, *parts))


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


def link_tables(sides: Sequence[Side]) -> Iterator[dict[str, Any]]:
    """The busiest links of each side, all bars to one scale."""
    lists = [busiest(side)[:_SHOWN] for side in sides]
    most = max((alike.busy_s for found in lists for alike in found), default=0.0)
    kind = kinds_of_tiers(sides[-1].plan)
    for side, found in zip(sides, lists, strict=True):
        rows = [
            {
                "links": one,
                "bar": _classes(permille(one.busy_s / (most or 1)), kind.get(one.tier)),
                "busy": format_beside(one.busy_s, most),
            }
            for one in found
        ]
        yield {"name": side.name, "rows": rows}


def _classes(width: int, kind: str | None) -> str:
    """Of a bar so wide; a tier that the last plan lacks has no colour."""
    return f"w{width} {kind}" if kind else f"w{width}"


def links_heading(sides: Sequence[Side]) -> str:
    """What the busiest link does, as a heading."""
    lists = [side.plan.score.get("hottest_links", []) for side in sides]
    busy = [max((link["busy_s"] for link in found), default=0.0) for found in lists]
    now, period = format_seconds(busy[-1]), sides[-1].plan.period
    was = format_seconds(busy[0])
    if not busy[-1]:
        before = f" now: {was} of each {period} before" if busy[0] else ""
        return f"No uplink carries anything{before}"
    if len(busy) == 1 or abs(busy[0] - busy[1]) < 1e-6 * busy[0]:
        return f"The busiest uplink is in use for {now} of each {period}"
    word = "less" if busy[1] < busy[0] else "more"
    return (
        f"The busiest uplink carries {word} now: {now} of each {period}, {was} before"
    )
