"""A map whose cells are GPUs: racks are columns, nodes their rows.

The columns of a map of GPUs: racks, or pieces of them, and the names in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from placer.draw import palette, svg
from placer.draw.flow import HEADER, Flow, draw_panels, flow

if TYPE_CHECKING:
    from xml.etree import ElementTree as Xml

    from placer.base.arrays import IntArray
    from placer.draw.grouping import Content
    from placer.draw.machine_view import MachineView

_PITCHES = (
    *(96, 84, 72, 64, 56, 50, 46, 42, 38, 34, 30, 27, 24, 22, 20, 18, 16, 14, 12),
    *(11, 10, 9, 8, 7, 6),
)
_TALLEST = 860.0  # pixels all lines of columns should take at most
_MOST_ROWS = 40  # nodes of a column; more go into the next
_MOST_PIECES = 8  # columns of a rack, on its own
_WORTH = 1.4  # how much larger cells must get for racks to be cut
_NARROW = 640.0  # pixels of a map that racks are cut for anyway
_MOST_ACROSS = 16  # GPUs of a node side by side
_MOST_SLOTS = 1024
_COLUMN_GAP = 12.0
_COLUMN_HEADER = 18.0
_LABEL_FONT = 10.0
_LEAST_FONT, _MOST_FONT = 8.0, 18.0  # of a number in its cell
_LABELLED = 12  # pixels of a row from which its node is named
# A cell: its column of the map, and its row and place across on that column's grid.
Cell = tuple[int, int, int]


@dataclass(frozen=True)
class _Grid:
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
    def item(self) -> tuple[float, float]:
        """Width and height of a column with the space around it."""
        lines = self.rows * self.lines - (self.deep > 1)
        height = lines * self.pitch + _COLUMN_HEADER + 6
        return self.label + self.across * self.pitch + _COLUMN_GAP, height


@dataclass(frozen=True)
class Cells:
    """A laid-out map of GPUs."""

    content: Content
    columns: tuple[Column, ...]
    grid: _Grid
    flow: Flow
    is_mixed = False  # a cell holds one rank

    def draw(self, root: Xml.Element) -> None:
        """Add it to a picture."""
        first = {column.panel: column for column in reversed(self.columns)}
        names = [_panel_name(self.content.view, first[p]) for p in sorted(first)]
        full = (
            [self.content.view.names[2][p] for p in sorted(first)]
            if any(names)
            else names
        )
        draw_panels(root, self.flow.panels, names, full)
        seats = list(_seats(self))
        _draw_names(root, self)
        _draw_cells(root, self, seats)
        _draw_outlines(root, self, seats)


@dataclass(frozen=True)
class _Seat:
    """A rank's cell: its column of the map, and place on that column's grid."""

    rank: int
    column: int
    row: int
    across: int


def layout(content: Content, origin: tuple[float, float], width: float) -> Cells:
    """Cells as large as fit into ``width`` and a screen's height.

    A rack is one column, unless cells are much larger where it takes several, or the
    map would be a narrow one.
    """
    most = most_nodes(content)
    rows = dict.fromkeys(
        min(-(-most // pieces), _MOST_ROWS) for pieces in range(1, _MOST_PIECES + 1)
    )
    usual, *cut = (_laid_out(content, count, origin, width) for count in rows)
    best = max(cut, key=lambda c: (c.grid.pitch, c.flow.width), default=usual)
    worth = 1.0 if usual.flow.width < _NARROW else _WORTH
    return best if best.grid.pitch >= worth * usual.grid.pitch else usual


def _laid_out(
    content: Content, rows: int, origin: tuple[float, float], width: float
) -> Cells:
    columns = columns_of(content, rows)
    counts = [len(list(same)) for _, same in groupby(columns, lambda c: c.panel)]
    slots = int(_seat_of_rank(content).max()) + 1
    deep = -(-slots // _MOST_ACROSS)
    across = -(-slots // deep)
    longest = max(len(label) for column in columns for label in column.labels)
    header = HEADER if _named_panels(content.view) else 0.0
    same = have_same_labels(columns)
    for pitch in _PITCHES:
        label = longest * _LABEL_FONT * 0.62 + 5 if pitch * deep >= _LABELLED else 0.0
        beside, lead = (0.0, label) if same else (label, 0.0)
        grid = _Grid(pitch, across, deep, beside, lead, rows)
        found = flow(counts, grid.item, origin, width, header, lead)
        if found.height <= _TALLEST and found.width <= width:
            break
    return Cells(content, columns, grid, found)


def _named_panels(view: MachineView) -> bool:
    return len(view.levels) > 3


def _panel_name(view: MachineView, column: Column) -> str:
    if not _named_panels(view):
        return ""
    return view.panel_name(2, column.panel)


def _seat_of_rank(content: Content) -> IntArray:
    """Place of every rank among the GPUs of its node."""
    plan = content.view.plan
    # A file may number them anyhow: then in their order, without gaps.
    return plan.gpu_of_rank if plan.gpu_of_rank.max() < _MOST_SLOTS else plan.local_rank


def _seats(cells: Cells) -> Iterator[_Seat]:
    """Where every rank's cell is, by column, node and GPU."""
    plan, grid = cells.content.view.plan, cells.grid
    seat = _seat_of_rank(cells.content)
    order = np.lexsort((plan.gpu_of_rank, plan.node_of_rank))
    starts = np.searchsorted(plan.node_of_rank[order], np.arange(len(plan.nodes) + 1))
    for index, column in enumerate(cells.columns):
        for line, node in enumerate(column.nodes):
            for rank in order[starts[node] : starts[node + 1]].tolist():
                below, across = divmod(int(seat[rank]), grid.across)
                yield _Seat(rank, index, line * grid.lines + below, across)


