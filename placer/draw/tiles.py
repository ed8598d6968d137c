"""A map whose cells are whole nodes, racks or blocks: what each of them holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from placer.base.units import counted
from placer.draw import palette, svg
from placer.draw.flow import GAP, HEADER, PADDING, Flow, draw_panels, flow
from placer.draw.grouping import Content, Grouping

if TYPE_CHECKING:
    from xml.etree import ElementTree as Xml

_WIDEST = 190.0
_SPACE = 6.0
_NAME_FONT = 11.0
_NAMED = 6  # values that the text on hover lists


@dataclass(frozen=True)
class _Style:
    """Tiles of one kind: ``across`` side by side, about; the rest in pixels.

    The name stands in the ``top`` pixels over the stripes, if there are any. Heights
    are those to choose from.
    """

    across: int
    narrowest: float
    top: float
    heights: tuple[float, ...]
    font: float


_LARGE = _Style(
    across=16, narrowest=74, top=18, heights=(120, 104, 88, 70, 52), font=12
)
_SMALL = _Style(across=40, narrowest=36, top=0, heights=(30, 26, 22), font=9)
_TALLEST = 760.0  # pixels all panels should take at most
MOST_STRIPES = len(palette.DISTINCT)  # values of a tile that colours tell apart
MOST_LARGE = 512


@dataclass(frozen=True)
class Stripe:
    """Ranks of a tile with one colour, in groups that all have an outline or none."""

    # first and last: values, lowest and highest.
    first: int
    last: int
    values: int  # how many they are
    ranks: int
    is_outlined: bool
    is_mixed: bool = False  # whether it stands for more values than colours tell apart


@dataclass(frozen=True)
class Tile:
    """One domain of the map's level."""

    domain: int
    panel: int  # index of the domain around it
    stripes: tuple[Stripe, ...]
    groups_leaving: int  # groups with ranks here that leave their domain

    @property
    def ranks(self) -> int:
        """Ranks in the domain."""
        return sum(stripe.ranks for stripe in self.stripes)


@dataclass(frozen=True)
class Tiles:
    """A laid-out map of domains."""

    content: Content
    tiles: tuple[Tile, ...]
    flow: Flow
    style: _Style
    tile_width: float
    tile_height: float

    @property
    def is_mixed(self) -> bool:
        """Whether some tile holds more values than colours tell apart."""
        return any(stripe.is_mixed for tile in self.tiles for stripe in tile.stripes)

    def draw(self, root: Xml.Element) -> None:
        """Add it to a picture."""
        view, level = self.content.view, self.content.level
        panels = list(dict.fromkeys(tile.panel for tile in self.tiles))
        named = level + 2 < len(view.levels)
        names = [view.panel_name(level + 1, panel) if named else "" for panel in panels]
        full = [view.names[level + 1][panel] for panel in panels]
        draw_panels(root, self.flow.panels, names, full)
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
    for height in style.heights:
        item = pitch, height + _SPACE
        found = flow(counts, item, origin, width, header, most_columns=across)
        if found.height <= _TALLEST:
            break
    return Tiles(content, tiles, found, style, pitch - _SPACE, height)


def _tiles(content: Content) -> Iterator[Tile]:
    """The domains with nodes to show, in the order of the view."""
    view, groups, level = content.view, content.groups, content.level
    ranks = np.flatnonzero(content.shown)
    value = groups.value_of_rank[ranks]
    own_group = groups.group_of_rank[ranks]
    leaves = content.outlined[own_group]
    domain = view.domain_of_rank[level, ranks]
    order = np.lexsort((leaves, value, domain))
    own_group, value = own_group[order], value[order]
    leaves, domain = leaves[order], domain[order]
    found, starts = np.unique(domain, return_index=True)
    parent = view.parents[level]
    for index, start, end in zip(
        found.tolist(), starts, [*starts[1:], len(ranks)], strict=True
    ):
        own = slice(start, end)
        away = own_group[own][content.away[own_group[own]]]
        yield Tile(
            index,
            int(parent[index]),
            tuple(_stripes(groups, value[own].tolist(), leaves[own].tolist())),
            len(np.unique(away)),
        )


