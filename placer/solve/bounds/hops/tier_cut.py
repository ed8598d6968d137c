"""The least cut of one tier: floors of rank sets, sizes, prices, parts that add up.

The *cut* is the weight of all edges between ranks in different domains of the tier. Its
bound has two steps, the second dearer: what leaves any set of ranks, with a price on
the ends of pipelines; parts of rings and cliques that add up to whole ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil, prod

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.solve.bounds.hops.graphs import Graph
from placer.solve.bounds.hops.isoperimetric import (
    Product,
    copies_floor,
    hull_corners,
    replica_floor,
)
from placer.solve.bounds.hops.lines import Lines, contents_of
from placer.solve.count import EngineLimits
from placer.solve.problem.axes import Axis
from placer.solve.problem.params import Params

# Prices on either end of a pipeline, as shares of the weight of its edges.
END_CHARGES = (0.0, 0.25, 0.5, 0.75, 1.0, -0.25, -0.5, -0.75, -1.0)
# Array elements that their evaluation may touch; larger jobs go without.
CHARGE_WORK = 1_000_000_000
ROUNDING = 1e-9
# Whole numbers of parts are left to cuts at the root of the tree.
AT_ROOT = EngineLimits(1, engine="highs")


class TierCut:
    """Bounds on the weight of edges between different domains of one tier.

    ``graph``: of ranks, or of sets of them. ``room_of_domain`` ((D,)): vertices that
    every domain of the tier has room for.
    """

    def __init__(
        self,
        graph: Graph,
        room_of_domain: IntArray,
        params: Params,
    ) -> None:
        self.params = params
        self.world = graph.vertices
        self.stages = graph.stages
        self.rooms = room_of_domain
        self.size = min(int(room_of_domain.max()), self.world)
        self.quantum = graph.quantum
        self.products = graph.products
        self.chain_weight = sum(p.chain.weight for p in self.products)
        # At prices of a rank and of the ends of pipelines alone; by all that is known.
        self.priced, self.prices = self._charged()
        self.value = self.priced

    def _charged(self) -> tuple[float, tuple[float, float]]:
        """The best bound with a price on the ends of the chain, and its prices."""
        priced = self.has_chain and self._work(len(END_CHARGES)) <= CHARGE_WORK
        charges = np.array(END_CHARGES if priced else END_CHARGES[:1])
        prices = np.zeros((len(charges), self.stages))
        prices[:, 0] = prices[:, -1] = charges * self.chain_weight
        floor = np.zeros((len(prices), self.size + 1))
        for product in self.products:
            floor += self._floor(product, self._share(product) * prices)
        least = [cheapest_sizes(row, self.rooms, self.world) for row in floor]
        values = np.array([value for value, _ in least])
        values -= prices.sum(axis=1) * (self.world // self.stages)
        best = int(values.argmax())
        cut = rounded_up(float(values[best]) / 2, self.quantum)
        return cut, (least[best][1], float(prices[best, 0]))

    def add_up(self) -> None:
        """Raise ``value`` by making the parts of rings and cliques add up."""
        for lines in self.lines():
            contents, more = contents_of([lines])
            if contents.columns <= self.params.part_columns:
                least = contents.least(AT_ROOT, self.value - more) + more
                self.value = max(self.value, rounded_up(least, self.quantum))

    def lines(self, rise: float = 1.0) -> Iterator[Lines]:
        """Rings and cliques, with the least cost of sets across them and besides.

        With the whole weight of an edge as the price on either end of the pipelines;
        without bundles, then with them.
        """
        for product in self.products:
            for axis in _line_axes(product):
                lines = self._lines(product, axis, rise)
                for bundle in sorted({1, lines.bundle}):
                    yield lines._replace(bundle=bundle)

    def _lines(self, product: Product, axis: Axis, rise: float) -> Lines:
        """Lines of an axis; edges of pipelines count across them, where that can be."""
        prices = np.zeros((1, self.stages))
        prices[:, [0, -1]] = self.chain_weight if self.has_chain else 0.0
        besides = np.zeros(self.size + 1)
        if product.chain.weight:
            others = [other.with_chain_share(0.0) for other in self.products]
            chain = replace(product.chain, weight=self.chain_weight)
            across, own, paid = replace(product, chain=chain), prices, 0.0 * prices
        else:
            others, across = [*self.products], product
            own, paid = 0.0 * prices, prices
        for other, one in zip(others, self.products, strict=True):
            if one is not product:
                besides += self._floor(other, self._share(one) * paid)[0]
        if axis is product.copies:
            stage = product.stage
            cost = replica_floor(across, own, self.size)
        else:
            stage = tuple(one for one in product.stage if one is not axis)
            cost = self._floor(replace(across, stage=stage), own)
        priced = float(prices.sum()) * (self.world // self.stages) / 2
        return Lines(
            axis,
            self.world // axis.size,
            cost[0] / 2,
            besides / 2,
            self.rooms,
            priced,
            rise,
            prod(one.size for one in stage if one.weight),
        )

    @property
    def has_chain(self) -> bool:
        """Whether the job has a pipeline whose edges have a weight."""
        return self.stages > 1 and self.chain_weight > 0

    def _share(self, product: Product) -> float:
        """The product's share of the chain, and so of the prices on stages."""
        return product.chain.weight / self.chain_weight if self.has_chain else 0.0

    def _floor(self, product: Product, prices: FloatArray) -> FloatArray:
        """Least boundary of any set plus its prices, by size; shape (B, S + 1)."""
        replica = replica_floor(product, prices, self.size)
        return copies_floor(replica, product.copies, self.size)

    def _work(self, batch: int) -> int:
        """Array elements one evaluation of ``batch`` price vectors touches, about."""
        work = 0
        for product in self.products:
            stage = min(self.size, product.stage[0].size * product.stage[1].size)
            replica = min(self.size, stage * self.stages)
            work += 8 * stage * replica * self.stages + 6 * replica * self.size
        return batch * work


