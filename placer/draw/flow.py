"""Panels of equal items, laid out like words on lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    """Where one panel and its items lie; pixels from the top left of the picture."""

    # x, y, width and height: of the box, its header included.
    x: float
    y: float
    width: float
    height: float
    places: tuple[tuple[float, float], ...]  # top left of every item


@dataclass(frozen=True)
class Flow:
    """Panels and the space they take."""

    panels: tuple[Panel, ...]
    width: float
    height: float
    # Items, counted over all panels, that stand first on a line of their panel.
    first_of_line: frozenset[int]

    def moved(self, right: float) -> Flow:
        """All of it so many pixels further right."""
        panels = (
            replace(
                panel,
                x=panel.x + right,
                places=tuple((x + right, y) for x, y in panel.places),
            )
            for panel in self.panels
        )
        return replace(self, panels=tuple(panels))


def flow(
    counts: Sequence[int],
    item: tuple[float, float],
    origin: tuple[float, float],
    width: float,
    header: float,
    lead: float = 0.0,
    most_columns: int = 1_000_000,
    zoom: float = 1.0,
) -> Flow:
    """Panels of ``counts`` items each, side by side as far as ``width`` goes.

    ``counts``: items of each panel, at least one. ``item``: width and height of an
    item, the space around it included. ``width``: pixels there are; an item wider than
    that gets a line of its own. ``header``: height kept free above the items of a
    panel. ``lead``: width kept free to their left. ``most_columns``: items side by side
    in one panel, at most. ``zoom``: of the space around and between panels.
    """
    padding, gap = PADDING * zoom, GAP * zoom
    room = width - 2 * padding - lead
    columns = min(max(int(room // item[0]), 1), most_columns)
    panels: list[Panel] = []
    first_of_line: list[int] = []
    items = 0
    x, y = origin
    line = used = 0.0
    for count in counts:
        lines = -(-count // columns)
        across = -(-count // lines)
        own_width = lead + across * item[0] + 2 * padding
        own_height = lines * item[1] + header + 2 * padding
        if x > origin[0] and x + own_width > origin[0] + width:
            x, y = origin[0], y + line + gap
            line = 0.0
        places = tuple(
            (
                x + padding + lead + i % across * item[0],
                y + padding + header + i // across * item[1],
            )
            for i in range(count)
        )
        panels.append(Panel(x, y, own_width, own_height, places))
        first_of_line += range(items, items + count, across)
        items += count
        x += own_width + gap
        line = max(line, own_height)
        used = max(used, x - gap - origin[0])
    height = y + line - origin[1]
    return Flow(tuple(panels), used, height, frozenset(first_of_line))


def draw_panels(
    root: Xml.Element,
    panels: Sequence[Panel],
    names: Sequence[str],
    full: Sequence[str],
    zoom: float = 1.0,
) -> None:
    """The boxes behind the items, each with its name unless that is empty.

    On hover a name says what of ``full`` it does not. ``zoom``: of the names.
    """
    padding, font = PADDING * zoom, _FONT * zoom
    for panel, name, own in zip(panels, names, full, strict=True):
        box = {"x": panel.x, "y": panel.y, "width": panel.width, "height": panel.height}
        svg.add(root, "rect", **box, rx=6 * zoom, class_="p-panel")
        if name:
            shown = svg.shortened(name, panel.width - 2 * padding, font)
            at = panel.x + padding, panel.y + padding + font
            hover = "" if shown.endswith(own) else own
            svg.write(root, shown, *at, hover, font_size=font, font_weight="600")
