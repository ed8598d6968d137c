"""Every placement of a small job, equal machines counted once.

Units (a block of ranks that one node holds, or a single rank) are put on nodes one after the
other. Domains that look alike and hold nothing yet are interchangeable, so only the first of
them is tried: each placement is met once up to a symmetry of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from placer.solve.parts import Parts
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]


def placements(
    topology: Topology, parts: Parts, capacity_of_node: IntArray
) -> Iterator[IntArray]:
    """Node of every rank in each placement that keeps the parts together.

    Parameters
    ----------
    topology : Topology
    parts : Parts
        With a block of at least 1: that many consecutive ranks form a unit.
    capacity_of_node : ndarray, shape (N,)
        Ranks each node may hold.
    """
    walk = _Walk(topology, parts, capacity_of_node)
    for nodes in walk.extend(0):
        yield np.repeat(nodes, parts.block)


class _Walk:
    """Depth-first walk over the units."""

    def __init__(
        self, topology: Topology, parts: Parts, capacity_of_node: IntArray
    ) -> None:
        self.domains = topology.domain_of_node
        self.room = (capacity_of_node // parts.block).tolist()
        first = np.arange(0, parts.label.shape[1], parts.block)
        self.label = parts.label[:, first]
        self.num_units = len(first)
        self.node_of_unit = np.zeros(self.num_units, dtype=np.int64)
        self.shape = _shapes(topology, self.room)
        self.held = [
            np.zeros(int(row.max()) + 1, dtype=np.int64) for row in self.domains
        ]
        self.home: list[dict[int, int]] = [{} for _ in self.domains]

    def extend(self, unit: int) -> Iterator[IntArray]:
        """Complete the placement from ``unit`` on, in every way."""
        if unit == self.num_units:
            yield self.node_of_unit.copy()
            return
        tried = set()
        for node in range(len(self.room)):
            if self.room[node] == 0 or not self._allowed(unit, node):
                continue
            looks = self._looks(node)
            if looks in tried:
                continue
            tried.add(looks)
            settled = self._put(unit, node)
            yield from self.extend(unit + 1)
            self._take_back(unit, node, settled)

    def _allowed(self, unit: int, node: int) -> bool:
        """Whether the unit's parts already live where ``node`` is, or nowhere."""
        for t, home in enumerate(self.home):
            domain = int(self.domains[t, node])
            if home.get(int(self.label[t, unit]), domain) != domain:
                return False
        return True

    def _looks(self, node: int) -> tuple[object, ...]:
        """What tells a node from others: used domains by identity, empty ones by shape."""
        return tuple(
            int(self.domains[t, node])
            if self.held[t][self.domains[t, node]]
            else self.shape[t][int(self.domains[t, node])]
            for t in range(len(self.domains) - 1, -1, -1)
        )

    def _put(self, unit: int, node: int) -> list[int]:
        """Place a unit; tiers at which its part found its home."""
        self.node_of_unit[unit] = node
        self.room[node] -= 1
        settled = []
        for t, home in enumerate(self.home):
            domain = int(self.domains[t, node])
            self.held[t][domain] += 1
            part = int(self.label[t, unit])
            if part not in home:
                home[part] = domain
                settled.append(t)
        return settled

    def _take_back(self, unit: int, node: int, settled: list[int]) -> None:
        self.room[node] += 1
        for t in range(len(self.home)):
            self.held[t][self.domains[t, node]] -= 1
        for t in settled:
            del self.home[t][int(self.label[t, unit])]


def _shapes(topology: Topology, room: list[int]) -> list[list[str]]:
    """A text for each domain of each tier; equal texts mean equal domains."""
    factor = topology.bandwidth_factor
    gpus = topology.gpus_of_node
    shapes = [
        [
            f"{room[node]}/{int(gpus[node])}/{float(factor[node])!r}"
            for node in range(len(room))
        ]
    ]
    for t in range(1, len(topology.tiers)):
        children: list[set[int]] = [
            set() for _ in range(int(topology.domain_of_node[t].max()) + 1)
        ]
        below = topology.domain_of_node[t - 1]
        for node, domain in enumerate(topology.domain_of_node[t]):
            children[int(domain)].add(int(below[node]))
        shapes.append(
            [
                "(" + " ".join(sorted(shapes[-1][child] for child in inside)) + ")"
                for inside in children
            ]
        )
    return shapes
