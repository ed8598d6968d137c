"""Heights of switches above the leaves, and what they join."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from placer.readers.switches import MAX_HEIGHT

if TYPE_CHECKING:
    from placer.readers.infiniband import Fabric


def switch_heights(fabric: Fabric, leaves: Iterable[str]) -> dict[str, int]:
    """Hops from the closest leaf, of every switch that can be reached."""
    neighbours: dict[str, set[str]] = defaultdict(set)
    for link in fabric.links.values():
        if link.node.startswith("S-") and link.other.startswith("S-"):
            neighbours[link.node].add(link.other)
    heights = dict.fromkeys(leaves, 0)
    front = list(heights)
    for height in range(1, MAX_HEIGHT):
        front = [
            other
            for other in dict.fromkeys(
                n for switch in front for n in neighbours[switch]
            )
            if other not in heights
        ]
        heights |= dict.fromkeys(front, height)
    return heights


def joined_units(
    fabric: Fabric,
    units: Sequence[frozenset[str]],
    heights: Mapping[str, int],
    height: int,
) -> list[int]:
    """Number of the group of each unit that switches up to ``height`` join.

    The leaves of a unit are joined by its hosts.
    """
    root: dict[str, str] = {}

    def find(switch: str) -> str:
        root.setdefault(switch, switch)
        while root[switch] != switch:
            root[switch] = root[root[switch]]
            switch = root[switch]
        return switch

    for leaves in units:
        first, *others = sorted(leaves)
        for leaf in others:
            root[find(leaf)] = find(first)
    for link in fabric.links.values():
        if (
            max(heights.get(end, height + 1) for end in (link.node, link.other))
            <= height
        ):
            root[find(link.node)] = find(link.other)
    number: dict[str, int] = {}
    return [number.setdefault(find(min(unit)), len(number)) for unit in units]
