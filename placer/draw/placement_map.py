"""The placement as `placer draw` maps it: every GPU, node, rack or block by its groups.

The level of detail follows from the number of ranks: up to `MOST_GPUS` of them each GPU
is a cell; beyond, the innermost tier with at most `MOST_TILES` domains gives the cells,
or the next one in, where these would be a handful.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from placer.base.arrays import IntArray
from placer.base.units import counted, plural
from placer.draw import gpu_cells, palette, svg, tiles
from placer.draw.grouping import Content, Grouping, default_axis, grouping
from placer.draw.machine_view import MachineView, machine_view
from placer.placement.plan import Plan

if TYPE_CHECKING:
    from xml.etree import ElementTree as Xml

_BAR = 224.0
_FONT = 13.0
_LINE = 26.0


def _draw_legend(
    root: Xml.Element, content: Content, is_mixed: bool, place: tuple[float, float]
) -> None:
    """Two lines: the colours of the values, then what of the groups leaves its domain.

    ``is_mixed``: whether some cell holds more values than colours tell apart.
    ``place``: left end of the first line's middle.
    """
    legend = svg.add(root, "g", class_="legend")
    x, y = place
    if content.groups.is_ordered:
        _draw_scale(legend, content.groups, x, y)
    else:
        _draw_swatches(legend, content.groups, is_mixed, x, y)
    y += _LINE
    if content.outlined.any():
        box = {"x": x + 1, "y": y - 6, "width": 12.0, "height": 12.0}
        svg.add(legend, "rect", **box, class_="p-out", fill="none", stroke_width=2.0)
        x += svg.SWATCH + 8
    svg.write(legend, _leaving(content), x, y + 4.5, font_size=_FONT)


def _draw_scale(legend: Xml.Element, groups: Grouping, x: float, y: float) -> None:
    """Shades from the first value to the last."""
    values = groups.values
    first, last = f"{groups.value_noun} {values[0]:,}", f"{values[-1]:,}"
    svg.write(legend, first, x, y + 4.5, font_size=_FONT)
    x += svg.text_width(first, _FONT) + 6
    steps = min(len(values), palette.SHADES)
    shown = (values[-(-step * len(values) // steps)] for step in range(steps))
    svg.scale(legend, [*map(groups.colour, shown)], x, y - 7, _BAR, svg.SWATCH)
    svg.write(legend, last, x + _BAR + 6, y + 4.5, font_size=_FONT)


def _draw_swatches(
    legend: Xml.Element, groups: Grouping, is_mixed: bool, x: float, y: float
) -> None:
    """A swatch a value; of more values than colours, what the colours tell."""
    svg.write(legend, groups.value_noun, x, y + 4.5, font_size=_FONT)
    x += svg.text_width(groups.value_noun, _FONT) + 8
    if not groups.repeats:
        for value in groups.values:
            svg.swatch(legend, x, y, rx=2.0, fill=groups.colour(value))
            name = groups.name(value)
            svg.write(legend, name, x + svg.SWATCH + 4, y + 4.5, font_size=_FONT)
            x += svg.SWATCH + 4 + svg.text_width(name, _FONT) + 10
        return
    for colour in palette.DISTINCT:
        svg.swatch(legend, x, y, fill=colour)
        x += svg.SWATCH
    text = (
        f"{groups.name(groups.values[0])} to {groups.name(groups.values[-1])}: "
        f"{groups.meaning or 'colours repeat, numbers tell them apart'}"
    )
    svg.write(legend, text, x + 8, y + 4.5, font_size=_FONT)
    if is_mixed:
        x += svg.text_width(text, _FONT) + 20
        svg.swatch(legend, x, y, class_="p-mixed")
        text = f"parts of more than {len(palette.DISTINCT)}"
        svg.write(legend, text, x + svg.SWATCH + 6, y + 4.5, font_size=_FONT)


MOST_GPUS = 2048
MOST_TILES = tiles.MOST_LARGE
# Rather small tiles, but no more than these, than fewer than those.
MOST_SMALL, FEW_TILES = 1280, 16

WIDTH, LEAST_WIDTH = 1600.0, 800.0
MARGIN = 24.0
_LEGEND = 96.0
_TOP = 148.0


def placement_map(
    plan: Plan, colour: str | None = None, zoom: str | None = None, theme: str = "auto"
) -> str:
    """SVG of where a plan puts its ranks.

    ``colour``: ``role`` (of a workload), ``dp`` (replicas), ``pp`` (stages), ``ep`` or
    ``tp`` (groups); by default the first that has members and that colours can tell
    apart. ``zoom``: name of the one domain to show. ``theme``: ``auto``, ``light`` or
    ``dark``.
    """
    view = machine_view(plan)
    nodes, place = _nodes_of_zoom(view, zoom)
    shown = np.isin(view.node_of_rank, nodes)
    level = _level(view, nodes, int(shown.sum()))
    axis = colour or default_axis(view, shown, level)
    apart = level if level >= 0 else min(1, len(view.levels) - 2)
    groups = grouping(view, axis, shown, apart)
    content = Content(view, groups, nodes, shown, level)
    draw = gpu_cells.layout if content.level < 0 else tiles.layout
    body = draw(content, (MARGIN, _TOP), WIDTH - 2 * MARGIN)
    width = max(body.flow.width + 2 * MARGIN, LEAST_WIDTH)
    title = f"Where the ranks are: {plan.job['name']} on {plan.topology['name']}"
    subtitle = _subtitle(content, place)
    root = svg.new_picture(width, body.flow.height + _TOP + MARGIN, theme, title)
    svg.write_heading(root, title, subtitle, MARGIN, width - 2 * MARGIN, 20)
    _draw_legend(root, content, body.is_mixed, (MARGIN, _LEGEND))
    body.draw(root)
    return svg.to_text(root)


def map_rows(plan: Plan, zoom: str | None) -> list[dict[str, Any]]:
    """A row of `Plan.rows` for every rank that is drawn."""
    view = machine_view(plan)
    hosts = {view.names[0][node] for node in _nodes_of_zoom(view, zoom)[0].tolist()}
    return [row for row in plan.rows if row["host"] in hosts]


def _nodes_of_zoom(view: MachineView, zoom: str | None) -> tuple[IntArray, str]:
    """Nodes of the domain asked for, in the order of the view, and its name."""
    if zoom is None:
        return np.arange(len(view.names[0])), ""
    level, domain = view.find(zoom)
    inside = np.flatnonzero(view.domain_of_node[level] == domain)
    return inside, f"{view.levels[level]} {view.path(level, domain)}"


def _level(view: MachineView, nodes: IntArray, num_ranks: int) -> int:
    """Level of the cells of a map of ``nodes``; -1 for GPUs."""
    if num_ranks <= MOST_GPUS:
        return -1
    counts = [len(np.unique(row)) for row in view.domain_of_node[:-1, nodes]]
    several = [level for level, count in enumerate(counts) if count > 1]
    few = [level for level in several if counts[level] <= MOST_TILES]
    level = min(few, default=max(several, default=0))
    finer = counts[level - 1] if level else MOST_SMALL + 1
    return level - (counts[level] < FEW_TILES and finer <= MOST_SMALL)


def _subtitle(content: Content, place: str) -> str:
    view, nodes = content.view, content.nodes
    parts = [place] if place else []
    parts += [f"{np.count_nonzero(content.shown):,} GPUs"]
    for level, name in enumerate(view.levels[:-1]):
        count = len(np.unique(view.domain_of_node[level, nodes]))
        parts.append(counted(count, name))
    cell = "GPU"
    if content.level >= 0:  # these cells do not say their ranks
        ranks = counted(content.usual_ranks, "GPU")
        cell = f"{view.levels[content.level]} of {ranks}"
    parts.append(f"a cell is a {cell}")
    return f" {svg.DOT} ".join(parts)


def _leaving(content: Content) -> str:
    """How many groups leave their domain, and whether an outline says which."""
    view, groups, home = content.view, content.groups, content.home_name
    count, total = int(content.away.sum()), len(groups.members)
    noun = plural(groups.group_noun, total)
    if content.home == len(view.levels) - 1:
        spanning = int(np.count_nonzero(content.level_of_group == content.home))
        verb = "spans" if spanning == 1 else "span"
        return f"{spanning:,} of {total:,} {noun} {verb} the whole {home}"
    if not count:
        return f"none of {total:,} {noun} leaves its {home}"
    verb = "leaves its" if count == 1 else "leave their"
    text = f"{count:,} of {total:,} {noun} {verb} {home}"
    if view.plan.bound.get("status") == "optimal":
        text += ", and no placement is better"
    return f"outlined: {text}" if content.outlined.any() else text
