"""The maps of a report: one machine, laid out once, and where each side's ranks are.

The picture of `placer draw` is made by `placer.draw.placement_map`.

Shapes: N nodes, R ranks of a side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np

from placer.base.arrays import IntArray
from placer.draw import columns
from placer.draw.columns import Layout
from placer.draw.grouping import grouping, present
from placer.draw.machine_view import MachineView, Path, machine_views
from placer.report.moves import Matching
from placer.report.page.side import Side, encoded

NOWHERE = -1
# Pixels across of one map, and of two side by side; they scale with the page.
_ALONE, _BESIDE = 1274.0, 610.0
_HIGH = 0.62  # of the width, at most
_MARGIN = 6.0
# By what the page colours its cells: key in its address, and name.
_MODES = {
    "role": ("role", "Role"),
    "dp": ("replica", "Replica"),
    "pp": ("stage", "Stage"),
    "ep": ("experts", "Expert group"),
    "tp": ("tp", "TP group"),
}
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, eq=False)
class Maps:
    """The part of the machine that a report draws, and the sides on it."""

    views: list[MachineView]
    layout: Layout
    size: tuple[float, float]  # width and height of a map; pixels
    gpus: IntArray  # (N,): GPUs of each node
    left_out: int  # nodes not drawn: no rank is near them

    @property
    def view(self) -> MachineView:
        """The last side's."""
        return self.views[-1]

    def ground(self) -> str:
        """SVG of what lies behind the cells of every side: boxes, and names."""
        boxes, names = Xml.Element("g", id="boxes"), Xml.Element("g", id="names")
        self.layout.draw_boxes(boxes)
        self.layout.draw_names(names)
        return "".join(Xml.tostring(one, encoding="unicode") for one in (boxes, names))

    def seats(self, view: MachineView) -> IntArray:
        """GPU of each rank of a side, counted over all nodes; shape (R,)."""
        first = np.concatenate(([0], np.cumsum(self.gpus)))
        seats: IntArray = first[view.node_of_rank] + view.plan.gpu_of_rank
        return seats

    def to_dict(self) -> dict[str, Any]:
        """What the page's scripts read, whole numbers as `encoded`.

        Hosts keep their names; where those of a level are shortened, ``full`` has them.
        Lengths are hundredths of pixels. A column has its left, top, nodes and panel, a
        panel its left, top, width and height.
        """
        view, grid, flow = self.view, self.layout.grid, self.layout.flow
        panel = {own: i for i, own in enumerate(self.layout.panels)}
        short = [list(names) for names in view.short[:-1]]
        placed = [
            (round(100 * x), round(100 * y), len(column.nodes), panel[column.panel])
            for column, (x, y) in zip(
                self.layout.columns, self.layout.places, strict=True
            )
        ]
        panels = np.array([(p.x, p.y, p.width, p.height) for p in flow.panels])
        return {
            "levels": view.levels[:-1],
            "whole": view.levels[-1],
            "names": short,
            "full": [
                list(names) if list(names) != shown else None
                for names, shown in zip(view.names, short, strict=False)
            ],
            "parents": [encoded(row) for row in view.parents[:-1]],
            "gpus": encoded(self.gpus),
            "size": self.size,
            "pitch": grid.pitch,
            "across": grid.across,
            "lines": grid.lines,
            "isLabelled": bool(grid.label or grid.lead),
            "columns": encoded(placed),
            "panels": encoded(np.rint(100 * panels)),
        }


def maps_of(sides: Sequence[Side]) -> Maps:
    """The nodes that any side uses, and the free ones beside them in their domains."""
    views, left_out = machine_views(
        [side.plan for side in sides], lambda tiers: _nodes(sides, tiers)
    )
    gpus = _gpus(sides, views)
    width = _ALONE if len(sides) == 1 else _BESIDE
    room, nodes = width - 2 * _MARGIN, range(len(gpus))
    origin, slots = (_MARGIN, _MARGIN), int(gpus.max())
    found = columns.layout(
        views[-1], nodes, slots, origin, room, tallest=_HIGH * room, least=0.0
    )
    used = max(found.flow.width, found.flow.height / _HIGH)
    size = used + 2 * _MARGIN, found.flow.height + 2 * _MARGIN
    layout = replace(found, flow=found.flow.moved((used - found.flow.width) / 2))
    return Maps(views, layout, size, gpus, left_out)


def modes(
    views: Sequence[MachineView], axes: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """What the cells may be coloured by: colours, one for each value, and a legend.

    Work keeps its colour: that of the last side serves both. ``axes``: those that the
    page knows the groups of.
    """
    view = views[-1]
    plan = view.plan
    everywhere = np.ones(plan.world_size, dtype=bool)
    for axis in present(plan) if plan.role_of_rank or axes else ():
        if axis in axes or all(own.plan.role_of_rank for own in views):
            level = min(1, len(view.levels) - 2)
            groups = grouping(view, axis, everywhere, level)
            shades = [groups.colour(value) for value in groups.values]
            palette = list(dict.fromkeys(shades))
            key, name = _MODES[axis]
            yield {
                "key": key,
                "name": name,
                "axis": axis,
                "palette": palette,
                "shades": "".join(_DIGITS[palette.index(shade)] for shade in shades),
                "legend": groups.legend(),
            }


def partners(matching: Matching, new_size: int) -> str:
    """New rank of the work of each old rank, `NOWHERE` for none; empty if the same."""
    old_size = int(matching.old_rank.max()) + 1 if len(matching.old_rank) else 0
    if matching.old is not None:
        old_size = matching.old.world_size
    found = np.full(old_size, NOWHERE)
    found[matching.old_rank] = matching.new_rank
    if old_size == new_size and (found == np.arange(old_size)).all():
        return ""
    return encoded(found)


def _nodes(sides: Sequence[Side], tiers: Sequence[str]) -> Iterable[Path]:
    """Every node of the newest machine that is known, with its domains."""
    machines = [side.inputs.machine for side in sides if side.inputs is not None]
    known = [tier.name for tier in machines[-1].tiers] if machines else []
    if not machines or not set(tiers) <= set(known):
        return []
    machine = machines[-1]
    rows = [known.index(tier) for tier in reversed(tiers)]
    names = [
        [machine.domain_names[t][d] for d in machine.domain_of_node[t].tolist()]
        for t in rows
    ]
    return zip(*names, machine.node_names, strict=True)


def _gpus(sides: Sequence[Side], views: Sequence[MachineView]) -> IntArray:
    """GPUs of each node: those of the machine, or as many as ranks need; shape (N,)."""
    names = views[-1].names[0]
    most = np.zeros(len(names), dtype=np.int64)
    at = {name: node for node, name in enumerate(names)}
    for side, view in zip(sides, views, strict=True):
        np.maximum.at(most, view.node_of_rank, view.plan.gpu_of_rank + 1)
        if side.inputs is not None:
            machine = side.inputs.machine
            shown = np.array([at.get(name, NOWHERE) for name in machine.node_names])
            node = shown[machine.node_of_gpu]
            is_shown = node != NOWHERE
            np.maximum.at(most, node[is_shown], machine.index_of_gpu[is_shown] + 1)
    return most
