"""The graph of a fabric's switches: heights above the leaves, and what they join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import networkx as nx

from placer.formats.machines.switches import MAX_HEIGHT

if TYPE_CHECKING:
    from placer.formats.machines.infiniband import Fabric


def switch_graph(fabric: Fabric, units: Sequence[frozenset[str]]) -> nx.Graph:
    """Every switch that is linked to another; the leaves of a unit are a path.

    Its hosts join the leaves of a unit.
    """
    graph = nx.Graph(
        (link.node, link.other)
        for link in fabric.links.values()
        if link.node.startswith("S-") and link.other.startswith("S-")
    )
    for leaves in units:
        nx.add_path(graph, leaves)
    return graph


def switch_heights(graph: nx.Graph, units: Sequence[frozenset[str]]) -> dict[str, int]:
    """Hops from the closest leaf, of every switch that can be reached."""
    layers = islice(nx.bfs_layers(graph, set().union(*units)), MAX_HEIGHT)
    return {switch: height for height, layer in enumerate(layers) for switch in layer}


def joined_units(
    graph: nx.Graph,
    units: Sequence[frozenset[str]],
    heights: Mapping[str, int],
    height: int,
) -> list[int]:
    """Number of the group of each unit that switches up to ``height`` join."""
    low = graph.subgraph(switch for switch, h in heights.items() if h <= height)
    parts = enumerate(nx.connected_components(low))
    part_of = {switch: number for number, part in parts for switch in part}
    group: dict[int, int] = {}
    return [group.setdefault(part_of[min(unit)], len(group)) for unit in units]
