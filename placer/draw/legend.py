"""The legend of a map: what its colours and outlines mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.draw import palette, svg

if TYPE_CHECKING:
    from xml.etree import ElementTree as Xml

    from placer.draw.content import Content
    from placer.draw.grouping import Grouping

_SWATCH = 14.0
_BAR = 224.0
_FONT = 13.0
_LINE = 26.0


def draw_legend(
    root: Xml.Element,
    content: Content,
    leaving: str,
    is_mixed: bool,
    place: tuple[float, float],
) -> None:
    """Two lines: the colours of the values, then what of the groups leaves its domain.

    Parameters
    ----------
    root : Element
    content : Content
    leaving : str
        The second line.
    is_mixed : bool
        Whether some cell holds more values than colours tell apart.
    place : (float, float), pixels
        Left end of the first line's middle.
    """
    legend = svg.add(root, "g", class_="legend")
    x, y = place
    if content.groups.is_ordered:
        _draw_scale(legend, content.groups, x, y)
    else:
        _draw_swatches(legend, content.groups, is_mixed, x, y)
    y += _LINE
    if content.outlined.any():
        box = {"x": x + 1, "y": y - 6, "width": 12.0, "height": 12.0}
        svg.add(legend, "rect", **box, class_="p-out", fill="none", stroke_width=2.0)
        x += _SWATCH + 8
    svg.write(legend, leaving, x, y + 4.5, font_size=_FONT)


def _draw_scale(legend: Xml.Element, groups: Grouping, x: float, y: float) -> None:
    """Shades from the first value to the last."""
    values = groups.values
    first, last = f"{groups.value_noun} {values[0]:,}", f"{values[-1]:,}"
    svg.write(legend, first, x, y + 4.5, font_size=_FONT)
    x += svg.text_width(first, _FONT) + 6
    steps = min(len(values), palette.SHADES)
    for step in range(steps):
        colour = groups.colour(values[-(-step * len(values) // steps)])
        box = {"x": x + step * _BAR / steps, "y": y - 7, "height": _SWATCH}
        svg.add(legend, "rect", **box, width=_BAR / steps + 0.3, fill=colour)
    svg.write(legend, last, x + _BAR + 6, y + 4.5, font_size=_FONT)


def _draw_swatches(
    legend: Xml.Element, groups: Grouping, is_mixed: bool, x: float, y: float
) -> None:
    """A swatch a value; of more values than colours, what the colours tell."""
    svg.write(legend, groups.value_noun, x, y + 4.5, font_size=_FONT)
    x += svg.text_width(groups.value_noun, _FONT) + 8
    if groups.repeats:
        for colour in palette.DISTINCT:
            box = {"x": x, "y": y - 7, "width": _SWATCH, "height": _SWATCH}
            svg.add(legend, "rect", **box, fill=colour)
            x += _SWATCH
        text = (
            f"{groups.name(groups.values[0])} to {groups.name(groups.values[-1])}: "
            f"{_meaning(groups)}"
        )
        svg.write(legend, text, x + 8, y + 4.5, font_size=_FONT)
        if is_mixed:
            x += svg.text_width(text, _FONT) + 20
            box = {"x": x, "y": y - 7, "width": _SWATCH, "height": _SWATCH}
            svg.add(legend, "rect", **box, class_="p-mixed")
            text = f"parts of more than {len(palette.DISTINCT)}"
            svg.write(legend, text, x + _SWATCH + 6, y + 4.5, font_size=_FONT)
        return
    for value in groups.values:
        box = {"x": x, "y": y - 7, "width": _SWATCH, "height": _SWATCH, "rx": 2.0}
        svg.add(legend, "rect", **box, fill=groups.colour(value))
        name = groups.name(value)
        svg.write(legend, name, x + _SWATCH + 4, y + 4.5, font_size=_FONT)
        x += _SWATCH + 4 + svg.text_width(name, _FONT) + 10


def _meaning(groups: Grouping) -> str:
    """What one colour in two places says."""
    if groups.colours is not None and groups.colours.are_apart:
        return f"neighbours differ, one colour across a gap is one {groups.group_noun}"
    return "colours repeat, numbers tell them apart"
