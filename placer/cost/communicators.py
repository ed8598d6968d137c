"""Collectives of some groups on a machine: the algorithm NCCL would take, and its cost.

All groups of a call run at once, each by the algorithm that the job names or the one
with which it is fastest, all others running the same: NCCL's tuner takes the shortest
of its estimates for each communicator. Shapes: g groups of n members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from placer.base.arrays import BoolArray, FloatArray
from placer.cost.collectives import (
    Route,
    Seconds,
    Sizes,
    all_reduces,
    ring_pass,
    runs_all_reduce,
)
from placer.cost.fabric import Fabric
from placer.cost.links import Cost, LinkLoad, Traffic
from placer.cost.rings import Rings
from placer.cost.trees import tree_route


@dataclass(frozen=True, eq=False)
class Communicators:
    """Groups of one size on their GPUs.

    The size of a buffer is one for all groups, or one for each copy of the machine that
    groups are on.
    """

    rings: Rings
    fabric: Fabric

    def gather(self, size_bytes: Sizes) -> Cost:
        """One reduce-scatter or all-gather, around a ring."""
        ring = ring_pass(self._route, self._per_row(size_bytes))
        return self._ring_cost(ring, size_bytes, passes=1.0)

    def all_reduce(self, size_bytes: Sizes, algorithm: str) -> Cost:
        """One all-reduce by an algorithm of `ALL_REDUCES`, or ``auto``."""
        sizes, found = self._per_row(size_bytes), {}
        for name, form in all_reduces(algorithm).items():
            route = self._route if name == "ring" else self._tree_route
            seconds = form(route, sizes)
            if algorithm == "auto":
                runs = runs_all_reduce(name, route)
                latency = np.where(runs, seconds.latency, np.inf)
                seconds = seconds._replace(latency=latency)
            found[name] = seconds
        return self._fastest(found, size_bytes)

    def _fastest(self, found: Mapping[str, Seconds], size_bytes: Sizes) -> Cost:
        """Every group by the algorithm that is fastest for it, the first of equals."""
        names = list(found)
        best = np.argmin([seconds.total for seconds in found.values()], axis=0)
        first = int(best[0])
        if (best == first).all():
            return self._by(names[first], found[names[first]], size_bytes)
        parts = []
        for index in np.unique(best).tolist():
            rows, seconds = best == index, found[names[index]]
            some = Communicators(self.rings.rows(rows), self.fabric)
            own = Seconds(seconds.transfer[rows], seconds.latency[rows])
            parts.append((rows, some._by(names[index], own, size_bytes)))
        return _joined(parts)

    def _by(self, name: str, seconds: Seconds, size_bytes: Sizes) -> Cost:
        """The cost of one algorithm for all groups, given its seconds."""
        if name == "ring":
            return self._ring_cost(seconds, size_bytes, passes=2.0)
        return self._tree_cost(name, seconds, size_bytes)

    @cached_property
    def _route(self) -> Route:
        return self.rings.route(self.fabric)

    @cached_property
    def _tree_route(self) -> Route:
        return tree_route(self.rings.tree, self.fabric, self._route)

    def _per_row(self, size_bytes: Sizes) -> Sizes:
        return self.fabric.per_row(size_bytes, self.rings.gpus)

    def _ring_cost(self, seconds: Seconds, size_bytes: Sizes, passes: float) -> Cost:
        rings, n = self.rings, self.rings.gpus.shape[1]

        def sent() -> tuple[FloatArray, LinkLoad]:
            on_edge = passes * (n - 1) / n * size_bytes
            one = np.ones(rings.gpus.shape)
            hops = self.fabric.by_tier(rings.hop_tier, one, rings.gpus)
            return hops * on_edge, self.fabric.scaled(rings.flows.load, on_edge)

        return self._cost("ring", seconds, Traffic(sent))

    def _tree_cost(self, name: str, seconds: Seconds, size_bytes: Sizes) -> Cost:
        """The cost of an algorithm whose traffic between domains is a double tree's."""
        tree = self.rings.tree

        def sent() -> tuple[FloatArray, LinkLoad]:
            by_tier = tree.bytes_by_tier + self._inside(name)
            return by_tier * size_bytes, self.fabric.scaled(tree.load, size_bytes)

        return self._cost(name, seconds, Traffic(sent))

    def _cost(self, name: str, seconds: Seconds, traffic: Traffic) -> Cost:
        """The cost where all groups run one algorithm."""
        names = np.full(len(self.rings.gpus), name)
        return Cost(seconds.total, traffic, names)

    def _inside(self, name: str) -> FloatArray:
        """Bytes sent inside domains for each byte of buffer; shape (T,).

        A chain, or a reduce-scatter and an all-gather, send ``2 (m-1)`` buffers among
        ``m`` members; with a switch that reduces every member sends ``1 + 1/q``. They
        are booked evenly on the group's hops inside domains.
        """
        rings, fabric = self.rings, self.fabric
        n = rings.gpus.shape[1]
        inner = (rings.hop_tier <= fabric.scale_up_tier) & rings.moves
        buffers = 2.0 * (n - rings.domains)
        if name == "nvls":
            buffers = n * (1 + 1 / rings.nics)
        on_hop = buffers / np.maximum(inner.sum(axis=1), 1)
        spread = np.broadcast_to(on_hop[:, None], inner.shape)
        return fabric.by_tier(rings.hop_tier[inner], spread[inner], rings.gpus[inner])


def _joined(parts: Sequence[tuple[BoolArray, Cost]]) -> Cost:
    """The cost of some groups by one algorithm and others by another."""
    num_groups = len(parts[0][0])
    seconds = np.zeros(num_groups)
    names = np.empty(num_groups, dtype="U12")
    for rows, cost in parts:
        names[rows] = cost.algorithms
        seconds[rows] = cost.seconds
    traffic = reduce(Traffic.plus, [cost.traffic for _, cost in parts])
    return Cost(seconds, traffic, names)
