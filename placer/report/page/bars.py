"""Rows of a report with bars in them: what `bars.html` draws without a script.

A bar's width is a class: ``w125`` is 12.5 %, ``l125`` starts there (`widths`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from placer.base.units import format_beside, plural
from placer.draw import palette
from placer.report.page.findings import homes, parts

if TYPE_CHECKING:
    from placer.placement.plan import Plan
    from placer.report.page.side import Side

_SIDES = ("old", "new")
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


def widths(body: str) -> str:
    """Style rules of all widths and starts that a body uses."""
    used = {
        name
        for names in re.findall(r'class="([^"]*)"', body)
        for name in names.split()
        if re.fullmatch(r"[wl]\d+", name)
    }
    rule = {"w": "width", "l": "left"}
    return "".join(
        f".{name}{{{rule[name[0]]}:{int(name[1:]) / 10:g}%}}" for name in sorted(used)
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
        many = f"{total:,} {plural('group', total)}"
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
    longest = max(*steps, 1e-12) if len(steps) > 1 else max(steps[0], 1e-12)
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
    """Style rules of the classes."""
    joined = set(plan.topology.get("tiers", ())[: plan.topology.get("scale_up", 0)])
    colours, rules = colours_of_tiers(plan), []
    for tier, kind in kinds_of_tiers(plan).items():
        colour = colours[tier]
        hatch = f"repeating-linear-gradient(135deg,{colour} 0 5px,transparent 5px 7px)"
        rules.append(f".{kind}{{background:{colour if tier in joined else hatch}}}")
    return "".join(rules)
