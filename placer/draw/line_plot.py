"""Line plots as SVG: panels one below the other, and one legend below all.

Every series has a colour, a marker and a dash of its own, so that neither colour
vision nor a colour printer is needed to tell them apart. Series that coincide in all
panels are one, with the names of all. Markers get smaller and dashes sparser from
series to series, so that those drawn first are seen where others coincide in part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from placer.draw import palette, svg

if TYPE_CHECKING:
    from xml.etree import ElementTree as Xml

MARKERS = ("circle", "square", "diamond", "triangle")
_DASHES = ("", "7 4", "2 4", "9 3 2 3")

WIDTH, PANEL_HEIGHT = 720, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 24, 34, 52
_HEAD = 30
_LEGEND_LINE = 18
_RADIUS, _LEAST_RADIUS = 4.6, 3.0
_LABEL_GAP = 8  # pixels between the labels of two ticks, at least
_MOST_VALUES = 12  # of which each has a tick; more share round ones
_MOST_NAMES = 3  # of series that coincide
# An axis that would leave so much of itself empty below its values starts later.
_EMPTY = 0.6


@dataclass(frozen=True)
class Series:
    """Points of one line: ``(x, y, text on hover)``; y is None where there is none.

    ``is_line`` is false where points are not joined.
    """

    name: str
    points: tuple[tuple[float, float | None, str], ...]
    is_line: bool = True


@dataclass(frozen=True)
class Panel:
    """One plot of a figure."""

    title: str
    series: tuple[Series, ...]
    label: Callable[[float], str]  # text of a value of the vertical axis
    x_label: str  # what the horizontal axis shows
    x_text: Callable[[float], str]  # text of one of its values

    @property
    def values(self) -> list[float]:
        """All values of the horizontal axis."""
        return sorted({x for line in self.series for x, _, _ in line.points})

    @property
    def known(self) -> list[float]:
        """All values of the vertical axis."""
        points = (point for line in self.series for point in line.points)
        return [y for _, y, _ in points if y is not None]


@dataclass(frozen=True)
class Scale:
    """Maps values to pixels, by their logarithm when they span a factor of ten."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """Where a value lies."""
        low, high = self.low, self.high
        if self.is_log:
            value, low, high = math.log(value), math.log(low), math.log(high)
        if high == low:
            return (self.start + self.end) / 2
        return self.start + (value - low) / (high - low) * (self.end - self.start)


def line_plot(panels: Sequence[Panel], title: str, theme: str = "auto") -> str:
    """The figure as an SVG document.

    ``panels``: of the same series, or of the first few of them. A vertical axis starts
    at zero, unless that would leave most of it empty; then its title says where it
    starts. ``title``: above all. ``theme``: ``auto``, ``light`` or ``dark``.
    """
    panels = _merged(panels)
    names = [series.name for series in panels[0].series]
    legend = _LEGEND_LINE * len(names) if len(names) > 1 else 0
    height = _HEAD + PANEL_HEIGHT * len(panels) + legend + 12
    root = svg.new_picture(WIDTH, height, theme, title)
    svg.write(root, title, _LEFT, _HEAD - 8, font_weight="600", font_size=14)
    for index, panel in enumerate(panels):
        top = _HEAD + index * PANEL_HEIGHT
        group = svg.add(root, "g", class_="panel", transform=f"translate(0 {top})")
        _draw_panel(group, panel)
        middle = (_LEFT + WIDTH - _RIGHT) / 2
        svg.write(group, panel.x_label, middle, PANEL_HEIGHT - 12, text_anchor="middle")
    for index, name in enumerate(names if legend else ()):
        at = _HEAD + PANEL_HEIGHT * len(panels) + 8 + index * _LEGEND_LINE
        colour, kind = palette.distinct(index), MARKERS[index % len(MARKERS)]
        _mark(root, kind, _LEFT + 6, at, colour)
        svg.write(root, name, _LEFT + 20, at + 4)
    return svg.to_text(root)


def _merged(panels: Sequence[Panel]) -> list[Panel]:
    """The panels with one series for those whose points are the same in all of them."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for index, line in enumerate(panels[0].series):
        points = tuple(
            tuple((x, y) for x, y, _ in panel.series[index].points)
            for panel in panels
            if index < len(panel.series)
        )
        alike.setdefault((line.is_line, points), []).append(index)
    names = []
    for own in alike.values():
        shown = [panels[0].series[i].name for i in own[:_MOST_NAMES]]
        shown += ["..."] * (len(own) > _MOST_NAMES)
        same = f" (the same, {len(own)} lines)" if len(own) > 1 else ""
        names.append("; ".join(shown) + same)
    return [
        replace(
            panel,
            series=tuple(
                replace(panel.series[own[0]], name=name)
                for own, name in zip(alike.values(), names, strict=True)
                if own[0] < len(panel.series)
            ),
        )
        for panel in panels
    ]


