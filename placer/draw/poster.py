"""All pictures of a plan on one: map, traffic, time line and pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.draw import svg
from placer.draw.heat_map import traffic_map
from placer.draw.pipeline import pipeline_chart
from placer.draw.placement_map import placement_map
from placer.draw.time_line import time_line
from placer.errors import InputError
from placer.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from xml.etree import ElementTree as Xml

    from placer.cost.step import Step
    from placer.placement.plan import Plan

_WIDTH, _MARGIN, _GAP = 2400.0, 32.0, 24.0
_ROOM = _WIDTH - 2 * _MARGIN
_HEAD = 130.0
_SIDE = 1000.0  # traffic and time line, right of the map


def poster(plan: Plan, step: Step | None, theme: str = "auto") -> str:
    """SVG of every picture that the plan has numbers for.

    The map is on the left, traffic and time line on its right, the pipeline below.

    Parameters
    ----------
    plan : Plan
    step : Step or None
        Cost of its placement, for the pipeline.
    theme : str
        ``auto``, ``light`` or ``dark``.

    Raises
    ------
    InputError
        If the plan does not give its axes.
    """
    main = svg.parsed(placement_map(plan, theme=theme))
    side = list(
        _drawn(lambda: traffic_map(plan, theme), lambda: time_line(plan, theme))
    )
    below = list(_drawn(lambda: pipeline_chart(step, theme))) if step else []
    left = _ROOM - (_SIDE + _GAP if side else 0.0)
    column = sum(svg.height_at(picture, _SIDE) + _GAP for picture in side) - _GAP
    high = max(svg.height_at(main, left), column)
    bottom = sum(svg.height_at(picture, _ROOM) + _GAP for picture in below)
    title = f"{plan.job['name']} on {plan.topology['name']}"
    name = f"{title}: map, traffic, time line and pipeline of the placement"
    root = svg.new_picture(_WIDTH, _HEAD + high + bottom + _MARGIN, theme, name)
    shown = svg.shortened(title, _ROOM, 40)
    svg.write(root, shown, _MARGIN, 68, font_size=40, font_weight="600")
    svg.write(root, _subtitle(plan), _MARGIN, 104, class_="p-soft", font_size=22)
    svg.nest(root, main, (_MARGIN, _HEAD), left)
    y = _HEAD
    for picture in side:
        svg.nest(root, picture, (_MARGIN + left + _GAP, y), _SIDE)
        y += svg.height_at(picture, _SIDE) + _GAP
    for picture in below:
        svg.nest(root, picture, (_MARGIN, _HEAD + high + _GAP), _ROOM)
    return svg.to_text(root)


def _drawn(*pictures: Callable[[], str]) -> Iterator[Xml.Element]:
    """Those for which the plan has numbers."""
    for draw in pictures:
        try:
            yield svg.parsed(draw())
        except InputError:
            continue


def _subtitle(plan: Plan) -> str:
    parts = [f"{plan.world_size:,} GPU{'s' * (plan.world_size != 1)}"]
    if seconds := plan.score.get("step_time_s"):
        parts.append(f"{format_seconds(seconds)} a {plan.period}")
    if plan.bound.get("status") == "optimal":
        parts.append("proved optimal")
    return f" {svg.DOT} ".join(parts)
