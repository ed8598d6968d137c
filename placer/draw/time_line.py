"""One step as a bar: compute, bubble, what each axis adds, and the scale-out part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placer.base.errors import InputError
from placer.base.units import format_beside, format_seconds
from placer.draw import palette, svg

if TYPE_CHECKING:
    from xml.etree import ElementTree as Xml

    from placer.placement.plan import Plan

_WIDTH, _MARGIN = 1200.0, 24.0
_ROOM = _WIDTH - 2 * _MARGIN
_BAR_TOP, _BAR_HIGH = 104.0, 46.0
_ZOOM_TOP, _ZOOM_HIGH = 196.0, 46.0
_LINE = 24.0
PART_COLOURS = {
    "compute": "#56b4e9",
    "bubble": "#5b6570",
    "fixed": "#c3cad3",
    "tp": "#0072b2",
    "cp": "#009e73",
    "ep": "#cc79a7",
    "pp": "#e69f00",
    "dp": "#d55e00",
}
_CUSTOM = ("#882255", "#44aa99", "#f0e442")  # the first two: P. Tol (2021), "muted"
_WITHIN = {"compute_s": "compute", "bubble_s": "bubble", "fixed_s": "fixed"}


@dataclass(frozen=True)
class Part:
    """Seconds of a step with one cause."""

    name: str
    seconds: float
    colour: str
    exposed: bool  # whether it is communication that nothing hides


def time_line(plan: Plan, theme: str = "auto") -> str:
    """SVG of what one step of a plan consists of.

    The first bar is the step; the second its exposed communication, enlarged, with the
    part that free scale-out links would save.
    """
    step = plan.score.get("step_time_s", 0.0)
    parts = list(parts_of(plan))
    if step <= 0 or not parts:
        raise InputError("the plan has no times", key="score.step_time_s")
    exposed = [part for part in parts if part.exposed]
    top = _ZOOM_TOP + _ZOOM_HIGH + 56 if exposed else _BAR_TOP + _BAR_HIGH + 36
    title = f"Time of a {plan.period}: {plan.job['name']} on {plan.topology['name']}"
    root = svg.new_picture(_WIDTH, top + _LINE * len(parts) + 4, theme, title)
    subtitle = f"{format_seconds(step)} a {plan.period}"
    svg.write_heading(root, title, subtitle, _MARGIN, _ROOM, 18)
    layer = svg.add(root, "g", class_="step")
    _draw_bar(layer, parts, (_MARGIN, _BAR_TOP, _BAR_HIGH), step)
    if exposed:
        _draw_exposed(root, exposed, plan)
    _draw_table(root, parts, step, top)
    return svg.to_text(root)


def parts_of(plan: Plan) -> Iterator[Part]:
    """The parts of a step that take any time, exposed communication last."""
    score = plan.score
    for key, name in _WITHIN.items():
        if score.get(key, 0.0) > 0:
            yield Part(name, score[key], PART_COLOURS[name], False)
    if roles := score.get("roles"):
        slowest = max(role["seconds"] for role in roles.values())
        if slowest > 0:
            yield Part("slowest role", slowest, PART_COLOURS["compute"], False)
    yield from exposed_parts(score.get("exposed_s", {}))


def exposed_parts(exposed_s: Mapping[str, float]) -> Iterator[Part]:
    """The parts of exposed communication that take any time, by axis or group."""
    own = 0
    for axis, seconds in exposed_s.items():
        if seconds > 0:
            colour = PART_COLOURS.get(axis, _CUSTOM[own % len(_CUSTOM)])
            own += axis not in PART_COLOURS
            yield Part(f"exposed {axis}", seconds, colour, True)


def time_rows(plan: Plan) -> list[dict[str, Any]]:
    """``part``, ``seconds`` and whether it is ``exposed`` communication, in turn."""
    return [
        {"part": part.name, "seconds": part.seconds, "exposed": part.exposed}
        for part in parts_of(plan)
    ]


def _draw_bar(
    parent: Xml.Element,
    parts: Sequence[Part],
    place: tuple[float, float, float],
    step: float,
) -> None:
    """Parts side by side over the whole width; ``place`` is left, top and height."""
    x, y, height = place
    total = sum(part.seconds for part in parts)
    for part in parts:
        width = part.seconds / total * _ROOM
        box = {"x": x, "y": y, "width": width, "height": height}
        look = {"fill": part.colour, "class_": "part"}
        data = {"data_seconds": repr(part.seconds)}
        share = f"{part.seconds / step:z.2%} of the step"
        hover = f"{part.name}: {format_seconds(part.seconds)}, {share}"
        svg.add(parent, "rect", hover, **box, **look, **data)
        ink = {"text_anchor": "middle", "fill": palette.ink_on(part.colour)}
        middle = x + width / 2
        lines = part.name, format_seconds(part.seconds)
        if max(svg.text_width(line, 12) for line in lines) + 6 <= width:
            svg.write(parent, lines[0], middle, y + height / 2 - 3, **ink)
            bold = {"font_weight": "600", **ink}
            svg.write(parent, lines[1], middle, y + height / 2 + 14, **bold)
        x += width


def _draw_exposed(root: Xml.Element, exposed: Sequence[Part], plan: Plan) -> None:
    """The exposed parts over the whole width, and how much of them is scale-out."""
    seconds = sum(part.seconds for part in exposed)
    right = _MARGIN + _ROOM
    above, below = _BAR_TOP + _BAR_HIGH, _ZOOM_TOP
    share = seconds / plan.score["step_time_s"]
    left = right - min(share, 1.0) * _ROOM
    fan = f"M{svg.number(left)} {above}L{_MARGIN} {below}H{right}V{above}Z"
    svg.add(root, "path", d=fan, class_="p-panel")
    text = f"exposed communication: {format_seconds(seconds)} ({share:z.1%})"
    svg.write(root, text, right - 8, below - 12, text_anchor="end", class_="p-soft")
    layer = svg.add(root, "g", class_="exposed")
    place = _MARGIN, _ZOOM_TOP, _ZOOM_HIGH
    _draw_bar(layer, exposed, place, plan.score["step_time_s"])
    across = plan.score.get("exposed_scale_out_s", 0.0)
    if across > 0:
        _draw_scale_out(root, across, right - min(across / seconds, 1.0) * _ROOM, right)


def _draw_scale_out(
    root: Xml.Element, seconds: float, left: float, right: float
) -> None:
    """A bracket as long as the time that free scale-out links would save."""
    y = _ZOOM_TOP + _ZOOM_HIGH + 6
    text = f"scale-out: {format_seconds(seconds)}, saved if those links were free"
    path = f"M{svg.number(left)} {y}v7H{svg.number(right)}v-7"
    look = {"class_": "p-out", "fill": "none", "data_seconds": repr(seconds)}
    svg.add(root, "path", text, d=path, stroke_width=1.5, **look)
    end = {"text_anchor": "end", "class_": "p-soft"}
    svg.write(root, text, right, y + 24, **end)


def _draw_table(
    root: Xml.Element, parts: Sequence[Part], step: float, top: float
) -> None:
    longest, end = max(part.seconds for part in parts), {"text_anchor": "end"}
    for line, part in enumerate(parts):
        y = top + line * _LINE
        svg.swatch(root, _MARGIN, y - 4, rx=2.0, fill=part.colour)
        name = svg.shortened(part.name, 220, 13)
        svg.write(root, name, _MARGIN + svg.SWATCH + 8, y, font_size=13)
        seconds, share = format_beside(part.seconds, longest), part.seconds / step
        svg.write(root, seconds, 360, y, **end, font_size=13)
        svg.write(root, f"{share:z.2%}", 440, y, **end, font_size=13, class_="p-soft")
