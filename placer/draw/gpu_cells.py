"""A map whose cells are GPUs: what is in them, and lines around groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import IntArray
from placer.draw import columns, palette, svg
from placer.draw.columns import Layout
from placer.draw.flow import Flow
from placer.draw.grouping import Content

if TYPE_CHECKING:
    from xml.etree import ElementTree as Xml

_MOST_SLOTS = 1024
_LEAST_FONT, _MOST_FONT = 8.0, 18.0  # of a number in its cell


@dataclass(frozen=True)
class Cells:
    """A laid-out map of GPUs."""

    content: Content
    layout: Layout
    is_mixed = False  # a cell holds one rank

    @property
    def flow(self) -> Flow:
        """The panels and the space that they take."""
        return self.layout.flow

    def draw(self, root: Xml.Element) -> None:
        """Add it to a picture."""
        self.layout.draw_boxes(root)
        self.layout.draw_names(root)
        seats = list(_seats(self))
        _draw_cells(root, self, seats)
        _draw_outlines(root, self, seats)


class _Seat(NamedTuple):
    """A rank's cell: its column of the map, and place on that column's grid."""

    rank: int
    column: int
    row: int
    across: int


def layout(content: Content, origin: tuple[float, float], width: float) -> Cells:
    """The ranks of a map's nodes in cells as large as fit into ``width`` pixels."""
    slots = int(_seat_of_rank(content).max()) + 1
    nodes = content.nodes.tolist()
    return Cells(content, columns.layout(content.view, nodes, slots, origin, width))


def _seat_of_rank(content: Content) -> IntArray:
    """Place of every rank among the GPUs of its node."""
    plan = content.view.plan
    # A file may number them anyhow: then in their order, without gaps.
    return plan.gpu_of_rank if plan.gpu_of_rank.max() < _MOST_SLOTS else plan.local_rank


def _seats(cells: Cells) -> Iterator[_Seat]:
    """Where every rank's cell is, by column, node and GPU."""
    view, grid = cells.content.view, cells.layout.grid
    seat, node_of_rank = _seat_of_rank(cells.content), view.node_of_rank
    order = np.lexsort((view.plan.gpu_of_rank, node_of_rank))
    nodes = np.arange(len(view.names[0]) + 1)
    starts = np.searchsorted(node_of_rank[order], nodes)
    for index, column in enumerate(cells.layout.columns):
        for line, node in enumerate(column.nodes):
            for rank in order[starts[node] : starts[node + 1]].tolist():
                below, across = divmod(int(seat[rank]), grid.across)
                yield _Seat(rank, index, line * grid.lines + below, across)


def _draw_cells(root: Xml.Element, cells: Cells, seats: Sequence[_Seat]) -> None:
    """The cells; the first of neighbours in a row with one value has its number."""
    groups, pitch = cells.content.groups, cells.layout.grid.pitch
    places = cells.layout.places
    hover = _hover(cells.content)
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
    """One line around all cells of each group that is outlined."""
    pitch, group = cells.layout.grid.pitch, cells.content.groups.group_of_rank
    outlined = set(np.flatnonzero(cells.content.outlined).tolist())
    at = {(seat.column, seat.row, seat.across): int(group[seat.rank]) for seat in seats}
    lines: dict[int, list[str]] = {own: [] for own in sorted(outlined)}
    for (column, row, across), own in at.items():
        if own in outlined:
            left, top = cells.layout.places[column]
            corner = left + across * pitch, top + row * pitch
            lines[own] += [
                side
                for (down, right), side in _sides(*corner, pitch)
                if at.get((column, row + down, across + right)) != own
            ]
    layer = svg.add(root, "g", class_="outlines", fill="none", pointer_events="none")
    for own, sides in lines.items():
        if sides:
            path = "".join(sides)
            svg.add(layer, "path", d=path, class_="p-halo", stroke_width=4.0)
            look = {"class_": "p-out", "data_group": str(own)}
            svg.add(layer, "path", d=path, stroke_width=2.0, **look)


def _hover(content: Content) -> Callable[[int], str]:
    """Text about a rank: where it is, its coordinates, and where its group goes."""
    view, groups = content.view, content.groups
    plan = view.plan
    at = plan.axes.coordinates if plan.axes and not plan.role_of_rank else {}
    shown = ("tp", "cp", "ep", "pp", "dp")
    coordinates = {
        axis: at[axis].tolist() for axis in shown if axis in at and at[axis].any()
    }

    def about(rank: int) -> str:
        node = view.names[0][view.node_of_rank[rank]]
        place = f"{node} GPU {plan.gpu_of_rank[rank]}"
        own = " ".join(f"{axis} {values[rank]}" for axis, values in coordinates.items())
        if plan.role_of_rank:
            own = f"{plan.role_of_rank[rank]} {plan.instance_of_rank[rank]}"
        text = f"rank {rank}: {place}\n{own}".rstrip()
        group = int(groups.group_of_rank[rank])
        if not content.away[group]:
            return text
        reached = view.levels[content.level_of_group[group]]
        leaves = f"its {groups.group_noun} leaves its {content.home_name}"
        return f"{text}\n{leaves}: within one {reached}"

    return about


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
