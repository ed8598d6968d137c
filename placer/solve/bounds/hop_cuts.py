"""A lower bound on the hop cost of any placement, from the least cut of every tier.

``J >= d_0 W + sum_t (d_{t+1} - d_t) C_t`` with ``C_t = 1/2 min sum_i floor(s_i)`` over
the sizes s_i that the domains of tier t may hold;

* `hop_floors`: the job's graph as sums of products, of ranks or of sets kept whole, and
  the least boundary ``floor(s)`` of any s of them;
* `TierCut`: the least sum of it over domains that together hold all ranks. Prices on
  the ends of pipelines, up to the weight of an edge, either way; what all domains pay
  in prices is a constant, and is taken back;
* `hop_lines`: what domains hold of rings and cliques must add up to whole ones, on one
  tier and on two together.

By hand: a ring of six on two nodes of three, 1 apart inside and 3 outside. Two edges or
more leave any three ranks, so ``C = (2 + 2) / 2`` and ``J >= 1 x 6 + (3 - 1) x 2``.

Distances that fall outwards are first lowered to the least from there on. Cuts are
multiples of the greatest common divisor of the weights, so bounds are rounded up to
one, after allowing for rounding errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.base.errors import InfeasibleError
from placer.base.rounding import EXACT
from placer.job.edges import hop_edges
from placer.job.model import Job
from placer.solve.bounds import WORK, Proof
from placer.solve.bounds.hop_floors import (
    Graph,
    Product,
    common_divisor,
    contracted,
    copies_floor,
    graph_of,
    hull_corners,
    kept_whole,
    replica_floor,
)
from placer.solve.bounds.hop_lines import Lines, contents_of
from placer.solve.problem.axes import Axis
from placer.solve.problem.compiled import Problem
from placer.solve.problem.params import Params
from placer.solve.run.budget import ENDLESS, Budget
from placer.topology.machine import Machine

# Prices on either end of a pipeline, as shares of the weight of its edges.
END_CHARGES = (0.0, 0.25, 0.5, 0.75, 1.0, -0.25, -0.5, -0.75, -1.0)


class TierCut:
    """Bounds on the weight of edges between different domains of one tier.

    ``graph``: of ranks, or of sets of them. ``room_of_domain`` ((D,)): vertices that
    every domain of the tier has room for.
    """

    def __init__(self, graph: Graph, room_of_domain: IntArray) -> None:
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
        priced = self.has_chain and self._work() <= WORK
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

    def lines(self, rise: float = 1.0) -> Iterator[Lines]:
        """Rings and cliques, with the least cost of sets across them and besides.

        With the whole weight of an edge as the price on either end of the pipelines.
        """
        for product in self.products:
            for axis in _line_axes(product):
                yield self._lines(product, axis, rise)

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

    def _work(self) -> int:
        """Array elements that the floors at one price of the ends touch."""
        work = 0
        for product in self.products:
            stage = min(self.size, product.stage[0].size * product.stage[1].size)
            replica = min(self.size, stage * self.stages)
            work += stage * replica * self.stages + replica * self.size
        return work


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
    quanta = Fraction(value * (1.0 - EXACT)) / quantum
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


ARGUMENT = (
    "least cut of every tier: edge-isoperimetric floors of rank sets, sizes by a "
    "knapsack over the domains' capacities, prices on pipeline stages, parts that add "
    "up to whole rings"
)


def least_hop_cost(
    problem: Problem, _block: int, incumbent: float, _budget: Budget = ENDLESS
) -> Proof | None:
    """The bound on the hop cost, however ranks are launched; None for step time."""
    if problem.goal.name == "time":
        return None
    cuts = problem.once(HopCuts.of_problem)
    return Proof(cuts.together(incumbent), ARGUMENT)


@dataclass(frozen=True, eq=False)
class HopCuts:
    """The cuts of all tiers of a job on a machine."""

    topology: Machine
    params: Params
    inside: float  # what all edges cost at the nearest distance
    # (T - 1,): of the distance at each tier, where it may not fall outwards.
    rises: FloatArray
    # Of the graph of ranks, and of that of sets where there is one.
    of_tier: Mapping[int, list[TierCut]]
    of_axes: bool  # whether rules keep together groups of axes alone

    @classmethod
    def of_problem(cls, problem: Problem) -> HopCuts:
        """The cuts of a problem, which its bounds share (`Problem.once`)."""
        return cls.of(problem.machine, problem.job, problem.params)

    @classmethod
    def of(cls, topology: Machine, job: Job, params: Params) -> HopCuts:
        """The cuts for every launch.

        Raises `InfeasibleError` if the job has more ranks than the machine has GPUs.
        """
        if job.world_size > topology.num_gpus:
            sizes = f"{job.world_size} ranks, the machine {topology.num_gpus} GPUs"
            raise InfeasibleError(f"the job has {sizes}")
        distance = np.array([tier.distance for tier in topology.tiers])
        rises = np.diff(np.minimum.accumulate(distance[::-1])[::-1])
        edges, whole, cuts = hop_edges(job), graph_of(job), {}
        inside = distance.min() * sum(axis.weight * len(axis.edges) for axis in edges)
        for tier in np.flatnonzero(rises if edges else []).tolist():
            gpus = np.bincount(topology.domain_of_gpu[tier])
            if gpus.max() >= job.world_size:
                continue  # no edge need cross where one domain holds all ranks
            cuts[tier] = [TierCut(whole, gpus)]
            for label, sets in kept_whole(topology, job, tier):
                graph = contracted(job, label)
                if graph and sets.sum() >= graph.vertices:
                    cuts[tier].append(TierCut(graph, sets))
        of_axes = job.require.keys() <= job.parallelism.ranks_of_group.keys()
        return cls(topology, params, float(inside), rises, cuts, of_axes)

    def least(self, tier: int) -> float:
        """Least weight of edges between domains of a tier, as far as is known."""
        return max((cut.value for cut in self.of_tier.get(tier, ())), default=0.0)

    def value(self, without: Iterable[int] = ()) -> float:
        """The bound by what is known of each tier, some of them left out."""
        tiers = self.of_tier.keys() - set(without)
        return self.inside + sum(float(self.rises[t]) * self.least(t) for t in tiers)

    def together(self, incumbent: float) -> float:
        """The bound once parts of lines add up, or the incumbent is reached.

        On every tier, and on the two innermost at once.
        """
        # Sets that are kept whole say more than ranks.
        last = {tier: cuts[-1] for tier, cuts in self.of_tier.items()}
        for cut in last.values():
            for one in cut.lines() if self.value() < incumbent else ():
                least = self._added_up([one], cut.quantum, cut.value)
                cut.value = max(cut.value, least)
        best, tiers = self.value(), sorted(last)[:2]
        worlds = [last[tier].world for tier in tiers]
        if best >= incumbent or len(tiers) < 2 or worlds[0] != worlds[1]:
            return best
        rises = [float(self.rises[tier]) for tier in tiers]
        quantum = last[tiers[0]].quantum * common_divisor(rises)
        outer, rest = self.outer(*tiers), self.value(without=tiers)
        lines = (last[t].lines(rise) for t, rise in zip(tiers, rises, strict=True))
        for both in zip(*lines, strict=True):
            least = self._added_up(both, quantum, best - rest, outer)
            best = max(best, least + rest)
        return best

    def _added_up(
        self,
        lines: Sequence[Lines],
        quantum: Fraction,
        known: float,
        outer: IntArray | None = None,
    ) -> float:
        """What parts of lines cost at the least; 0 where the program is too large.

        Worked out further where that may be more than is known.
        """
        contents, more = contents_of(lines, outer)
        if contents.columns > self.params.part_columns:
            return 0.0
        return rounded_up(contents.least(known - more) + more, quantum)

    def outer(self, tier: int, other: int) -> IntArray:
        """Domain of an outer tier that holds each of an inner one."""
        domain = self.topology.domain_of_gpu
        outer = np.zeros(int(domain[tier].max()) + 1, dtype=np.int64)
        outer[domain[tier]] = domain[other]
        return outer
