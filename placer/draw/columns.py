"""Where GPUs lie on a map: racks are columns, or pieces of them, and nodes their rows.

`placer draw` and the report page lay out their maps with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

from placer.draw import svg
from placer.draw.flow import HEADER, Flow, draw_panels, flow

if TYPE_CHECKING:
    from xml.etree import ElementTree as Xml

    from placer.draw.machine_view import MachineView

_PITCHES = (
    *(96, 84, 72, 64, 56, 50, 46, 42, 38, 34, 30, 27, 24, 22, 20, 18, 16, 14, 12),
    *(11, 10, 9, 8, 7, 6, 5, 4.5, 4, 3.5, 3, 2.6, 2.3, 2, 1.7, 1.5, 1.3, 1.1, 1),
    *(0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25),
)
LEAST = 6.0  # pixels of a GPU that is seen without zooming
_TALLEST = 860.0  # pixels all lines of columns should take at most
_MOST_ROWS = 40  # nodes of a column; more go into the next
_MOST_PIECES = 8  # columns of a rack, on its own
_WORTH = 1.4  # how much larger cells must get for racks to be cut
_NARROW = 0.4124  # share of the width; racks of maps below are cut anyway
_MOST_ACROSS = 16  # GPUs of a node side by side
_LABEL_FONT = 10.0
_LABELLED = 12  # pixels of a row from which its node is named


@dataclass(frozen=True)
class Column:
    """Some nodes of one rack, one below the other."""

    panel: int  # index of the domain around the rack
    # name and full: of the rack, as it is written and as it is.
    name: str
    full: str
    nodes: tuple[int, ...]
    labels: tuple[str, ...]  # short name of every node


@dataclass(frozen=True)
class Grid:
    """Sizes in pixels, and cells of a node: ``across`` in each of ``deep`` rows.

    Names of nodes take ``label`` beside each column, or ``lead`` once a panel.
    """

    pitch: float
    across: int
    deep: int
    label: float
    lead: float
    rows: int

    @property
    def lines(self) -> int:
        """Rows of cells from a node to the next; nodes of several stand apart."""
        return self.deep + (self.deep > 1)

    @property
    def header(self) -> float:
        """Room for the name of a rack above its column."""
        return min(18.0, 3 * self.pitch)

    @property
    def item(self) -> tuple[float, float]:
        """Width and height of a column with the space around it."""
        lines = self.rows * self.lines - (self.deep > 1)
        height = lines * self.pitch + self.header + min(6.0, self.pitch)
        gap = min(12.0, 2 * self.pitch)
        return self.label + self.across * self.pitch + gap, height


@dataclass(frozen=True)
class Layout:
    """Columns of GPUs, laid out."""

    view: MachineView
    columns: tuple[Column, ...]
    grid: Grid
    flow: Flow

    @cached_property
    def places(self) -> list[tuple[float, float]]:
        """Top left of the grid of every column."""
        return [
            (x + self.grid.label, y + self.grid.header)
            for panel in self.flow.panels
            for x, y in panel.places
        ]

    @cached_property
    def panels(self) -> list[int]:
        """The domain around each box of columns."""
        return list(dict.fromkeys(column.panel for column in self.columns))

    def draw_boxes(self, root: Xml.Element) -> None:
        """Add the boxes behind the cells, with their names."""
        view = self.view
        named = _named_panels(view)
        names = [view.panel_name(2, panel) if named else "" for panel in self.panels]
        full = [view.names[2][panel] if named else "" for panel in self.panels]
        zoom = min(1.0, self.grid.pitch / LEAST)
        draw_panels(root, self.flow.panels, names, full, zoom)

    def draw_names(self, root: Xml.Element) -> None:
        """Add the names of racks above their columns, of nodes beside their rows."""
        grid = self.grid
        font = 11 * grid.header / 18
        room = grid.item[0] - grid.label - font / 2.75
        for index, (column, (x, y)) in enumerate(
            zip(self.columns, self.places, strict=True)
        ):
            name = svg.shortened(self._fitting(column, room, font), room, font)
            hover = "" if column.name.startswith(column.full) else column.full
            above = y - font / 2.2
            svg.write(root, name, x, above, hover, font_size=font, class_="p-soft")
            if grid.label or (grid.lead and index in self.flow.first_of_line):
                for line, label in enumerate(column.labels):
                    row = line * grid.lines + grid.deep / 2
                    at = {"text_anchor": "end", "class_": "p-soft"}
                    middle = y + row * grid.pitch + 3.5
                    svg.write(root, label, x - 4, middle, font_size=_LABEL_FONT, **at)

    def _fitting(self, column: Column, room: float, font: float) -> str:
        """Name of a rack; without that of what is around it, where it is too long."""
        if not _named_panels(self.view) or svg.text_width(column.name, font) <= room:
            return column.name
        around = self.view.short[2][column.panel]
        return column.name.removeprefix(around).lstrip("-_.") or column.name


def layout(
    view: MachineView,
    nodes: Sequence[int],
    slots: int,
    origin: tuple[float, float],
    width: float,
    tallest: float = _TALLEST,
    least: float = LEAST,
) -> Layout:
    """Cells as large as fit into ``width`` and a screen's height.

    A rack is one column, unless cells are much larger where it takes several, or the
    map would be a narrow one.

    ``slots``: GPUs of a node, at most. ``tallest``: pixels. ``least``: of a cell.
    """
    rack = view.domain_of_node[1].tolist()
    racks = [(domain, [*own]) for domain, own in groupby(nodes, rack.__getitem__)]
    most = max(len(rack) for _, rack in racks)
    rows = dict.fromkeys(
        min(-(-most // pieces), _MOST_ROWS) for pieces in range(1, _MOST_PIECES + 1)
    )
    # Of those too large for so many cells without any space, none is tried.
    most_area = width * tallest / (slots * len(nodes))
    known = [pitch for pitch in _PITCHES if pitch >= least]
    pitches = [pitch for pitch in known if pitch**2 <= most_area] or known[-1:]
    usual, *cut = (
        _laid_out(view, tuple(_columns(view, racks, count)), count, slots, origin,
                  (width, tallest), pitches)
        for count in rows
    )  # fmt: skip
    best = max(cut, key=lambda c: (c.grid.pitch, c.flow.width), default=usual)
    worth = 1.0 if usual.flow.width < _NARROW * width else _WORTH
    return best if best.grid.pitch >= worth * usual.grid.pitch else usual


def _laid_out(
    view: MachineView,
    columns: tuple[Column, ...],
    rows: int,
    slots: int,
    origin: tuple[float, float],
    room: tuple[float, float],
    pitches: Sequence[float],
) -> Layout:
    counts = [len(list(same)) for _, same in groupby(columns, lambda c: c.panel)]
    deep = -(-slots // _MOST_ACROSS)
    across = -(-slots // deep)
    longest = max(len(label) for column in columns for label in column.labels)
    # Whether nodes side by side in any columns have one short name.
    most = max((column.labels for column in columns), key=len)
    same = all(column.labels == most[: len(column.labels)] for column in columns)
    for pitch in pitches:
        label = longest * _LABEL_FONT * 0.62 + 5 if pitch * deep >= _LABELLED else 0.0
        beside, lead = (0.0, label) if same else (label, 0.0)
        grid = Grid(pitch, across, deep, beside, lead, rows)
        zoom = min(1.0, pitch / LEAST)
        header = HEADER * zoom if _named_panels(view) else 0.0
        found = flow(counts, grid.item, origin, room[0], header, lead, zoom=zoom)
        if found.height <= room[1] and found.width <= room[0]:
            break
    return Layout(view, columns, grid, found)


def _named_panels(view: MachineView) -> bool:
    return len(view.levels) > 3


def _columns(
    view: MachineView, racks: Sequence[tuple[int, list[int]]], rows: int
) -> Iterator[Column]:
    """Racks cut into pieces of ``rows`` nodes."""
    alone = len(view.levels) < 3
    panel = view.domain_of_node[min(2, len(view.levels) - 1)].tolist()
    for domain, own in racks:
        name = "" if alone else view.short[1][domain]
        full = "" if alone else view.names[1][domain]
        pieces = [own[i : i + rows] for i in range(0, len(own), rows)]
        for index, piece in enumerate(pieces):
            names = [view.names[0][node] for node in piece]
            suffix = f" ({index + 1})" if len(pieces) > 1 and name else ""
            labels = _short(names, full)
            yield Column(panel[piece[0]], name + suffix, full, tuple(piece), labels)


def _short(names: Sequence[str], rack: str) -> tuple[str, ...]:
    """Node names without what the rack's name says already, else their last letters."""
    own = [
        name.removeprefix(rack).lstrip("-_.") if rack else name.partition(".")[0]
        for name in names
    ]
    return tuple(name if len(name) <= 6 else svg.ELLIPSIS + name[-4:] for name in own)
