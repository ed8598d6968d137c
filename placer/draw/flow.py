"""Panels of equal items, laid out like words on lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placer.draw import svg

if TYPE_CHECKING:
    from xml.etree import ElementTree as Xml

PADDING = 8
GAP = 12
HEADER = 22
_FONT = 12.0


@dataclass(frozen=True)
class Panel:
    """Where one panel and its items lie; pixels from the top left of the picture.

    Attributes
    ----------
    x, y, width, height : float
        Of the box, its header included.
    places : tuple of (float, float)
        Top left of every item.
    """

    x: float
    y: float
    width: float
    height: float
    places: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Flow:
    """Panels and the space they take."""

    panels: tuple[Panel, ...]
    width: float
    height: float


def flow(
    counts: Sequence[int],
    item: tuple[float, float],
    origin: tuple[float, float],
    width: float,
    header: float,
    most_columns: int = 1_000_000,
) -> Flow:
    """Panels of ``counts`` items each, side by side as far as ``width`` goes.

    Parameters
    ----------
    counts : sequence of int
        Items of each panel, at least one.
    item : (float, float)
        Width and height of an item, the space around it included.
    origin : (float, float)
    width : float
        Pixels there are; an item wider than that gets a line of its own.
    header : float
        Height kept free above the items of a panel.
    most_columns : int
        Items side by side in one panel, at most.
    """
    columns = min(max(int((width - 2 * PADDING) // item[0]), 1), most_columns)
    panels = []
    x, y = origin
    line = used = 0.0
    for count in counts:
        lines = -(-count // columns)
        across = -(-count // lines)
        own_width = across * item[0] + 2 * PADDING
        own_height = lines * item[1] + header + 2 * PADDING
        if x > origin[0] and x + own_width > origin[0] + width:
            x, y = origin[0], y + line + GAP
            line = 0.0
        places = tuple(
            (
                x + PADDING + i % across * item[0],
                y + PADDING + header + i // across * item[1],
            )
            for i in range(count)
        )
        panels.append(Panel(x, y, own_width, own_height, places))
        x += own_width + GAP
        line = max(line, own_height)
        used = max(used, x - GAP - origin[0])
    return Flow(tuple(panels), used, y + line - origin[1])


def draw_panels(
    root: Xml.Element, panels: Sequence[Panel], names: Sequence[str]
) -> None:
    """The boxes behind the items, each with its name unless that is empty."""
    for panel, name in zip(panels, names, strict=True):
        box = {"x": panel.x, "y": panel.y, "width": panel.width, "height": panel.height}
        svg.add(root, "rect", **box, rx=6.0, class_="p-panel")
        if name:
            shown = svg.shortened(name, panel.width - 2 * PADDING, _FONT)
            at = panel.x + PADDING, panel.y + PADDING + _FONT
            svg.write(root, shown, *at, font_size=_FONT, font_weight="600")
