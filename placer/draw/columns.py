"""The columns of a map of GPUs: racks, or pieces of them, and the names in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from placer.draw import svg

if TYPE_CHECKING:
    from placer.draw.content import Content


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
