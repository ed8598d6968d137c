"""Regular machines: ``cluster:1 block:16 rack:8 node:18`` to names and domains.

Names follow one rule. Every level of the layout, outermost first, contributes the
start of its tier's name and a number counted from 1 inside its parent: ``b01-r3-n07``
is node 7 of rack 3 of block 1, and ``b01-r3`` that rack. A number is zero-padded to the
width of its level's count, so names sorted as strings are in the order of the tree. The
starts are as short as they can be while they differ (``ra`` and ``ro`` for ``rack`` and
``row``). The outermost tier is the whole machine: its one domain has the tier's name,
which is not repeated in the others.

Shapes: T tiers, N nodes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from placer.base.arrays import IntArray
from placer.base.hostlist import name_problem
from placer.base.units import format_bytes

MAX_NODES = 1 << 20
BYTES_A_NODE = 400  # names, and where they are listed

_COUNT = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):([0-9]{1,9})")


@dataclass(frozen=True)
class Level:
    """One tier of a layout, and how many of it a domain of the next tier holds."""

    tier: str
    count: int


def parse_levels(text: str) -> list[Level]:
    """The levels of a layout or synthetic string, outermost first.

    Raises `ValueError` if an item is not ``tier:count`` with a count of at least 1, a
    tier comes twice, or there is none.
    """
    levels = []
    for item in text.split():
        match = _COUNT.fullmatch(item)
        if match is None:
            raise ValueError(f"{item!r} is not tier:count")
        levels.append(Level(match[1], int(match[2])))
    names = [level.tier for level in levels]
    if not levels:
        raise ValueError("no tier:count in it")
    for level in levels:
        if level.count < 1:
            raise ValueError(f"{level.tier}:{level.count} has no members")
        if names.count(level.tier) > 1:
            raise ValueError(f"tier {level.tier!r} comes twice")
    return levels


def lay_out(levels: Sequence[Level]) -> tuple[IntArray, tuple[tuple[str, ...], ...]]:
    """Domain of every node at every tier, shape (T, N), and the domains' names.

    Tiers are innermost first, as in `Topology`; nodes are in the order of the tree, and
    the names of tier 0 are the node names.

    ``levels``: outermost first; the outermost count is 1. Raises `ValueError` if the
    outermost count is not 1, the nodes are more than ``MAX_NODES``, or the names are
    too long for host names.
    """
    outermost = levels[0]
    if outermost.count != 1:
        raise ValueError(
            f"the outermost tier is the whole machine, so its count is 1, "
            f"not {outermost.count}"
        )
    num_nodes = prod(level.count for level in levels)
    if num_nodes > MAX_NODES:
        size = format_bytes(BYTES_A_NODE * num_nodes)
        raise ValueError(
            f"{num_nodes} nodes, the most is {MAX_NODES}; these take {size} of memory"
        )
    names = _names(levels)
    if problem := name_problem(names[-1][-1]):
        raise ValueError(problem)
    nodes = np.arange(num_nodes, dtype=np.int64)
    domains = [nodes // (num_nodes // len(of_tier)) for of_tier in names]
    return np.stack(domains[::-1]), tuple(names[::-1])


def _names(levels: Sequence[Level]) -> list[tuple[str, ...]]:
    """Domain names of every tier, outermost first."""
    starts = _starts([level.tier for level in levels[1:]])
    names: list[tuple[str, ...]] = [(levels[0].tier,)]
    parents: list[str] = [""]
    for level, start in zip(levels[1:], starts, strict=True):
        width = len(str(level.count))
        own = [f"{start}{i:0{width}d}" for i in range(1, level.count + 1)]
        of_tier = [parent + name for parent in parents for name in own]
        names.append(tuple(of_tier))
        parents = [name + "-" for name in of_tier]
    return names


def _starts(tiers: Sequence[str]) -> list[str]:
    """Equally long starts of the tiers' names, the shortest that all differ."""
    length = 1
    lower = [tier.lower() for tier in tiers]
    while len({tier[:length] for tier in lower}) < len(set(lower)):
        length += 1
    return [tier[:length] for tier in lower]
