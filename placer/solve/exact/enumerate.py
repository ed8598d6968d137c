"""Every placement of a small job, equal machines counted once.

Units (a block of ranks that one node holds, or a single rank) are put on nodes one
after the other; in a node-contiguous launch, runs of consecutive ranks of any length.
Domains that look alike and hold nothing yet are interchangeable, so only the first of
them is tried: each placement is met once up to a symmetry of the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from placer.solve.problem.colocation import Parts
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]

STEPS_BETWEEN_STOPS = 1024


class Enumeration:
    """A depth-first walk over all placements that keep the parts together.

    Parameters
    ----------
    topology : Topology
    parts : Parts
        With a block of at least 1: that many consecutive ranks form a unit.
    capacity_of_node : ndarray, shape (N,)
        Ranks each node may hold.
    most_steps : int
        Units put on a node, again and again, after which the walk is given up.
    stop : callable
        Asked now and then; True gives the walk up.
    """

    def __init__(
        self,
        topology: Topology,
        parts: Parts,
        capacity_of_node: IntArray,
        most_steps: int,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.domains = topology.domain_of_node
        self.block = parts.block
        self.steps_left = most_steps
        self.stop = stop
        self.room = (capacity_of_node // parts.block).tolist()
        first = np.arange(0, parts.label.shape[1], parts.block)
        self.label = parts.label[:, first]
        self.num_units = len(first)
        self.node_of_unit = np.zeros(self.num_units, dtype=np.int64)
        self.shape = domain_looks(topology, self.room)
        self.held = [
            np.zeros(int(row.max()) + 1, dtype=np.int64) for row in self.domains
        ]
        self.home: list[dict[int, int]] = [{} for _ in self.domains]

    @property
    def complete(self) -> bool:
        """Whether the walk, when it has ended, has met every placement."""
        return self.steps_left > 0

    def units(self) -> Iterator[IntArray]:
        """Node of every rank when any unit may go to any node; shape (R,) each."""
        for nodes in self._extend(0):
            yield np.repeat(nodes, self.block)

    def runs(self) -> Iterator[IntArray]:
        """Node of every rank when a node holds consecutive units; shape (R,) each."""
        for nodes in self._extend_runs(0):
            yield np.repeat(nodes, self.block)

    def _extend(self, unit: int) -> Iterator[IntArray]:
        """Complete the placement from ``unit`` on, in every way."""
        if unit == self.num_units:
            yield self.node_of_unit.copy()
            return
        for node in self._different(self.room):
            if self._allowed(unit, node):
                settled = self._put(unit, node)
                yield from self._extend(unit + 1)
                self._take_back(unit, node, settled)

    def _extend_runs(self, first: int) -> Iterator[IntArray]:
        """Complete the placement from unit ``first`` on by runs on unused nodes."""
        if first == self.num_units:
            yield self.node_of_unit.copy()
            return
        pairs = zip(self.held[0], self.room, strict=True)
        unused = [0 if used else room for used, room in pairs]
        spare = sum(unused) - (self.num_units - first)
        for node in self._different(unused):
            # A shorter run would leave too little room for the rest.
            shortest = self.room[node] - spare
            run: list[list[int]] = []
            end = first
            while end < self.num_units and self.room[node] and self._allowed(end, node):
                run.append(self._put(end, node))
                end += 1
                if len(run) >= shortest or end == self.num_units:
                    yield from self._extend_runs(end)
            for settled in reversed(run):
                end -= 1
                self._take_back(end, node, settled)

    def _different(self, room: list[int]) -> Iterator[int]:
        """Nodes with room, one of each sort that cannot be told apart."""
        tried = set()
        for node, free in enumerate(room):
            if free and self.steps_left > 0:
                looks = self._looks(node)
                if looks not in tried:
                    tried.add(looks)
                    yield node

    def _allowed(self, unit: int, node: int) -> bool:
        """Whether the unit's parts already live where ``node`` is, or nowhere."""
        for t, home in enumerate(self.home):
            domain = int(self.domains[t, node])
            if home.get(int(self.label[t, unit]), domain) != domain:
                return False
        return True

    def _looks(self, node: int) -> tuple[object, ...]:
        """What tells nodes apart: used domains by identity, empty ones by shape."""
        return tuple(
            int(self.domains[t, node])
            if self.held[t][self.domains[t, node]]
            else self.shape[t][int(self.domains[t, node])]
            for t in range(len(self.domains) - 1, -1, -1)
        )

    def _put(self, unit: int, node: int) -> list[int]:
        """Place a unit; tiers at which its part found its home."""
        self.steps_left -= 1
        if self.steps_left % STEPS_BETWEEN_STOPS == 0 and self.stop():
            self.steps_left = 0
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


def domain_looks(topology: Topology, room: list[int]) -> list[list[str]]:
    """A text for each domain of each tier; equal texts mean equal domains.

    ``room`` is what each node may hold.
    """
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
        built = topology.gpus_of_domain(t).tolist()
        shapes.append(
            [
                f"{gpus}({' '.join(sorted(shapes[-1][child] for child in inside))})"
                for gpus, inside in zip(built, children, strict=True)
            ]
        )
    return shapes
