"""Tables of a report with bars in them, as HTML that needs no script.

A bar's width is a class: ``w125`` is 12.5 %, ``l125`` starts there (`widths`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from placer.base.units import format_beside, plural
from placer.report.page.findings import homes, parts
from placer.report.page.tiers import kinds_of_tiers

if TYPE_CHECKING:
    from placer.report.page.side import Side

_SIDES = ("old", "new")
_MINUS = "\N{MINUS SIGN}"


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


def _sides(sides: Sequence[Side]) -> Iterator[tuple[str, Side]]:
    yield from zip(_SIDES[-len(sides) :], sides, strict=True)


def group_rows(sides: Sequence[Side]) -> str:
    """A row an axis: how many of its groups each tier holds, before and after."""
    plan = sides[-1].plan
    kinds = kinds_of_tiers(plan)
    home_of = {home.axis: home for home in homes(sides)}
    rows = []
    for axis in plan.score.get("crossings", {}):
        counts = [side.plan.score.get("crossings", {}).get(axis, {}) for side in sides]
        total = sum(counts[-1].values())
        bars = "".join(
            _stack(
                name,
                [
                    (kinds.get(t, "k-net"), n, f"{n:,} in one {t}")
                    for t, n in found.items()
                ],
                max(sum(found.values()), 1),
            )
            for (name, _), found in zip(_sides(sides), counts, strict=True)
        )
        changed = len(sides) > 1 and counts[0] != counts[1]
        home = home_of.get(axis)
        text = _reach(counts)
        if home and home.leaving[-1]:
            text += f": {home.leaving[-1]:,} leave their {home.tier}"
        rows.append(
            f'<tr class="{"moved" if changed else "same"}"><th scope="row">'
            f"<b>{escape(axis)}</b> <small>{total:,} {plural('group', total)}</small>"
            f"</th><td>{bars}</td><td>{escape(text)}</td></tr>"
        )
    return "".join(rows)


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


def _stack(name: str, pieces: Sequence[tuple[str, float, str]], total: float) -> str:
    spans = "".join(
        f'<span class="{kind} w{permille(amount / total)}" title="{escape(told)}">'
        "</span>"
        for kind, amount, told in pieces
        if amount
    )
    return f'<div class="bar {name}">{spans}</div>'


def step_rows(sides: Sequence[Side]) -> str:
    """A row a part of the step: where it lies in the step, its time, its change."""
    found = [parts(side) for side in sides]
    steps = [float(side.plan.score.get("step_time_s", 0.0)) for side in sides]
    longest = max(*steps, 1e-12) if len(steps) > 1 else max(steps[0], 1e-12)
    names = [name for name in found[-1] if any(row.get(name) for row in found)]
    change = {n: found[-1].get(n, 0.0) - found[0].get(n, 0.0) for n in names}
    change["step"] = steps[-1] - steps[0]
    widest = max((abs(seconds) for seconds in change.values()), default=0.0)
    starts = [0.0] * len(sides)
    rows = []
    for name in names:
        bars = ""
        for i, (side, _) in enumerate(_sides(sides)):
            seconds = found[i].get(name, 0.0)
            bars += _bar(f"{side} p-{name.split()[0]}", starts[i], seconds, longest)
            starts[i] += seconds
        values = [row.get(name, 0.0) for row in found]
        rows.append(_step_row(name, bars, values, change[name], widest, longest))
    bars = "".join(
        _bar(f"{side} p-step", 0.0, steps[i], longest)
        for i, (side, _) in enumerate(_sides(sides))
    )
    name = sides[-1].plan.period
    rows.append(_step_row(name, bars, steps, change["step"], widest, longest, True))
    return "".join(rows)


def _bar(kind: str, start: float, length: float, of: float) -> str:
    if not length:
        return ""
    place = f"l{permille(start / of)} w{max(permille(length / of), 1)}"
    return f'<span class="{kind} {place}"></span>'


def _step_row(
    name: str, bars: str, values: Sequence[float], change: float, widest: float,
    longest: float, is_sum: bool = False,
) -> str:  # fmt: skip
    is_flat = abs(change) < 1e-6 * longest
    kind = "flat" if is_flat else "down" if change < 0 else "up"
    cells = "".join(f'<td class="n">{format_beside(v, longest)}</td>' for v in values)
    if len(values) > 1:
        size = 0 if is_flat else max(permille(abs(change) / widest / 2), 2)
        start = 500 - size if change < 0 else 500
        mark = "" if is_flat else f'<span class="d {kind} l{start} w{size}"></span>'
        told = "same" if is_flat else _signed(change, widest)
        cells += f'<td class="div"><div>{mark}</div></td><td class="n dv">{told}</td>'
    total = " sum" if is_sum else ""
    return (
        f'<tr class="{kind}{total}"><th scope="row">{escape(name)}</th>'
        f'<td class="fall"><div>{bars}</div></td>{cells}</tr>'
    )


def _signed(seconds: float, largest: float) -> str:
    sign = "+" if seconds > 0 else _MINUS
    return f"{sign}{format_beside(abs(seconds), largest)}"