def _vertical(panel: Panel) -> tuple[Scale, float]:
    """The vertical axis, and the distance of its ticks."""
    low, high = min(panel.known, default=0.0), max(panel.known, default=0.0) or 1.0
    start = low if low > _EMPTY * high and low < high else 0.0
    # Labels have four digits: below the last of them ticks would read alike.
    step = max(nice_step(high - start), 10.0 ** math.floor(math.log10(high)) / 1000)
    start = step * math.floor(start / step)
    end = step * math.ceil(high / step - 1e-9)
    return Scale(start, end, PANEL_HEIGHT - _BOTTOM, _TOP), step


def _ticks(values: Sequence[float], is_log: bool) -> Sequence[float]:
    """Where the horizontal axis has ticks: at its values, or at round ones."""
    if len(values) <= _MOST_VALUES or is_log:
        return values
    step = nice_step(values[-1] - values[0])
    first = math.ceil(values[0] / step)
    return [step * n for n in range(first, math.floor(values[-1] / step) + 1)]


def _draw_panel(group: Xml.Element, panel: Panel) -> None:
    low, high = panel.values[0], panel.values[-1]
    is_log = high > 10 * low > 0
    x = Scale(low, high, _LEFT + 20, WIDTH - _RIGHT - 20, is_log)
    y, step = _vertical(panel)
    bottom = PANEL_HEIGHT - _BOTTOM
    from_ = f" (from {panel.label(y.low)})" if y.low else ""
    svg.write(group, panel.title + from_, _LEFT, _TOP - 12, font_weight="600")
    for tick in range(round((y.high - y.low) / step) + 1):
        value = y.low + tick * step
        line = {"x1": _LEFT, "x2": WIDTH - _RIGHT, "y1": y(value), "y2": y(value)}
        svg.add(group, "line", **line, class_="p-line" if tick else "p-rule")
        text = panel.label(value)
        svg.write(group, text, _LEFT - 8, y(value) + 4, text_anchor="end")
    last = -math.inf
    for value in _ticks(panel.values, x.is_log):
        at = x(value)
        line = {"x1": at, "x2": at, "y1": bottom, "y2": bottom + 5}
        svg.add(group, "line", **line, class_="p-rule")
        text = panel.x_text(value)
        half = svg.text_width(text, 12) / 2
        if at - half - last >= _LABEL_GAP:
            svg.write(group, text, at, bottom + 20, text_anchor="middle")
            last = at + half
    for index, series in enumerate(panel.series):
        _draw_series(group, series, index, x, y)


def _draw_series(
    group: Xml.Element, series: Series, index: int, x: Scale, y: Scale
) -> None:
    colour = palette.distinct(index)
    known = [(x(at), y(value)) for at, value, _ in series.points if value is not None]
    if len(known) > 1 and series.is_line:
        path = " ".join(f"{svg.number(h)},{svg.number(v)}" for h, v in known)
        line = {"points": path, "fill": "none", "stroke": colour}
        if dash := _DASHES[index % len(_DASHES)]:
            line["stroke-dasharray"] = dash
        svg.add(group, "polyline", **line, stroke_width=1.5)
    for at, value, hover in series.points:
        kind = "missing" if value is None else MARKERS[index % len(MARKERS)]
        title = f"{series.name}: {hover}" if series.name else hover
        height = y(y.low if value is None else value)
        mark = _mark(group, kind, x(at), height, colour, title, index)
        mark.set("class", f"point {kind}")


def _mark(
    parent: Xml.Element,
    kind: str,
    x: float,
    y: float,
    colour: str,
    title: str = "",
    index: int = 0,
) -> Xml.Element:
    """The marker of series ``index``; a cross where there is no value."""
    r = max(_RADIUS - 0.4 * index, _LEAST_RADIUS)
    if kind == "circle":
        return svg.add(parent, "circle", title, cx=x, cy=y, r=r, fill=colour)
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
