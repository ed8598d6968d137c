"""Traffic of a step as a heat map: an axis a row, a tier a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placer.base.errors import InputError
from placer.base.units import format_bytes, format_bytes_beside
from placer.draw import palette, svg
from placer.draw.line_plot import Scale

if TYPE_CHECKING:
    from xml.etree import ElementTree as Xml

    from placer.placement.plan import Plan

_WIDE, _HIGH = 168.0, 58.0
_LEFT, _TOP, _MARGIN = 110.0, 148.0, 24.0
_LEGEND = 64.0
_BAR, _BAR_STEPS = 220.0, 32
_LEAST_WIDTH = 620.0


def traffic_map(plan: Plan, theme: str = "auto") -> str:
    """SVG of the bytes that every axis sends over every tier in a step.

    Colours follow the logarithm of the bytes, from the least to the most of any cell
    with traffic.
    """
    rows: Mapping[str, Mapping[str, float]] = plan.score.get("traffic_bytes", {})
    sent = [value for row in rows.values() for value in row.values() if value > 0]
    if not sent:
        raise InputError("the plan has no traffic", key="score.traffic_bytes")
    used = dict.fromkeys(tier for row in rows.values() for tier in row)
    tiers = list(plan.topology.get("tiers", ())) or list(used)
    scale = Scale(min(sent), max(sent), 0.0, 1.0, is_log=True)
    width = max(_LEFT + _WIDE * len(tiers) + _MARGIN, _LEAST_WIDTH)
    height = _TOP + _HIGH * len(rows) + _LEGEND
    title = f"Traffic of a {plan.period}: {plan.job['name']}"
    machine = plan.topology["name"]
    root = svg.new_picture(width, height, theme, f"{title} on {machine}")
    total = f"{format_bytes(sum(sent))} sent by {plan.world_size:,} GPUs of {machine}"
    svg.write_heading(root, title, total, _MARGIN, width - 2 * _MARGIN, 18)
    _draw_tiers(root, tiers, plan.topology.get("scale_up", 0))
    for index, (axis, row) in enumerate(rows.items()):
        y = _TOP + index * _HIGH
        words = axis.rsplit(".", 1)  # of a role: its name above what it does
        for line, word in enumerate(words):
            name = svg.shortened(word, _LEFT - _MARGIN - 8, 13)
            at = y + _HIGH / 2 + 4 + 8 * (2 * line + 1 - len(words))
            svg.write(root, name, _MARGIN, at, font_size=13)
        for column, tier in enumerate(tiers):
            size_bytes = row.get(tier, 0.0)
            cell = _Cell(axis, tier, size_bytes, max(sent), sum(sent), plan.period)
            _draw_cell(root, cell, (_LEFT + column * _WIDE, y), scale)
    _draw_scale(root, scale, _TOP + _HIGH * len(rows) + 22)
    return svg.to_text(root)


@dataclass(frozen=True)
class _Cell:
    axis: str
    tier: str
    size_bytes: float
    most: float  # of all
    total: float
    period: str


def _draw_tiers(root: Xml.Element, tiers: Sequence[str], scale_up: int) -> None:
    """Names and colours of the tiers, and brackets over those of NVLink and beyond."""
    colours = palette.of_tiers(len(tiers), scale_up)
    for column, (tier, colour) in enumerate(zip(tiers, colours, strict=True)):
        name = svg.shortened(tier, _WIDE - 8, 13)
        left, middle = _LEFT + column * _WIDE + 2, _LEFT + (column + 0.5) * _WIDE
        svg.write(root, name, middle, _TOP - 12, text_anchor="middle", font_size=13)
        box = {"x": left, "y": _TOP - 6, "width": _WIDE - 4, "height": 4.0}
        svg.add(root, "rect", **box, fill=colour, class_="tier")
    for name, first, end in (
        ("scale-up", 0, scale_up),
        ("scale-out", scale_up, len(tiers)),
    ):
        if end > first:
            left, right = _LEFT + first * _WIDE + 2, _LEFT + end * _WIDE - 2
            line = {"x1": left, "x2": right, "y1": _TOP - 34, "y2": _TOP - 34}
            svg.add(root, "line", **line, class_="p-rule", stroke_width=1.5)
            look = {"text_anchor": "middle", "class_": "p-soft"}
            svg.write(root, name, (left + right) / 2, _TOP - 40, **look, font_size=12)


def _draw_cell(
    root: Xml.Element, cell: _Cell, place: tuple[float, float], scale: Scale
) -> None:
    x, y = place[0] + 2, place[1] + 2
    box = {"x": x, "y": y, "width": _WIDE - 4, "height": _HIGH - 4, "rx": 4.0}
    middle = x + _WIDE / 2 - 2, y + _HIGH / 2 - 3
    data = {"data_axis": cell.axis, "data_bytes": repr(cell.size_bytes)}
    if cell.size_bytes <= 0:
        hover = f"{cell.axis}, {cell.tier} tier: nothing"
        svg.add(root, "rect", hover, **box, class_="p-panel", **data)
        look = {"text_anchor": "middle", "class_": "p-soft"}
        svg.write(root, "\N{EN DASH}", middle[0], middle[1] + 5, **look, font_size=13)
    else:
        share = f"{cell.size_bytes / cell.total:z.2%}"
        hover = (
            f"{cell.axis}, {cell.tier} tier: {cell.size_bytes:,.0f} bytes "
            f"a {cell.period}, {share} of all"
        )
        colour = palette.along(
            scale(cell.size_bytes) if scale.high > scale.low else 1.0
        )
        svg.add(root, "rect", hover, **box, fill=colour, **data)
        ink = {"text_anchor": "middle", "fill": palette.ink_on(colour)}
        text = format_bytes_beside(cell.size_bytes, cell.most)
        svg.write(root, text, *middle, **ink, font_size=15, font_weight="600")
        svg.write(root, share, middle[0], middle[1] + 17, **ink, font_size=11)


def _draw_scale(root: Xml.Element, scale: Scale, y: float) -> None:
    """The colours from the least to the most bytes."""
    x, steps = _LEFT + 2, range(_BAR_STEPS)
    colours = [palette.along(step / (_BAR_STEPS - 1)) for step in steps]
    svg.scale(root, colours, x, y, _BAR, 12.0)
    least, most = format_bytes(scale.low), f"{format_bytes(scale.high)} (logarithmic)"
    soft = {"class_": "p-soft"}
    svg.write(root, least, x - 6, y + 10, text_anchor="end", **soft, font_size=12)
    svg.write(root, most, x + _BAR + 6, y + 10, **soft, font_size=12)


def traffic_rows(plan: Plan) -> list[dict[str, Any]]:
    """``axis``, ``tier`` and ``bytes`` of a step, for every cell with traffic."""
    return [
        {"axis": axis, "tier": tier, "bytes": size_bytes}
        for axis, sent in plan.score["traffic_bytes"].items()
        for tier, size_bytes in sent.items()
    ]
