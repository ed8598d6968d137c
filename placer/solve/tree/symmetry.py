"""Symmetries of a machine that bring given nodes where they must be.

Domains are alike when their nodes have the same GPUs and speed, in the same tree.
Exchanging them changes no cost. Whether some exchange brings every pinned node home is
decided from the top: children with pinned nodes inside are matched to children that are
alike and can take them (augmenting paths; Kuhn 1955, Naval Research Logistics 2(1-2)).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]
Homes = Mapping[int, frozenset[int]]


class Symmetry:
    """The exchanges of equal domains of one machine."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.top = len(topology.tiers) - 1

    @cached_property
    def children(self) -> list[list[list[int]]]:
        """Domains of the tier below inside each domain, by tier (none for nodes)."""
        found: list[list[list[int]]] = [[]]
        for t in range(1, self.top + 1):
            below, row = self.topology.domain_of_node[t - 1 : t + 1]
            inside: list[list[int]] = [[] for _ in range(int(row.max()) + 1)]
            lowest, first = np.unique(below, return_index=True)
            for child, node in zip(lowest.tolist(), first.tolist(), strict=True):
                inside[int(row[node])].append(child)
            found.append(inside)
        return found

    @cached_property
    def shape(self) -> list[list[int]]:
        """Number of each domain's shape, by tier: equal numbers mean alike."""
        topology = self.topology
        nodes = zip(topology.gpus_of_node, topology.bandwidth_factor, strict=True)
        shapes = [_numbered([(int(gpus), float(factor)) for gpus, factor in nodes])]
        for inside in self.children[1:]:
            below = shapes[-1]
            shapes.append(
                _numbered([tuple(sorted(below[child] for child in i)) for i in inside])
            )
        return shapes

    def exchange(self, homes: Homes) -> IntArray | None:
        """New node of every node so that those of ``homes`` get home; None if none can.

        Parameters
        ----------
        homes : mapping of int to frozenset of int
            Node -> nodes it may become.

        Returns
        -------
        ndarray, shape (N,), or None
        """
        matching = _Matching(self, homes)
        if not matching.fits(self.top, 0, 0):
            return None
        becomes = np.arange(self.topology.num_nodes)
        matching.apply(self.top, 0, 0, becomes)
        return becomes


class _Matching:
    """Which domain may become which, given where some nodes must end."""

    def __init__(self, symmetry: Symmetry, homes: Homes) -> None:
        self.symmetry, self.homes = symmetry, homes
        rows = symmetry.topology.domain_of_node
        self.allowed: list[dict[int, set[int]]] = []
        for row in rows:
            allowed: dict[int, set[int]] = {}
            for node, targets in homes.items():
                reached = {int(row[target]) for target in targets}
                own = int(row[node])
                allowed[own] = allowed.get(own, reached) & reached
            self.allowed.append(allowed)
        self.known: dict[tuple[int, int, int], dict[int, int] | None] = {}

    def fits(self, tier: int, source: int, target: int) -> bool:
        """Whether ``source`` can become ``target`` with its nodes getting home."""
        return self._matched(tier, source, target) is not None

    def apply(self, tier: int, source: int, target: int, becomes: IntArray) -> None:
        """Write down where the nodes of ``source`` go when it becomes ``target``."""
        if tier == 0:
            becomes[source] = target
            return
        matched = dict(self._matched(tier, source, target) or {})
        shape, children = self.symmetry.shape[tier - 1], self.symmetry.children[tier]
        free = [child for child in children[target] if child not in matched.values()]
        rest = [child for child in children[source] if child not in matched]
        stay = set(free) & set(rest)
        matched |= {child: child for child in stay}
        by_shape: defaultdict[int, list[int]] = defaultdict(list)
        for child in reversed(free):
            if child not in stay:
                by_shape[shape[child]].append(child)
        for child in rest:
            if child not in stay:
                matched[child] = by_shape[shape[child]].pop()
        for child, new in matched.items():
            if child != new or child in self.allowed[tier - 1]:
                self.apply(tier - 1, child, new, becomes)

    def _matched(self, tier: int, source: int, target: int) -> dict[int, int] | None:
        """Target of each child of ``source`` with a home, None when they cannot go."""
        key = (tier, source, target)
        if key not in self.known:
            self.known[key] = self._match(*key)
        return self.known[key]

    def _match(self, tier: int, source: int, target: int) -> dict[int, int] | None:
        shape = self.symmetry.shape[tier]
        if shape[source] != shape[target]:
            return None
        if target not in self.allowed[tier].get(source, {target}):
            return None
        if tier == 0:
            return {}
        bound = self.allowed[tier - 1]
        inside = set(self.symmetry.children[tier][target])
        options = {
            child: [
                new
                for new in sorted(bound[child] & inside)
                if self.fits(tier - 1, child, new)
            ]
            for child in self.symmetry.children[tier][source]
            if child in bound
        }
        return _assignment(options)


def _assignment(options: dict[int, list[int]]) -> dict[int, int] | None:
    """A different option for every key, None when there is none."""
    taken: dict[int, int] = {}

    def seat(key: int, seen: set[int]) -> bool:
        for option in options[key]:
            if option not in seen:
                seen.add(option)
                if option not in taken or seat(taken[option], seen):
                    taken[option] = key
                    return True
        return False

    if not all(seat(key, set()) for key in options):
        return None
    return {key: option for option, key in taken.items()}


def _numbered(keys: list[tuple[float, ...]]) -> list[int]:
    number: dict[tuple[float, ...], int] = {}
    return [number.setdefault(key, len(number)) for key in keys]
