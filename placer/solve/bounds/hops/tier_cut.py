"""The least cut of one tier: floors of rank sets, sizes, prices, parts that add up.

The *cut* is the weight of all edges between ranks in different domains of the tier. Its
bound is raised in steps, each dearer than the one before: what leaves any set of ranks,
with a price on the ends of pipelines; better prices on all stages; parts of rings and
cliques that add up to whole ones.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil, prod
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.solve.bounds.hops.isoperimetric import Product, copies_floor, replica_floor
from placer.solve.bounds.hops.lagrange import cheapest_sizes, climb, size_classes
from placer.solve.bounds.hops.lines import Lines, contents_of
from placer.solve.count.engine import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placer.solve.bounds.hops.graphs import Graph
    from placer.solve.problem.axes import Axis
    from placer.solve.problem.params import Params

END_CHARGES = (0.0, 0.25, 0.5, 0.75, 1.0)
PRICE_GRIDS = (40, 5)
# Array elements of one evaluation with prices on the ends of pipelines, and with prices
# on all stages; larger jobs go without. Directions in which those are improved.
CHARGE_WORK = 1_000_000_000
ASCENT_WORK = 15_000_000
ASCENT_ROUNDS = 60
ROUNDING = 1e-9
# Whole numbers of parts are left to cuts at the root of the tree.
AT_ROOT = Limits(1, engine="highs")


class TierCut:
    """Bounds on the weight of edges between different domains of one tier.

    Parameters
    ----------
    graph : Graph
        Of ranks, or of sets of them.
    room_of_domain : ndarray, shape (D,)
        Vertices that every domain of the tier has room for.

    Attributes
    ----------
    steps : int
        How often the bound was raised, out of ``STEPS``.
    """

    STEPS = 3

    def __init__(
        self,
        graph: Graph,
        room_of_domain: IntArray,
        params: Params,
    ) -> None:
        self.params = params
        self.steps = 0
        self.world = graph.vertices
        self.stages = graph.stages
        self.rooms = room_of_domain
        self.classes = size_classes(room_of_domain, self.world)
        self.size = self.classes[-1].high
        self.quantum = graph.quantum
        self.products = graph.products
        self.chain_weight = sum(p.chain.weight for p in self.products)
        self.value = 0.0
        self.prices = np.zeros(self.stages)

    def raise_once(self) -> None:
        """Raise the bound by the next step, each dearer than the one before."""
        (self.charge_ends, self.ascend, self.add_up)[self.steps]()
        self.steps += 1

    def charge_ends(self) -> None:
        """Raise ``value`` by the bounds with a price on the ends of the chain."""
        priced = self.has_chain and self._work(len(END_CHARGES)) <= CHARGE_WORK
        charges = np.array(END_CHARGES if priced else END_CHARGES[:1])
        prices = np.zeros((len(charges), self.stages))
        prices[:, 0] = prices[:, -1] = charges * self.chain_weight
        self._keep_best(prices)

    def ascend(self) -> None:
        """Raise ``value`` by improving the prices of all stages."""
        half = (self.stages + 1) // 2
        if not self.has_chain or half < 2 or self._work(half) > ASCENT_WORK:
            return
        # Adding a constant to all prices changes nothing, so the middle stays at 0.
        start = (self.prices - self.prices[half - 1])[: half - 1]
        best = climb(
            lambda rows: self._values(self._mirrored(rows)),
            start,
            self.chain_weight / 2,
            ASCENT_ROUNDS,
        )
        candidates = [best]
        for grid in PRICE_GRIDS:
            unit = self.chain_weight / grid
            candidates.append(np.round(best / unit) * unit)
        self._keep_best(self._mirrored(np.array(candidates)))

    def add_up(self) -> None:
        """Raise ``value`` by making the parts of rings and cliques add up."""
        for lines in self.lines():
            contents, more = contents_of([lines])
            if contents.columns <= self.params.part_columns:
                least = contents.least(AT_ROOT, self.value - more) + more
                self.value = max(self.value, rounded_up(least, self.quantum))

    def lines(self, rise: float = 1.0) -> Iterator[Lines]:
        """Rings and cliques, with the least cost of sets across them and besides.

        At the prices on stages that promise the most; without bundles, then with them.
        """
        ends = np.zeros(self.stages)
        ends[[0, -1]] = self.chain_weight if self.has_chain else 0.0
        for product in self.products:
            for axis in _line_axes(product):
                found = [
                    self._lines(product, axis, prices, rise)
                    for prices in (self.prices, ends, np.zeros(self.stages))
                ]
                for bundle in sorted({1, found[0].bundle}):
                    yield max(
                        (lines._replace(bundle=bundle) for lines in found),
                        key=lambda lines: lines.support().promised,
                    )

    def _lines(
        self, product: Product, axis: Axis, prices: FloatArray, rise: float
    ) -> Lines:
        """Lines of an axis, at some prices on stages.

        All edges of pipelines are counted across them, where that can be.
        """
        besides = np.zeros(self.size + 1)
        if product.chain.weight:
            others = [other.with_chain_share(0.0) for other in self.products]
            chain = replace(product.chain, weight=self.chain_weight)
            across, own = replace(product, chain=chain), prices[None]
            paid = 0.0 * own
        else:
            others, across = [*self.products], product
            own, paid = 0.0 * prices[None], prices[None]
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

    def _mirrored(self, rows: FloatArray) -> FloatArray:
        """Prices of all stages from those of the first half but its last."""
        first = np.hstack([rows, np.zeros((len(rows), 1))])
        return np.hstack([first, first[:, ::-1][:, self.stages % 2 :]])

    def _keep_best(self, prices: FloatArray) -> None:
        values = self._values(prices)
        best = int(np.argmax(values))
        value = rounded_up(float(values[best]), self.quantum)
        if value > self.value:
            self.value, self.prices = value, prices[best]

    def _values(self, prices: FloatArray) -> FloatArray:
        """Bound on the cut for each row of prices; shape (B,)."""
        floor = np.zeros((len(prices), self.size + 1))
        for product in self.products:
            floor += self._floor(product, self._share(product) * prices)
        constant = prices.sum(axis=1) * (self.world // self.stages)
        totals = [cheapest_sizes(row, self.classes, self.world) for row in floor]
        values: FloatArray = (np.array(totals) - constant) / 2
        return values

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
