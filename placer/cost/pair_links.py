"""Links that a machine names: what all traffic between two domains shares.

Shapes: L links. Each is two, one a direction: ``l`` goes from the first domain to the
second, ``l + L`` back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from placer.topology.machine import Machine


@dataclass(frozen=True, eq=False)
class PairLinks:
    """The links between child domains of one tier.

    Attributes
    ----------
    sources, targets : ndarray, shape (2L,)
        Child domains at both ends.
    capacity : ndarray, shape (2L,), B/s
    more_latency : ndarray, shape (2L,), s
        What a hop takes longer than the tier says.
    children : int
        Child domains of the tier.
    """

    sources: IntArray
    targets: IntArray
    capacity: FloatArray
    more_latency: FloatArray
    children: int

    @classmethod
    def by_tier(cls, topology: Machine) -> dict[int, PairLinks]:
        """The links of a machine by the index of the tier in which domains meet."""
        found = {}
        for t, tier in enumerate(topology.tiers[1:], start=1):
            inside = topology.tiers[t - 1].name
            links = [link for link in topology.links if link.tier == inside]
            if not links:
                continue
            names = topology.domain_names[t - 1]
            index = {name: child for child, name in enumerate(names)}
            ends = np.array([[index[name] for name in link.between] for link in links])
            rate = np.array([link.bandwidth for link in links]) * tier.efficiency
            more = np.array([link.latency for link in links]) - tier.latency
            found[t] = cls(
                ends.T.ravel(),
                ends[:, ::-1].T.ravel(),
                np.tile(rate, 2),
                np.tile(more, 2),
                len(names),
            )
        return found

    def times_as_fast(self, factor: float) -> PairLinks:
        """The same with ``factor`` times the capacity."""
        return replace(self, capacity=self.capacity * factor)

    def find(self, here: IntArray, there: IntArray) -> IntArray:
        """Link from a child domain to another, elementwise; -1 where there is none."""
        keys, order = self._keys
        wanted = here * self.children + there
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, order[place], -1)

    def load(self, link: IntArray, size_bytes: npt.ArrayLike) -> FloatArray:
        """Bytes on each link, given the link of every flow or -1; shape (2L,)."""
        on = link >= 0
        sizes = np.broadcast_to(size_bytes, link.shape)[on]
        counts = np.bincount(link[on], sizes, len(self.capacity))
        return counts.astype(np.float64, copy=False)

    @cached_property
    def _keys(self) -> tuple[IntArray, IntArray]:
        """Both ends as one number, ascending, and the link of each."""
        keys = self.sources * self.children + self.targets
        order = np.argsort(keys)
        return keys[order], order
