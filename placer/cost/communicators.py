"""Collectives of some groups on a machine: the algorithm NCCL would take, and its cost.

All groups of a call run at once, each by the algorithm that the job names or the one
with which it is fastest, all others running the same: NCCL's tuner takes the shortest
of its estimates for each communicator. Shapes: g groups of n members.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce

import numpy as np

from placer.base.arrays import FloatArray
from placer.cost.collectives import (
    Route,
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
        seconds = ring_pass(self._route, self._per_row(size_bytes)).total
        return Cost(seconds, Traffic(lambda: self._sent("ring", size_bytes, 1.0)))

    def all_reduce(self, size_bytes: Sizes, algorithm: str) -> Cost:
        """One all-reduce by an algorithm of `ALL_REDUCES`, or ``auto``.

        Every group takes the one that is fastest for it, the first of equals.
        """
        sizes, forms = self._per_row(size_bytes), all_reduces(algorithm)
        found = []
        for name, form in forms.items():
            route = self._route if name == "ring" else self._tree_route
            seconds = form(route, sizes).total
            runs = algorithm != "auto" or runs_all_reduce(name, route)
            found.append(np.where(runs, seconds, np.inf))
        names, best = np.array([*forms]), np.argmin(found, axis=0)
        sent = []
        for index in np.unique(best).tolist():
            rows = best == index
            some = self if rows.all() else replace(self, rings=self.rings.rows(rows))
            sent.append(Traffic(partial(some._sent, names[index], size_bytes)))
        return Cost(np.min(found, axis=0), reduce(Traffic.plus, sent), names[best])

    @cached_property
    def _route(self) -> Route:
        return self.rings.route(self.fabric)

    @cached_property
    def _tree_route(self) -> Route:
        return tree_route(self.rings, self.fabric, self._route)

    def _per_row(self, size_bytes: Sizes) -> Sizes:
        return self.fabric.per_row(size_bytes, self.rings.gpus)

    def _sent(
        self, name: str, size_bytes: Sizes, passes: float = 2.0
    ) -> tuple[FloatArray, LinkLoad]:
        """Bytes by tier and load of a collective, all groups by one algorithm.

        By a ring in so many passes around it; by another an all-reduce, whose bytes
        between domains go as in a double tree.
        """
        if name == "ring":
            edges, n = self.rings.hops, self.rings.gpus.shape[1]
            by_tier = edges.bytes_by_tier
            size_bytes = passes * (n - 1) / n * size_bytes
        else:
            edges = self.rings.tree
            by_tier = edges.bytes_by_tier + self._inside(name)
        return by_tier * size_bytes, self.fabric.scaled(edges.load, size_bytes)

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
