"""Rows of a report with bars in them, links and pipelines: what `bars.html` draws.

A bar's width is a class: ``w125`` is 12.5 %, ``l125`` starts there (`widths`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from placer.base.units import counted, format_beside, format_seconds
from placer.cost.links import LinkLoad, total_load
from placer.cost.step import Step
from placer.draw import palette
from placer.draw.machine_view import short_names
from placer.draw.pipeline import Run, band, micro_batches_text, slowest_run
from placer.draw.time_line import PART_COLOURS
from placer.explain.ways import Way, ways
from placer.placement.plan import Plan
from placer.report.page.headlines import homes, parts
from placer.report.page.side import Side

_SIDES = ("old", "new")
_AXES = ("tp", "cp", "ep", "pp", "dp")
_MINUS = "\N{MINUS SIGN}"


Row = dict[str, Any]

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


def group_rows(sides: Sequence[Side]) -> Iterator[Row]:
    """How many groups of an axis each tier holds, a row an axis.

    ``bars``: one a side, of pieces with their classes and what they say on hover.
    """
    plan = sides[-1].plan
    kinds = kinds_of_tiers(plan)
    home_of = {home.axis: home for home in homes(sides)}
    for axis in plan.score.get("crossings", {}):
        counts = [side.plan.score.get("crossings", {}).get(axis, {}) for side in sides]
        total = sum(counts[-1].values())
        text, home = _reach(counts), home_of.get(axis)
        if home and home.leaving[-1]:
            text += f": {home.leaving[-1]:,} leave their {home.tier}"
        yield {
            "axis": axis,
            "total": counted(total, "group"),
            "moved": counts[0] != counts[-1],
            "bars": [
                (name, _pieces(found, kinds))
                for name, found in zip(_SIDES[-len(sides) :], counts, strict=True)
            ],
            "text": text,
        }


def _pieces(
    found: Mapping[str, int], kinds: Mapping[str, str]
) -> list[tuple[str, str]]:
    total = max(sum(found.values()), 1)
    return [
        (f"{kinds.get(tier, 'k-net')} w{permille(n / total)}", f"{n:,} in one {tier}")
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


def step_rows(sides: Sequence[Side]) -> Iterator[Row]:
    """A row a part of the step, one after the other, and the whole step at the end.

    ``bars`` are the classes of one a side: where the part lies. Without a side to
    compare with ``change`` is empty; its ``kind`` is ``down``, ``up`` or ``flat``.
    """
    found = [parts(side) for side in sides]
    steps = [float(side.plan.score.get("step_time_s", 0.0)) for side in sides]
    longest = max(*steps, 1e-12)
    names = [name for name in found[-1] if any(row.get(name) for row in found)]
    rows = {name: [row.get(name, 0.0) for row in found] for name in names}
    widest = max(abs(row[-1] - row[0]) for row in (*rows.values(), steps))
    starts = [0.0] * len(sides)
    for name, values in rows.items():
        colour = f"p-{name.split()[0]}"
        yield _step_row(name, colour, starts, values, widest, longest)
        starts = [start + own for start, own in zip(starts, values, strict=True)]
    period, starts = sides[-1].plan.period, [0.0] * len(sides)
    row = _step_row(period, "p-step", starts, steps, widest, longest)
    yield row | {"kind": f"{row['kind']} sum"}


def _step_row(
    name: str, colour: str, starts: Sequence[float], values: Sequence[float],
    widest: float, longest: float,
) -> Row:  # fmt: skip
    ends = zip(_SIDES[-len(values) :], starts, values, strict=True)
    change = values[-1] - values[0]
    is_flat = abs(change) < 1e-6 * longest
    kind = "flat" if is_flat else "down" if change < 0 else "up"
    row: Row = {
        "name": name,
        "kind": kind,
        "bars": [
            f"{side} {colour} l{permille(start / longest)} "
            f"w{max(permille(length / longest), 1)}"
            for side, start, length in ends
            if length
        ],
        "seconds": [format_beside(value, longest) for value in values],
        "change": "same" if len(values) > 1 else "",
        "change_bar": "",
    }
    if is_flat:
        return row
    size = max(permille(abs(change) / widest / 2), 2)
    start, sign = (500 - size, _MINUS) if change < 0 else (500, "+")
    told = f"{sign}{format_beside(abs(change), widest)}"
    return row | {"change": told, "change_bar": f"d {kind} l{start} w{size}"}


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


def busiest(side: Side) -> list[Row]:
    """The links of a side, the longest in use first; those in use equally long as one.

    ``name``, ``remark`` and ``hover``: what they are, where they lead, and the names of
    some.
    """
    if side.step is not None:
        found = [*_measured(side.step)]
    else:  # those that the score names: no more is known
        found = [
            {
                "name": link["domain"],
                "remark": f"{link['direction']}, into the {link['tier']}",
                "hover": "",
                "tier": link["tier"],
                "busy_s": link["busy_s"],
            }
            for link in side.plan.score.get("hottest_links", [])
        ]
    return sorted(found, key=lambda alike: -alike["busy_s"])


def _measured(step: Step) -> Iterator[Row]:
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


def _alike(same: Sequence[Way], links: Sequence[int], load: LinkLoad) -> Row:
    """One row of links that are alike, in one direction or both."""
    way = same[0]
    tiers = way.fabric.topology.tiers
    below = tiers[way.tier - 1].name if way.tier else "GPU"
    tier, all_links = tiers[way.tier].name, len(way.capacity)
    row: Row = {"tier": tier, "busy_s": float(way.busy_s(load)[links[0]])}
    names = [way.name(link) for link in links[:_NAMED]]
    if len(links) == 1:
        remark = " and ".join(other.name(links[0])["direction"] for other in same)
        own = names[0]["domain"]
        known = way.fabric.topology.domain_names[way.tier - 1] if way.tier else [own]
        short = dict(zip(known, short_names(known, below), strict=True)).get(own, own)
        hover = own if own != short else ""
        return row | {
            "name": short,
            "remark": f"{remark}, into the {tier}",
            "hover": hover,
        }
    many = f"all {all_links:,}" if len(links) == all_links else ""
    many = many or f"{len(links):,} of {all_links:,}"
    noun = "links" if way.kind == "between" else "uplinks"
    remark = f"{' and '.join(other.kind for other in same)}, into the {tier}"
    if way.kind == "between":
        remark = f"within the {tier}"
    hover = ", ".join(name["domain"] for name in names) + ", ..." * (
        len(links) > _NAMED
    )
    return row | {
        "name": f"{many} {below} {noun} alike",
        "remark": remark,
        "hover": hover,
    }


def link_tables(sides: Sequence[Side]) -> Iterator[Row]:
    """The busiest links of each side, all bars to one scale.

    A tier that the last plan lacks has no colour.
    """
    lists = [busiest(side)[:_SHOWN] for side in sides]
    most = max((alike["busy_s"] for found in lists for alike in found), default=0.0)
    kind = kinds_of_tiers(sides[-1].plan)
    for side, found in zip(sides, lists, strict=True):
        for one in found:
            width = f"w{permille(one['busy_s'] / (most or 1))}"
            one["bar"] = " ".join(filter(None, (width, kind.get(one["tier"]))))
            one["busy"] = format_beside(one["busy_s"], most)
        yield {"name": side.name, "rows": found}


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


# Pixels of all stages of a side, unless these are many, and of one.
_HIGH, _LEAST_ROW, _MOST_ROW = 96, 11, 14
_APART = 0.06  # of the width: times closer than that would cover each other
_SAME_S = 1e-6


def pipelines(sides: Sequence[Side]) -> dict[str, Any]:
    """What the page says of pipelines, and draws; no ``runs`` where times are unknown.

    A run has ``bands``: names of stages, pixels of each, and the SVG of their work.
    """
    steps = [(side.name, side.step) for side in sides]
    runs = [
        (name, slowest_run(step))
        for name, step in steps
        if step is not None and step.model.job.model is not None
    ]
    if not runs:
        return {"runs": []}
    longest = max(run.total_s for _, run in runs)
    stages = max(len(run.stages) for _, run in runs)
    row = max(_LEAST_ROW, min(_MOST_ROW, _HIGH // stages))
    return {
        "runs": [_shown(name, run, longest, row) for name, run in runs],
        "pipe_heading": _heading([run for _, run in runs]),
        "pipe_line": _line([run for _, run in runs]),
        "pipe_legend": dict(entry for _, run in runs for entry in run.legend),
    }


def _shown(name: str, run: Run, longest_s: float, row: int) -> dict[str, Any]:
    total, pipeline = (s / longest_s for s in (run.total_s, run.pipeline_s))
    return {
        "name": name,
        "bands": [(own, row, band(run, own, longest_s)) for own in run.bands],
        "left_out": run.left_out,
        "total": (permille(total), format_seconds(run.total_s)),
        "pipeline": (permille(pipeline), format_seconds(run.pipeline_s))
        if total - pipeline > _APART
        else None,
    }


def _heading(runs: Sequence[Run]) -> str:
    change = runs[0].pipeline_s - runs[-1].pipeline_s
    if abs(change) <= _SAME_S:
        last = format_seconds(runs[-1].pipeline_s)
        return f"The slowest replica's pipeline takes {last}"
    word = "sooner" if change > 0 else "later"
    return f"The slowest replica's pipeline ends {format_seconds(abs(change))} {word}"


def _line(runs: Sequence[Run]) -> str:
    first, last = runs[0].replica, runs[-1].replica
    which = f"{first} before, {last} after" if first != last else f"{last}"
    return f"Replica {which}. A row is a stage, {micro_batches_text(runs[-1])}."
