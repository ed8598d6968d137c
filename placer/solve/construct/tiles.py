"""Tiles: the ranks of one domain after the other grown out of the graph's edge.

A stencil is best cut into squares or cubes that lie side by side. Halving finds few of
them: once a cut runs through a square, it is lost. So the domains of the machine are
filled one by one, each with the tile that keeps most weight inside (greedy graph
growing; Karypis and Kumar 1998, SIAM J. Sci. Comput. 20(1)), found by beam search, and
each begun where the graph has been eaten away most. Shapes: V vertices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import nsmallest
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, IntArray
from placer.solve.problem.flows import Flows

# Of what leaves: 1 asks for little in sum, a large one for little at any vertex.
POWER = 4


class Sweep(NamedTuple):
    """Where the next tile begins, of vertices that have the least weight left.

    Weight to tiles of the same outer domains counts too, so those stay compact. The
    next tile begins next to the earliest, so that layer comes after layer.
    """

    # Next to the latest tile, and with the vertices that have the most weight; a tile
    # leaves none of its own much that it sends outside, rather than little in sum.
    busiest: bool
    # Tiles in the making that are kept, and neighbours that each grows by.
    beam: int


class _Tile(NamedTuple):
    """Some vertices that may become a tile."""

    members: frozenset[int]
    inside: int  # weight between them
    rest: int  # weight from them to vertices of no tile, themselves included
    neighbours: dict[int, int]  # weight to every neighbour
    unevenness: int  # sum of the `POWER` of what leaves the tile, vertex by vertex

    @property
    def rank(self) -> tuple[int, int]:
        """Most inside first, then least towards what is left."""
        return -self.inside, self.rest - 2 * self.inside

    @property
    def busy_rank(self) -> tuple[int, ...]:
        """Least outside of those with most of it first, then as in `rank`."""
        return self.unevenness, *self.rank


def tiles(
    flows: Flows,
    sizes: Sequence[int],
    enclosures: IntArray,
    sweep: Sweep,
    is_over: Callable[[], bool],
) -> IntArray | None:
    """Tile of each vertex, tile ``i`` of ``sizes[i]`` vertices; shape (V,).

    Parameters
    ----------
    flows : Flows
        The graph of the vertices, as many as all tiles have.
    enclosures : ndarray, shape (tiers, tiles)
        Domain of each tier outside that each tile lies in.
    is_over : callable
        Whether there is no time left; then there is no answer.
    """
    grower = _Grower(flows, sum(sizes), len(enclosures), sweep)
    for number, size in enumerate(sizes):
        if is_over():
            return None
        if number:
            grower.enter(enclosures[:, number] != enclosures[:, number - 1])
        grower.grow(number, size)
    return grower.tile


class _Grower:
    """Vertices that tiles are cut from.

    ``tile`` ((V,)): -1 for vertices that are left.
    """

    def __init__(self, flows: Flows, count: int, tiers: int, sweep: Sweep) -> None:
        self.tile = np.full(count, -1)
        self._sweep = sweep
        self._neighbours: list[dict[int, int]] = [{} for _ in range(count)]
        # Sums of whole bytes are the same in any order.
        weights = np.rint(flows.weight).astype(np.int64).tolist()
        for (one, other), weight in zip(flows.edges.tolist(), weights, strict=True):
            self._neighbours[one][other] = self._neighbours[other][one] = weight
        self._total = np.array([sum(row.values()) for row in self._neighbours])
        # Weight to vertices that are left, and to the outer domains in the making.
        self._left = self._total.copy()
        self._near = np.zeros((tiers, count), dtype=np.int64)
        # When a tile came next to each vertex: at first, and last.
        self._first, self._latest = np.full(count, np.inf), np.full(count, -1.0)

    def enter(self, others: BoolArray) -> None:
        """Begin other outer domains, on some tiers."""
        self._near[others] = 0

    def grow(self, number: int, size: int) -> None:
        """Cut the next tile out of what is left."""
        members: set[int] = set()
        while len(members) < size:
            seed = self._seed(members)
            members |= self._best(seed, size - len(members), members)
        self._cut(number, sorted(members))

    def _seed(self, taken: set[int]) -> int:
        """The vertex to begin with, next to those that are taken already."""
        least = self._left
        if not self._sweep.busiest:
            least = least - self._near.sum(axis=0)
        is_free = self.tile < 0
        is_free[list(taken)] = False
        free = np.flatnonzero(is_free)
        if self._sweep.busiest:
            free = free[self._total[free] == self._total[free].max()]
        among = free[least[free] == least[free].min()]
        if self._sweep.busiest:
            return int(among[self._latest[among].argmax()])
        return int(among[self._first[among].argmin()])

    def _best(self, seed: int, size: int, taken: set[int]) -> set[int]:
        """The best tile of at most so many vertices around one; less where it ends."""
        beam = [
            _Tile(
                frozenset((seed,)),
                0,
                int(self._left[seed]),
                self._neighbours[seed],
                int(self._total[seed]) ** POWER,
            )
        ]
        rank = attrgetter("busy_rank" if self._sweep.busiest else "rank")
        for _ in range(size - 1):
            larger: dict[frozenset[int], _Tile] = {}
            for tile in beam:
                for vertex in self._next(tile, taken):
                    members = tile.members | {vertex}
                    if members not in larger:
                        larger[members] = self._with(tile, members, vertex)
            if not larger:
                break
            beam = nsmallest(self._sweep.beam, larger.values(), key=rank)
        most = rank(beam[0])[0]
        alike = [tile for tile in beam if rank(tile)[0] == most]
        return set(min(alike, key=lambda tile: tile.busy_rank).members)

    def _next(self, tile: _Tile, taken: set[int]) -> list[int]:
        """Vertices that the tile may grow by, those with most weight to it."""
        left = self._left
        free = [
            (-weight, left[vertex], vertex)
            for vertex, weight in tile.neighbours.items()
            if self.tile[vertex] < 0
            and vertex not in tile.members
            and vertex not in taken
        ]
        return [vertex for _, _, vertex in nsmallest(self._sweep.beam, free)]

    def _with(self, tile: _Tile, members: frozenset[int], vertex: int) -> _Tile:
        """The tile with a vertex more."""
        neighbours = dict(tile.neighbours)
        near = tile.neighbours[vertex]
        unevenness = tile.unevenness + (int(self._total[vertex]) - near) ** POWER
        for other, weight in self._neighbours[vertex].items():
            if other in tile.members:
                leaves = int(self._total[other]) - tile.neighbours.get(other, 0)
                unevenness += (leaves - weight) ** POWER - leaves**POWER
            neighbours[other] = neighbours.get(other, 0) + weight
        return _Tile(
            members,
            tile.inside + near,
            tile.rest + int(self._left[vertex]),
            neighbours,
            unevenness,
        )

    def _cut(self, number: int, members: list[int]) -> None:
        self.tile[members] = number
        for vertex in members:
            for other, weight in self._neighbours[vertex].items():
                self._left[other] -= weight
                self._near[:, other] += weight
                self._latest[other] = number
                self._first[other] = min(self._first[other], number)
