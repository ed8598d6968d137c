"""Copies of a machine side by side: groups on different copies share no link.

Kinds of groups run in turn, each with the network to itself. On a copy for each kind
all of them are priced in one call, and each costs what it costs alone, to the last bit:
sums over one copy have the same terms in the same order. Shapes: K copies, T tiers, G
GPUs that groups use, each once a copy.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.fabric import Fabric
from placer.cost.links import LinkLoad, weighted_counts


@dataclass(frozen=True, eq=False)
class Copies(Fabric):
    """The GPUs of a machine that groups use on copies of it, as a fabric.

    The machine has no links of its own between domains.
    """

    whole: Fabric = field(kw_only=True)  # the machine
    number: int = field(kw_only=True)  # K
    # gpu and copy_of_gpu, (G,): GPU of the machine, and its copy; copies ascend.
    gpu: IntArray = field(kw_only=True)
    copy_of_gpu: IntArray = field(kw_only=True)

    @classmethod
    def holding(
        cls, fabric: Fabric, gpus: IntArray, copy: IntArray, number: int
    ) -> tuple[Copies, IntArray]:
        """Copies of ``fabric`` for GPUs on them, and which those are there.

        ``gpus``: shape (any,). ``copy`` ((any,)): which copy each is on.
        """
        count = fabric.domain_of_gpu.shape[1]
        keys, place = np.unique(copy * count + gpus, return_inverse=True)
        same = {one.name: getattr(fabric, one.name) for one in fields(Fabric)}
        own = {"gpu": keys % count, "copy_of_gpu": keys // count}
        return cls(**same, whole=fabric, number=number, **own), place

    @cached_property
    def has_rack_switch(self) -> bool:
        """That of the machine."""
        return self.whole.has_rack_switch

    @cached_property
    def rail_of_gpu(self) -> IntArray:
        """Rail of each GPU; shape (G,)."""
        return self.whole.rail_of_gpu[self.gpu]

    @cached_property
    def factor_of_gpu(self) -> FloatArray:
        """Share of the nominal bandwidth each GPU reaches; shape (G,)."""
        return self.whole.factor_of_gpu[self.gpu]

    @cached_property
    def _domains(self) -> list[tuple[IntArray, IntArray]]:
        """Copy and domain as one number, of every domain, and that of each GPU."""
        found = []
        for row, span in zip(self.whole.domain_of_gpu, self._spans, strict=True):
            keys = self.copy_of_gpu * span + row[self.gpu]
            found.append(np.unique(keys, return_inverse=True))
        return found

    @cached_property
    def _spans(self) -> list[int]:
        return [int(row.max()) + 1 for row in self.whole.domain_of_gpu]

    @cached_property
    def domain_of_gpu(self) -> IntArray:
        """Domain of each GPU at each tier, those of all copies numbered; (T, G)."""
        return np.stack([domain for _, domain in self._domains])

    @cached_property
    def children(self) -> list[tuple[IntArray, IntArray]]:
        """Copy, and child domain of the machine, of every child domain, by tier."""
        inner = zip(self._domains[:-1], self._spans[:-1], strict=True)
        domains = [(keys // span, keys % span) for (keys, _), span in inner]
        return [(self.copy_of_gpu, self.gpu), *domains]

    @cached_property
    def uplink_capacity(self) -> list[FloatArray]:
        """Bytes a second of each child's uplink into a tier, one array a tier."""
        return [
            capacity[child]
            for capacity, (_, child) in zip(
                self.whole.uplink_capacity, self.children, strict=True
            )
        ]

    @cached_property
    def shared_uplinks(self) -> dict[int, FloatArray]:
        """Capacity of each child's uplink into the tiers where flows share some."""
        shared = self.whole.shared_uplinks
        return {t: capacity[self.children[t][1]] for t, capacity in shared.items()}

    def copy_of_rows(self, gpus: IntArray) -> IntArray:
        """Copy that each row of GPUs is on; shape (g,)."""
        return self.copy_of_gpu[gpus.reshape(len(gpus), -1)[:, 0]]

    def per_row(self, sizes: float | FloatArray, gpus: IntArray) -> FloatArray:
        """The size of its copy, for each row of GPUs; shape (g,)."""
        return np.asarray(sizes)[self.copy_of_rows(gpus)]

    def by_tier(
        self, tiers: IntArray, weights: FloatArray, gpus: IntArray
    ) -> FloatArray:
        """Sum of the weights of each tier on each copy; shape (T, K)."""
        key = tiers * self.number + self.copy_of_gpu[gpus]
        shape = self.num_tiers, self.number
        return weighted_counts(key, weights, shape[0] * shape[1]).reshape(shape)

    def total(self, values: FloatArray, gpus: IntArray) -> FloatArray:
        """Sum of the values of all GPUs of a copy, (..., g, n); shape (..., K)."""
        copy = self.copy_of_rows(gpus)
        found = np.zeros((*values.shape[:-2], self.number))
        starts = np.flatnonzero(np.diff(copy, prepend=-1)).tolist()
        for first, end in zip(starts, [*starts[1:], len(copy)], strict=True):
            part = values[..., first:end, :]
            found[..., copy[first]] = part.sum(axis=(-2, -1))
        return found

    def scaled(self, load: LinkLoad, factor: float | FloatArray) -> LinkLoad:
        """The load of so many rounds on each copy."""
        factors = np.asarray(factor)

        def times(loads: list[FloatArray]) -> list[FloatArray]:
            return [
                sent * factors[copy] if len(sent) else sent
                for sent, (copy, _) in zip(loads, self.children, strict=True)
            ]

        return LinkLoad(times(load.up), times(load.down))
