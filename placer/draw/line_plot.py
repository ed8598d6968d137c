"""Line plots as SVG: panels one below the other over a common horizontal axis.

Every series has a colour and a marker of its own, so that neither colour vision nor a
colour printer is needed to tell them apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placer.draw import palette, svg

if TYPE_CHECKING:
    from xml.etree import ElementTree as Xml

MARKERS = ("circle", "square", "diamond", "triangle")

WIDTH, PANEL_HEIGHT = 720, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 24, 34, 52
_LEGEND_LINE = 18
_RADIUS = 4.0
_LABEL_GAP = 44  # pixels between the labels of two ticks, at least


@dataclass(frozen=True)
class Series:
    """Points of one line: ``(x, y, text on hover)``; y is None where there is none."""

    name: str
    points: tuple[tuple[float, float | None, str], ...]


@dataclass(frozen=True)
class Panel:
    """One plot of a figure.

    Attributes
    ----------
    title : str
    series : tuple of Series
    label : callable
        Text of a value of the vertical axis.
    """

    title: str
    series: tuple[Series, ...]
    label: Callable[[float], str]


@dataclass(frozen=True)
class _Scale:
    """Maps values to pixels, by their logarithm when they span a factor of ten."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.is_log:
            value, low, high = math.log(value), math.log(low), math.log(high)
        if high == low:
            return (self.start + self.end) / 2
        return self.start + (value - low) / (high - low) * (self.end - self.start)


def line_plot(
    panels: Sequence[Panel],
    x_label: str,
    x_text: Callable[[float], str],
    theme: str = "auto",
) -> str:
    """The figure as an SVG document.

    Parameters
    ----------
    panels : sequence of Panel
        Their vertical axes start at zero.
    x_label : str
        What the horizontal axis shows.
    x_text : callable
        Text of one of its values.
    theme : str
        ``auto``, ``light`` or ``dark``.
    """
    names = [series.name for series in panels[0].series]
    legend = _LEGEND_LINE * len(names) if len(names) > 1 else 0
    height = PANEL_HEIGHT * len(panels) + legend + 12
    name = " and ".join(panel.title for panel in panels)
    root = svg.new_picture(WIDTH, height, theme, name)
    values = sorted(
        {x for panel in panels for line in panel.series for x, _, _ in line.points}
    )
    x = _horizontal(values)
    for index, panel in enumerate(panels):
        top = index * PANEL_HEIGHT
        group = svg.add(root, "g", class_="panel", transform=f"translate(0 {top})")
        _draw_panel(group, panel, x, values, x_text)
        middle = (_LEFT + WIDTH - _RIGHT) / 2
        svg.write(group, x_label, middle, PANEL_HEIGHT - 12, text_anchor="middle")
    if legend:
        _draw_legend(root, names, PANEL_HEIGHT * len(panels) + 8)
    return svg.to_text(root)


def _horizontal(values: Sequence[float]) -> _Scale:
    low, high = values[0], values[-1]
    return _Scale(low, high, _LEFT + 20, WIDTH - _RIGHT - 20, high > 10 * low > 0)


def _draw_panel(
    group: Xml.Element,
    panel: Panel,
    x: _Scale,
    values: Sequence[float],
    x_text: Callable[[float], str],
) -> None:
    known = [y for line in panel.series for _, y, _ in line.points if y is not None]
    step = nice_step(max(known, default=0.0) or 1.0)
    high = step * math.ceil(max(known, default=0.0) / step) or step
    bottom = PANEL_HEIGHT - _BOTTOM
    y = _Scale(0.0, high, bottom, _TOP)
    svg.write(group, panel.title, _LEFT, _TOP - 12, font_weight="600")
    for tick in range(round(high / step) + 1):
        at = y(tick * step)
        line = {"x1": _LEFT, "x2": WIDTH - _RIGHT, "y1": at, "y2": at}
        svg.add(group, "line", **line, class_="p-line" if tick else "p-rule")
        svg.write(group, panel.label(tick * step), _LEFT - 8, at + 4, text_anchor="end")
    last = -math.inf
    for value in values:
        at = x(value)
        line = {"x1": at, "x2": at, "y1": bottom, "y2": bottom + 5}
        svg.add(group, "line", **line, class_="p-rule")
        if at - last >= _LABEL_GAP:
            svg.write(group, x_text(value), at, bottom + 20, text_anchor="middle")
            last = at
    for index, series in enumerate(panel.series):
        _draw_series(group, series, index, x, y)


def _draw_series(
    group: Xml.Element, series: Series, index: int, x: _Scale, y: _Scale
) -> None:
    colour = palette.distinct(index)
    known = [(x(at), y(value)) for at, value, _ in series.points if value is not None]
    if len(known) > 1:
        path = " ".join(f"{svg.number(h)},{svg.number(v)}" for h, v in known)
        line = {"points": path, "fill": "none", "stroke": colour}
        svg.add(group, "polyline", **line, stroke_width=1.5)
    for at, value, hover in series.points:
        kind = "missing" if value is None else MARKERS[index % len(MARKERS)]
        title = f"{series.name}: {hover}" if series.name else hover
        mark = _mark(group, kind, x(at), y(value or 0.0), colour, title)
        mark.set("class", f"point {kind}")


def _draw_legend(root: Xml.Element, names: Sequence[str], top: float) -> None:
    for index, name in enumerate(names):
        at = top + index * _LEGEND_LINE
        colour = palette.distinct(index)
        _mark(root, MARKERS[index % len(MARKERS)], _LEFT + 6, at, colour)
        svg.write(root, name, _LEFT + 20, at + 4)


def _mark(
    parent: Xml.Element, kind: str, x: float, y: float, colour: str, title: str = ""
) -> Xml.Element:
    """A marker; a cross where there is no value."""
    if kind == "circle":
        return svg.add(parent, "circle", title, cx=x, cy=y, r=_RADIUS, fill=colour)
    r = _RADIUS
    shapes = {
        "square": f"M{-r},{-r}H{r}V{r}H{-r}Z",
        "diamond": f"M0,{-1.4 * r}L{1.4 * r},0L0,{1.4 * r}L{-1.4 * r},0Z",
        "triangle": f"M0,{-1.2 * r}L{1.2 * r},{r}H{-1.2 * r}Z",
        "missing": f"M{-r},{-r}L{r},{r}M{-r},{r}L{r},{-r}",
    }
    place = f"translate({svg.number(x)} {svg.number(y)})"
    mark = svg.add(parent, "path", title, d=shapes[kind], transform=place, fill=colour)
    if kind == "missing":
        mark.set("stroke", colour)
    return mark


def nice_step(high: float) -> float:
    """Distance of about five ticks up to ``high``: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(max(high, 1e-300) / 5))
    return next(power * step for step in (1, 2, 5, 10) if power * step * 5 >= high)
