"""Grids and tori cut into boxes, so that no domain sends much.

Edges on opposite sides of a square go the same way (Imrich and Klavzar 2000, *Product
Graphs*, on the relation delta), and those that meet in a corner of one go different
ways: classes of the first are coloured so that no two of the second are alike, and a
colour is an axis. A missing corner does no harm. A place along an axis is a component
of the graph without the edges of the axis.

A box is how long it is along each axis, and at how many ends it has neighbours. For a
time T it fits a domain if its units do, its uplink carries what leaves it within T, and
the domains inside it are enough for its parts; else the fewest domains are the least
sum over all ways to cut it in two (guillotine cuts; Gilmore and Gomory 1965, Oper. Res.
13). Shapes: U units, which are the vertices of a graph; E edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import inf, prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import IntArray
from placer.base.loading import load
from placer.cost import JITTER
from placer.solve.problem.flows import Flows
from placer.solve.problem.params import Params

if TYPE_CHECKING:
    import networkx as nx

# Loaded where a graph is looked at: it takes a seventh of what all modules take.
NETWORKX = "networkx"

# Length along each axis, and whether it has neighbours beyond its two ends.
Box = tuple[tuple[int, bool, bool], ...]
# Fewest domains, and where there are several, along which axis to cut, and where.
_Cut = tuple[float, int, int]


class BoxTier(NamedTuple):
    """Domains of a tier, as if all were as the smallest."""

    # room and number: units of one, and how many there are.
    room: int
    number: int
    inside: int  # domains of the tier below in one
    rate: float  # B/s: of its uplink, or of a port of the innermost
    latency: float  # s
    is_port: bool

    def seconds(self, box: Box, axes: Sequence[GridAxis]) -> float:
        """Time of the busiest port, or of the uplink, with a box in the domain."""
        if self.is_port:  # of the unit at a corner
            out = [(a + b) if length == 1 else (a or b) for length, a, b in box]
        else:
            out = [(a + b) * _units(box) // length for length, a, b in box]
        size = sum(n * axis.size_bytes for n, axis in zip(out, axes, strict=True))
        messages = sum(out) if self.is_port else 1
        return size / self.rate + messages * self.latency


def boxes(
    flows: Flows, units: int, tiers: Sequence[BoxTier], params: Params
) -> Iterator[IntArray]:
    """Box of each unit on each tier from the innermost out, for the least time.

    Shape (tiers, U); then without the outermost tier, and so on.
    """
    degree = np.bincount(flows.edges.ravel(), minlength=units)
    if int((degree**2).sum()) > params.tiled_edges:
        return
    axes = axes_of(flows, units, tiers[0].room * tiers[0].number)
    if not axes:
        return
    grid = np.full([axis.length for axis in axes], -1)
    grid[tuple(axis.place for axis in axes)] = np.arange(units)
    work = params.box_cuts
    for kept in range(len(tiers), 0, -1):
        best, low = None, 0.0
        high = tiers[0].seconds(tuple((1, True, True) for _ in axes), axes)
        while high - low > JITTER * high:
            cuts = _Cuts(axes, tiers[:kept], (low + high) / 2, work)
            is_enough, work = cuts.are_enough(), cuts.work_left
            if work <= 0:
                break
            if is_enough:
                best, high = cuts, cuts.seconds
            else:
                low = cuts.seconds
        if best is not None:
            yield best.rows(grid, units)
        if work <= 0:
            return


def _units(box: Box) -> int:
    return prod(length for length, *_ in box)


class _Cuts:
    """The fewest domains for boxes, for one time.

    ``work_left``: cuts to look at.
    """

    def __init__(
        self,
        axes: Sequence[GridAxis],
        tiers: Sequence[BoxTier],
        seconds: float,
        work: int,
    ) -> None:
        self.seconds, self.work_left = seconds, work
        self._axes, self._tiers = axes, tiers
        self._known: list[dict[Box, _Cut]] = [{} for _ in tiers]
        self._whole: Box = tuple((axis.length, False, False) for axis in axes)

    def are_enough(self) -> bool:
        """Whether the whole grid fits in domains of the outermost tier."""
        outermost = len(self._tiers) - 1
        return self._fewest(outermost, self._whole)[0] <= self._tiers[-1].number

    def rows(self, grid: IntArray, units: int) -> IntArray:
        """Box of each unit on each tier; ``grid`` has the unit in each place."""
        # Whoever is missing is the last.
        found = np.empty((len(self._tiers), units + 1), dtype=np.int64)
        parts = [(self._whole, grid)]
        for tier in range(len(self._tiers) - 1, -1, -1):
            parts = [
                part for box, cells in parts for part in self._parts(tier, box, cells)
            ]
            for number, (_, cells) in enumerate(parts):
                found[tier, cells] = number
        return found[:, :-1]

    def _parts(
        self, tier: int, box: Box, cells: IntArray
    ) -> Iterator[tuple[Box, IntArray]]:
        """Boxes for domains of a tier, and the units there."""
        count, axis, length = self._fewest(tier, box)
        if count == 1:
            yield box, cells
            return
        halves = np.split(cells, [length], axis)
        for half, own in zip(self._halves(box, axis, length), halves, strict=True):
            yield from self._parts(tier, half, own)

    def _fits(self, tier: int, box: Box) -> bool:
        own = self._tiers[tier]
        if _units(box) > own.room or own.seconds(box, self._axes) > self.seconds:
            return False
        return tier == 0 or self._fewest(tier - 1, box)[0] <= own.inside

    def _fewest(self, tier: int, box: Box) -> _Cut:
        known = self._known[tier]
        if box not in known:
            known[box] = (1, 0, 0) if self._fits(tier, box) else self._cut(tier, box)
        return known[box]

    def _cut(self, tier: int, box: Box) -> _Cut:
        """The best way to cut a box in two."""
        best: _Cut = inf, 0, 0
        room = self._tiers[tier].room
        least = -(-_units(box) // room)
        for axis, (whole, low, high) in enumerate(box):
            # From the middle outwards, so that smaller boxes are known before larger.
            # Where both ends are alike, the other half of all cuts says no more.
            lengths = range(1, whole // 2 + 1 if low == high else whole)
            for length in sorted(lengths, key=lambda n: (max(n, whole - n), n)):
                if self.work_left <= 0 or best[0] <= least:
                    break
                self.work_left -= 1
                near, far = self._halves(box, axis, length)
                fewest = -(-_units(far) // room)
                if -(-_units(near) // room) + fewest >= best[0]:
                    continue
                count = self._fewest(tier, near)[0]
                if count + fewest < best[0]:
                    count += self._fewest(tier, far)[0]
                    best = min(best, (count, axis, length))
        return best

    def _halves(self, box: Box, axis: int, length: int) -> tuple[Box, Box]:
        """A box cut in two; the nearer part is so long."""
        whole, low, high = box[axis]
        is_ring = self._axes[axis].is_ring and whole == self._axes[axis].length
        near = length, low or is_ring, True
        far = whole - length, True, high or is_ring
        before, after = box[:axis], box[axis + 1 :]
        return (*before, near, *after), (*before, far, *after)


class GridAxis(NamedTuple):
    """An axis of a grid."""

    length: int
    is_ring: bool
    size_bytes: float  # that neighbours send each other, one way
    place: IntArray  # (V,): of each vertex along it


def axes_of(flows: Flows, vertices: int, room: int) -> list[GridAxis]:
    """The axes of a graph, on which no two vertices share all places.

    None where it is no grid of two axes or more, or has more places than there is room.
    """
    direction = _directions(flows.edges, vertices)
    found: list[GridAxis] = []
    for way in range(int(direction.max()) + 1):
        axis = _axis(flows, direction == way, vertices)
        if axis is None:
            return []
        found.append(axis)
        if prod(axis.length for axis in found) > room:
            return []
    places = np.unique([axis.place for axis in found], axis=1)
    return found if len(found) > 1 and places.shape[1] == vertices else []


def _directions(edges: IntArray, vertices: int) -> IntArray:
    """Direction of each edge, from 0 up; shape (E,)."""
    networkx = load(NETWORKX)
    neighbours: list[dict[int, int]] = [{} for _ in range(vertices)]
    for number, (one, other) in enumerate(edges.tolist()):
        neighbours[one][other] = neighbours[other][one] = number
    alike: nx.utils.UnionFind[int] = networkx.utils.UnionFind(range(len(edges)))
    bent: list[tuple[int, int]] = []
    for vertex, near in enumerate(neighbours):
        for one, other in combinations(near, 2):
            at = near[one], near[other]
            corners = neighbours[one].keys() & neighbours[other].keys() - {vertex}
            corners -= near.keys()
            if other in neighbours[one] or len(corners) > 1:
                alike.union(*at)
                continue
            for corner in corners:
                alike.union(at[0], neighbours[other][corner])
                alike.union(at[1], neighbours[one][corner])
                bent.append(at)
    crossing: nx.Graph[int] = networkx.Graph(
        (alike[one], alike[other]) for one, other in bent if alike[one] != alike[other]
    )
    # From one to the next, two ways are told apart exactly.
    colour = networkx.greedy_color(crossing, "connected_sequential_bfs")
    return np.array([colour.get(alike[edge], 0) for edge in range(len(edges))])


def _axis(flows: Flows, own: IntArray, vertices: int) -> GridAxis | None:
    """The axis of some of the edges; None where its lines are no paths or rings."""
    networkx = load(NETWORKX)
    others: nx.Graph[int] = networkx.empty_graph(vertices)
    others.add_edges_from(flows.edges[~own].tolist())
    component = np.empty(vertices, dtype=np.int64)
    for number, members in enumerate(networkx.connected_components(others)):
        component[list(members)] = number
    line = networkx.Graph(component[flows.edges[own]].tolist())
    degree = dict(line.degree)
    length = int(component.max()) + 1
    if max(degree.values()) > 2 or not networkx.is_connected(line):
        return None
    if len(line) < length or any(networkx.selfloop_edges(line)):
        return None
    place = np.empty(length, dtype=np.int64)
    along = networkx.dfs_preorder_nodes(line, min(degree, key=degree.__getitem__))
    place[list(along)] = np.arange(length)
    size = float(flows.weight[own].mean()) / 2
    return GridAxis(length, line.size() == length, size, place[component])