def _places(cells: Cells) -> list[tuple[float, float]]:
    """Top left of the grid of every column."""
    return [
        (x + cells.grid.label, y + _COLUMN_HEADER)
        for panel in cells.flow.panels
        for x, y in panel.places
    ]


def _draw_names(root: Xml.Element, cells: Cells) -> None:
    """Racks above their columns, nodes beside their rows."""
    grid = cells.grid
    room = grid.item[0] - grid.label - 4
    for index, (column, (x, y)) in enumerate(
        zip(cells.columns, _places(cells), strict=True)
    ):
        name = svg.shortened(column.name, room, 11)
        hover = "" if column.name.startswith(column.full) else column.full
        svg.write(root, name, x, y - 5, hover, font_size=11, class_="p-soft")
        if grid.label or (grid.lead and index in cells.flow.first_of_line):
            for line, label in enumerate(column.labels):
                middle = y + (line * grid.lines + grid.deep / 2) * grid.pitch + 3.5
                at: svg.Attributes = {"text_anchor": "end", "class_": "p-soft"}
                svg.write(root, label, x - 4, middle, font_size=_LABEL_FONT, **at)


def _draw_cells(root: Xml.Element, cells: Cells, seats: Sequence[_Seat]) -> None:
    """The cells; the first of neighbours in a row with one value has its number."""
    groups, pitch = cells.content.groups, cells.grid.pitch
    places = _places(cells)
    hover = _Hover(cells.content)
    gap = 2.0 if pitch >= 12 else 1.0
    size = pitch - gap
    numbers = groups.number_of_rank
    digits = len(str(max(numbers[seat.rank] for seat in seats)))
    font = min(size * 0.52, _MOST_FONT, size / svg.text_width("0" * digits, 1.0))
    layer = svg.add(root, "g", class_="cells", text_anchor="middle", font_size=font)
    last = None
    for seat in seats:
        left, top = places[seat.column]
        x = left + seat.across * pitch + gap / 2
        y = top + seat.row * pitch + gap / 2
        value, number = int(groups.value_of_rank[seat.rank]), int(numbers[seat.rank])
        fill = groups.colour(value)
        box = {"x": x, "y": y, "width": size, "height": size}
        look = {"fill": fill, "class_": "cell", "data_rank": str(seat.rank)}
        svg.add(layer, "rect", hover(seat.rank), **box, **look)
        if font >= _LEAST_FONT and last != (seat.column, seat.row, value, number):
            at = x + size / 2, y + size / 2 + font * 0.36
            ink = palette.ink_on(fill)
            svg.write(layer, str(number), *at, fill=ink, pointer_events="none")
        last = seat.column, seat.row, value, number


