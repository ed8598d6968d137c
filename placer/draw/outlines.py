"""Lines around the cells of groups of a map of GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from placer.draw import svg

if TYPE_CHECKING:
    from xml.etree import ElementTree as Xml

# A cell: its column of the map, and its row and place across on that column's grid.
Cell = tuple[int, int, int]


def draw_outlines(
    root: Xml.Element,
    group_at: Mapping[Cell, int],
    outlined: set[int],
    corner: Mapping[Cell, tuple[float, float]],
    pitch: float,
) -> None:
    """One line around all cells of each group to outline.

    Parameters
    ----------
    root : Element
    group_at : mapping
        Group of each cell.
    outlined : set of int
        Groups.
    corner : mapping
        Top left of each cell, in pixels.
    pitch : float, pixels
    """
    lines: dict[int, list[str]] = {}
    for (column, row, across), group in group_at.items():
        if group in outlined:
            sides = [
                side
                for (down, right), side in _sides(*corner[column, row, across], pitch)
                if group_at.get((column, row + down, across + right)) != group
            ]
            lines.setdefault(group, []).extend(sides)
    layer = svg.add(root, "g", class_="outlines", fill="none", pointer_events="none")
    for group, sides in sorted(lines.items()):
        path = "".join(sides)
        svg.add(layer, "path", d=path, class_="p-halo", stroke_width=4.0)
        look = {"class_": "p-out", "data_group": str(group)}
        svg.add(layer, "path", d=path, stroke_width=2.0, **look)


def _sides(x: float, y: float, pitch: float) -> tuple[tuple[tuple[int, int], str], ...]:
    """The sides of a cell: which neighbour is there (down, right), and the line."""
    left, top = svg.number(x), svg.number(y)
    right, below, far = svg.number(x + pitch), svg.number(y + pitch), svg.number(pitch)
    return (
        ((-1, 0), f"M{left} {top}h{far}"),
        ((1, 0), f"M{left} {below}h{far}"),
        ((0, -1), f"M{left} {top}v{far}"),
        ((0, 1), f"M{right} {top}v{far}"),
    )
