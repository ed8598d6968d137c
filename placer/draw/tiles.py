"""A map whose cells are whole nodes, racks or blocks: what each of them holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from placer.draw import palette, svg
from placer.draw.flow import GAP, HEADER, PADDING, Flow, draw_panels, flow

if TYPE_CHECKING:
    from xml.etree import ElementTree as Xml

    from placer.draw.content import Content
    from placer.draw.grouping import Grouping

_WIDEST = 190.0
_SPACE = 6.0
_NAME_FONT = 11.0
_NAMED = 6  # values that the text on hover lists


@dataclass(frozen=True)
class _Style:
    """Tiles of one kind: ``across`` side by side, about; the rest in pixels.

    The name stands in the ``top`` pixels over the stripes, if there are any.
    """

    across: int
    narrowest: float
    top: float
    height: float
    font: float


_LARGE = _Style(across=16, narrowest=74, top=18, height=52, font=11)
_SMALL = _Style(across=40, narrowest=36, top=0, height=22, font=9)
MOST_LARGE = 512


@dataclass(frozen=True)
class Stripe:
    """Ranks of a tile with one colour, in groups that all stay or all leave.

    Attributes
    ----------
    first, last : int
        Values, lowest and highest.
    ranks : int
    leaves : bool
    """

    first: int
    last: int
    ranks: int
    leaves: bool


@dataclass(frozen=True)
class Tile:
    """One domain of the map's level.

    Attributes
    ----------
    domain : int
    panel : int
        Index of the domain around it.
    stripes : tuple of Stripe
    groups_leaving : int
        Groups with ranks here that leave their domain.
    """

    domain: int
    panel: int
    stripes: tuple[Stripe, ...]
    groups_leaving: int

    @property
    def ranks(self) -> int:
        """Ranks in the domain."""
        return sum(stripe.ranks for stripe in self.stripes)


@dataclass(frozen=True)
class Tiles:
    """A laid-out map of domains.

    Attributes
    ----------
    content : Content
    tiles : tuple of Tile
    flow : Flow
    style : sizes of the tiles
    tile_width : float, pixels
    """

    content: Content
    tiles: tuple[Tile, ...]
    flow: Flow
    style: _Style
    tile_width: float

    def draw(self, root: Xml.Element) -> None:
        """Add it to a picture."""
        view, level = self.content.view, self.content.level
        panels = list(dict.fromkeys(tile.panel for tile in self.tiles))
        named = level + 2 < len(view.levels)
        names = [
            f"{view.levels[level + 1]} {view.names[level + 1][panel]}" if named else ""
            for panel in panels
        ]
        draw_panels(root, self.flow.panels, names)
        places = [place for panel in self.flow.panels for place in panel.places]
        layer = svg.add(root, "g", class_="cells")
        for tile, place in zip(self.tiles, places, strict=True):
            _draw_tile(layer, self, tile, place)


def layout(content: Content, origin: tuple[float, float], width: float) -> Tiles:
    """Tiles in panels of the domains around them, as wide as ``width`` allows."""
    tiles = tuple(_tiles(content))
    counts = [len(list(same)) for _, same in groupby(tiles, lambda tile: tile.panel)]
    style = _LARGE if len(tiles) <= MOST_LARGE else _SMALL
    if len(counts) == 1:
        across, panels = min(counts[0], style.across), 1
    else:
        across = min(max(counts), style.across * 5 // 4)
        panels = min(max(style.across // across, 1), len(counts))
    room = width - panels * 2 * PADDING - (panels - 1) * GAP
    pitch = min(max(room / (across * panels), style.narrowest), _WIDEST)
    header = HEADER if content.level + 2 < len(content.view.levels) else 0.0
    item = pitch, style.height + _SPACE
    found = flow(counts, item, origin, width, header, across)
    return Tiles(content, tiles, found, style, pitch - _SPACE)


def _tiles(content: Content) -> Iterator[Tile]:
    """The domains with nodes to show, in the order of the view."""
    view, groups, level = content.view, content.groups, content.level
    ranks = np.flatnonzero(content.shown)
    value = groups.value_of_rank[ranks]
    leaves = content.leaving.groups[groups.group_of_rank[ranks]]
    domain = view.domain_of_rank[level, ranks]
    order = np.lexsort((leaves, value, domain))
    ranks, value, leaves, domain = (
        ranks[order],
        value[order],
        leaves[order],
        domain[order],
    )
    found, starts = np.unique(domain, return_index=True)
    parent = view.parent_of(level)
    for index, start, end in zip(
        found.tolist(), starts, [*starts[1:], len(ranks)], strict=True
    ):
        own = slice(start, end)
        away = groups.group_of_rank[ranks[own]][leaves[own]]
        yield Tile(
            index,
            int(parent[index]),
            tuple(_stripes(groups, value[own].tolist(), leaves[own].tolist())),
            len(np.unique(away)),
        )


def _stripes(
    groups: Grouping, values: list[int], leaves: list[bool]
) -> Iterator[Stripe]:
    """Neighbours of one shade as one stripe."""
    shades = [groups.shade(value) for value in values]
    rows = zip(shades, leaves, values, strict=True)
    for (_, leaving), same in groupby(sorted(rows), lambda row: row[:2]):
        own = [value for _, _, value in same]
        yield Stripe(min(own), max(own), len(own), leaving)


def _draw_tile(
    layer: Xml.Element, tiles: Tiles, tile: Tile, place: tuple[float, float]
) -> None:
    style, (x, y) = tiles.style, place
    data = {"data_ranks": str(tile.ranks), "data_leaving": str(tile.groups_leaving)}
    group = svg.add(layer, "g", _hover(tiles, tile), class_="cell", **data)
    if style.top:
        _draw_name(group, tiles, tile, (x, y + 12))
    scale = tiles.tile_width / tile.ranks
    middle = y + style.top + (style.height - style.top) / 2 + style.font * 0.36
    outlined = []
    for stripe in tile.stripes:
        width = stripe.ranks * scale
        box = {"y": y + style.top, "height": style.height - style.top, "width": width}
        colour = tiles.content.groups.colour(stripe.first)
        svg.add(group, "rect", x=x, **box, fill=colour)
        text = _values(stripe)
        if svg.text_width(text, style.font) + 4 <= width:
            look = {"fill": palette.ink_on(colour), "text_anchor": "middle"}
            at = x + width / 2, middle
            svg.write(group, text, *at, font_size=style.font, **look)
        if stripe.leaves:
            outlined.append({"x": x, **box})
        x += width
    for box in outlined:
        for class_, line in (("p-halo", 4.0), ("p-out", 2.0)):
            svg.add(group, "rect", **box, class_=class_, fill="none", stroke_width=line)


def _draw_name(
    group: Xml.Element, tiles: Tiles, tile: Tile, place: tuple[float, float]
) -> None:
    """The name of a tile on the left, its ranks on the right."""
    count = f"{tile.ranks:,}"
    room = tiles.tile_width - svg.text_width(count, _NAME_FONT) - 4
    name = tiles.content.view.names[tiles.content.level][tile.domain]
    shown = svg.shortened(name, room, _NAME_FONT)
    svg.write(group, shown, *place, font_size=_NAME_FONT)
    at = place[0] + tiles.tile_width, place[1]
    look = {"text_anchor": "end", "class_": "p-soft"}
    svg.write(group, count, *at, font_size=_NAME_FONT, **look)


def _values(stripe: Stripe) -> str:
    if stripe.first == stripe.last:
        return str(stripe.first)
    return f"{stripe.first}\N{EN DASH}{stripe.last}"


def _hover(tiles: Tiles, tile: Tile) -> str:
    content = tiles.content
    view, groups = content.view, content.groups
    name = f"{view.levels[content.level]} {view.path(content.level, tile.domain)}"
    values = [f"{_values(stripe)} ({stripe.ranks:,})" for stripe in tile.stripes]
    more = f" and {len(values) - _NAMED} more" if len(values) > _NAMED else ""
    text = f"{name}: {tile.ranks:,} ranks\n{groups.value_noun} "
    text += ", ".join(values[:_NAMED]) + more
    if tile.groups_leaving:
        home = view.levels[content.leaving.home] if content.leaving.home >= 0 else "GPU"
        noun = groups.group_noun + "s" * (tile.groups_leaving != 1)
        text += f"\n{tile.groups_leaving:,} {noun} here beyond one {home}"
    return text