def cheapest_sizes(
    floor: FloatArray, rooms: IntArray, world: int
) -> tuple[float, float]:
    """Lower bound on the sum of ``floor`` over domains that hold all vertices; a price.

    Of each domain the lower convex hull, and of all hulls the flattest steps: the bound
    at the best price a vertex (Lagrange; Everett 1963). By hand: domains of 4 pay 0,
    10, 10, 10 and 0 for 0 to 4 vertices. The hull pays nothing, also where 7 are in
    three of them.

    ``floor`` ((S + 1,)): of a domain by its number of vertices, up to the largest room
    or ``world``.
    """
    slack, total, left = int(rooms.sum()) - world, 0.0, world
    slopes, times = [], []
    for room, count in zip(*np.unique(rooms, return_counts=True), strict=True):
        low, high = max(0, int(room) - slack), min(int(room), world)
        corners = low + hull_corners(floor[low : high + 1])
        total += float(floor[low]) * int(count)
        left -= low * int(count)
        slopes.append(np.diff(floor[corners]) / np.diff(corners))
        times.append(np.diff(corners) * count)
    slope, most = np.concatenate(slopes), np.concatenate(times)
    order = slope.argsort()
    taken = most[order].cumsum()
    last = order[np.searchsorted(taken, left) :][:1]
    taken = np.diff(np.minimum(taken, left), prepend=0)
    return total + float(slope[order] @ taken), float(slope[last].sum())


def rounded_up(value: float, quantum: Fraction) -> float:
    """The least multiple of the quantum not below ``value``, errors allowed for."""
    quanta = Fraction(value * (1.0 - ROUNDING)) / quantum
    return float(max(0, ceil(quanta - Fraction(1, 10**6))) * quantum)


def _line_axes(product: Product) -> list[Axis]:
    """Axes of rings and cliques that have edges, not all lighter than those across.

    Where all axes across are dearer, domains rather cut a line into single members,
    which the plain floors see as well.
    """
    axes = (*product.stage, product.chain, product.copies)
    found = []
    for axis in (product.copies, *product.stage):
        across = [a.weight for a in axes if a is not axis and a.size > 1 and a.weight]
        if axis.size > 1 and axis.weight > min(across, default=0.0):
            found.append(axis)
    return found