def _stripes(
    groups: Grouping, values: list[int], leaves: list[bool]
) -> Iterator[Stripe]:
    """Neighbours of one shade as one stripe; one for all where there are too many."""
    several = set(values)
    if not groups.is_ordered and len(several) > MOST_STRIPES:
        last = max(several)
        yield Stripe(min(several), last, len(several), len(values), any(leaves), True)
        return
    shades = [groups.shade(value) for value in values]
    rows = zip(shades, leaves, values, strict=True)
    for (_, leaving), same in groupby(sorted(rows), lambda row: row[:2]):
        own = [value for _, _, value in same]
        yield Stripe(min(own), max(own), len(set(own)), len(own), leaving)


def _draw_tile(
    layer: Xml.Element, tiles: Tiles, tile: Tile, place: tuple[float, float]
) -> None:
    style, (x, y) = tiles.style, place
    data = {"data_ranks": str(tile.ranks), "data_leaving": str(tile.groups_leaving)}
    group = svg.add(layer, "g", _hover(tiles, tile), class_="cell", **data)
    if style.top:
        _draw_name(group, tiles, tile, (x, y + 12))
    scale = tiles.tile_width / tile.ranks
    top, height = y + style.top, tiles.tile_height - style.top
    outlined = []
    for stripe in tile.stripes:
        box = {"x": x, "y": top, "width": stripe.ranks * scale, "height": height}
        _draw_stripe(group, tiles, stripe, box)
        if stripe.is_outlined:
            outlined.append(box)
        x += box["width"]
    for box in outlined:
        for class_, line in (("p-halo", 4.0), ("p-out", 2.0)):
            svg.add(group, "rect", **box, class_=class_, fill="none", stroke_width=line)


def _draw_stripe(
    group: Xml.Element, tiles: Tiles, stripe: Stripe, box: dict[str, float]
) -> None:
    """A stripe, with its values where they fit."""
    font = tiles.style.font
    colour = tiles.content.groups.colour(stripe.first)
    fill = {"class_": "p-mixed"} if stripe.is_mixed else {"fill": colour}
    ink = {} if stripe.is_mixed else {"fill": palette.ink_on(colour)}
    svg.add(group, "rect", **box, **fill)
    text = _values(stripe, tiles.content.groups)
    if stripe.is_mixed:
        text = f"{stripe.values:,} parts"
    if svg.text_width(text, font) + 4 <= box["width"]:
        middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2 + font * 0.36
        svg.write(group, text, *middle, font_size=font, text_anchor="middle", **ink)


def _draw_name(
    group: Xml.Element, tiles: Tiles, tile: Tile, place: tuple[float, float]
) -> None:
    """The name of a tile on the left, its ranks on the right where they are odd."""
    view, level = tiles.content.view, tiles.content.level
    count = f"{tile.ranks:,}" if tile.ranks != tiles.content.usual_ranks else ""
    room = tiles.tile_width - svg.text_width(count, _NAME_FONT) - 4
    name = view.short[level][tile.domain]
    around = view.short[level + 1][tile.panel]
    name = name.removeprefix(around).lstrip("-_.") or name
    shown = svg.shortened(name, room, _NAME_FONT)
    svg.write(group, shown, *place, font_size=_NAME_FONT)
    if count:
        at = place[0] + tiles.tile_width, place[1]
        look = {"text_anchor": "end", "class_": "p-soft"}
        svg.write(group, count, *at, font_size=_NAME_FONT, **look)


def _values(stripe: Stripe, groups: Grouping) -> str:
    if groups.names:
        return ", ".join(groups.names[stripe.first : stripe.last + 1])
    if stripe.first == stripe.last:
        return str(stripe.first)
    return f"{stripe.first}\N{EN DASH}{stripe.last}"


def _hover(tiles: Tiles, tile: Tile) -> str:
    content = tiles.content
    view, groups = content.view, content.groups
    name = f"{view.levels[content.level]} {view.path(content.level, tile.domain)}"
    values = [
        f"{stripe.values:,} of " * stripe.is_mixed
        + f"{_values(stripe, groups)} ({stripe.ranks:,})"
        for stripe in tile.stripes
    ]
    more = f" and {len(values) - _NAMED} more" if len(values) > _NAMED else ""
    text = f"{name}: {tile.ranks:,} ranks\n{groups.value_noun} "
    text += ", ".join(values[:_NAMED]) + more
    if tile.groups_leaving:
        away = counted(tile.groups_leaving, groups.group_noun)
        text += f"\n{away} here beyond one {content.home_name}"
    return text