def _draw_outlines(root: Xml.Element, cells: Cells, seats: Sequence[_Seat]) -> None:
    """A line around each group that leaves its domain, where they are few."""
    pitch, group = cells.grid.pitch, cells.content.groups.group_of_rank
    places = _places(cells)
    at = {(seat.column, seat.row, seat.across): seat for seat in seats}
    corner = {
        (column, row, across): (
            places[column][0] + across * pitch,
            places[column][1] + row * pitch,
        )
        for column, row, across in at
    }
    outlined = set(np.flatnonzero(cells.content.outlined).tolist())
    group_at = {cell: int(group[seat.rank]) for cell, seat in at.items()}
    draw_outlines(root, group_at, outlined, corner, pitch)


class _Hover:
    """Text about a rank: where it is, its coordinates, and where its group goes."""

    def __init__(self, content: Content) -> None:
        self.content = content
        plan = content.view.plan
        at = plan.axes.coordinates if plan.axes and not plan.role_of_rank else {}
        shown = ("tp", "cp", "ep", "pp", "dp")
        self.coordinates = {
            axis: at[axis].tolist() for axis in shown if axis in at and at[axis].any()
        }

    def __call__(self, rank: int) -> str:
        content = self.content
        view, groups, away = content.view, content.groups, content.leaving
        node = int(view.plan.node_of_rank[rank])
        place = f"{view.plan.nodes[node]} GPU {view.plan.gpu_of_rank[rank]}"
        own = " ".join(f"{axis} {at[rank]}" for axis, at in self.coordinates.items())
        if view.plan.role_of_rank:
            own = f"{view.plan.role_of_rank[rank]} {view.plan.instance_of_rank[rank]}"
        text = f"rank {rank}: {place}\n{own}".rstrip()
        group = int(groups.group_of_rank[rank])
        if not away.groups[group]:
            return text
        home = view.levels[away.home] if away.home >= 0 else "GPU"
        reached = view.levels[away.level_of_group[group]]
        return (
            f"{text}\nits {groups.group_noun} leaves its {home}: within one {reached}"
        )


def draw_outlines(
    root: Xml.Element,
    group_at: Mapping[Cell, int],
    outlined: set[int],
    corner: Mapping[Cell, tuple[float, float]],
    pitch: float,
) -> None:
    """One line around all cells of each group to outline.

    ``group_at``: group of each cell. ``outlined``: groups. ``corner``: top left of each
    cell, in pixels.
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


@dataclass(frozen=True)
class Column:
    """Some nodes of one rack, one below the other."""

    panel: int  # index of the domain around the rack
    # name and full: of the rack, as it is written and as it is.
    name: str
    full: str
    nodes: tuple[int, ...]
    labels: tuple[str, ...]  # short name of every node


def columns_of(content: Content, rows: int) -> tuple[Column, ...]:
    """Racks in the order of the view, cut into pieces of ``rows`` nodes."""
    return tuple(_columns(content, rows))


def most_nodes(content: Content) -> int:
    """Nodes of the largest rack; of all, on a machine without racks."""
    racks = [rack for _, rack in _racks(content)]
    return max(len(rack) for rack in racks)


def have_same_labels(columns: Sequence[Column]) -> bool:
    """Whether nodes side by side in any columns have one short name."""
    longest = max((column.labels for column in columns), key=len)
    return all(column.labels == longest[: len(column.labels)] for column in columns)


def _racks(content: Content) -> list[tuple[int, list[int]]]:
    """Racks and their nodes."""
    view, nodes = content.view, content.nodes.tolist()
    rack = view.domain_of_node[1].tolist()
    return [
        (domain, list(own)) for domain, own in groupby(nodes, lambda node: rack[node])
    ]


def _columns(content: Content, rows: int) -> Iterator[Column]:
    view = content.view
    alone = len(view.levels) < 3
    panel = view.domain_of_node[min(2, len(view.levels) - 1)].tolist()
    for domain, own in _racks(content):
        name = "" if alone else view.short[1][domain]
        full = "" if alone else view.names[1][domain]
        pieces = [own[i : i + rows] for i in range(0, len(own), rows)]
        for index, piece in enumerate(pieces):
            names = [view.plan.nodes[node] for node in piece]
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
