"""The tiers and shared links of a machine by name: uplinks, links between domains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.cost.fabric import Fabric
from placer.cost.links import LinkLoad


@dataclass(frozen=True, eq=False)
class Way:
    """Uplinks into a tier in one direction, or the links between its child domains."""

    fabric: Fabric
    tier: int
    kind: str  # ``up``, ``down`` or ``between``

    @property
    def capacity(self) -> FloatArray:
        """Of each link, B/s."""
        if self.kind == "between":
            return self.fabric.links[self.tier].capacity
        return self.fabric.uplink_capacity[self.tier]

    def bytes_of(self, load: LinkLoad) -> FloatArray:
        """What a load puts on each link."""
        return load[self.kind, self.tier]

    def busy_s(self, load: LinkLoad) -> FloatArray:
        """Seconds that a load keeps each link busy."""
        return self.bytes_of(load) / self.capacity

    def touches(self, gpus: IntArray) -> BoolArray:
        """Which links begin and end in child domains of some GPUs."""
        child = self.fabric.child_domain_of_gpu(self.tier)[gpus]
        if self.kind == "between":
            links = self.fabric.links[self.tier]
            ends = np.stack((links.sources, links.targets))
            return np.asarray(np.isin(ends, child).all(axis=0))
        return np.asarray(np.isin(np.arange(len(self.capacity)), child))

    def begins_at(self, gpu: int) -> BoolArray:
        """Which links are those of the child domain of a GPU, or begin there."""
        here = self.fabric.child_domain_of_gpu(self.tier)[gpu]
        if self.kind == "between":
            return np.asarray(self.fabric.links[self.tier].sources == here)
        return np.asarray(np.arange(len(self.capacity)) == here)

    def name(self, link: int) -> dict[str, str]:
        """``tier``, ``domain`` and ``direction``: ``up``, ``down`` or ``to r2``."""
        domain, direction = link, self.kind
        if self.kind == "between":
            links = self.fabric.links[self.tier]
            domain = int(links.sources[link])
            target = child_name(self.fabric, self.tier, int(links.targets[link]))
            direction = f"to {target}"
        return {
            "tier": self.fabric.topology.tiers[self.tier].name,
            "domain": child_name(self.fabric, self.tier, domain),
            "direction": direction,
        }


def ways(fabric: Fabric) -> Iterator[Way]:
    """All shared links of the machine, tier by tier."""
    for t in fabric.scale_out_tiers:
        yield Way(fabric, t, "up")
        yield Way(fabric, t, "down")
        if t in fabric.links:
            yield Way(fabric, t, "between")


def child_name(fabric: Fabric, tier: int, child: int) -> str:
    """Name of a child domain of ``tier``; of a GPU when the tier is the node."""
    return fabric.topology.domain_names[tier - 1][child] if tier else f"gpu {child}"


def by_tier(fabric: Fabric, values: npt.NDArray[Any]) -> dict[str, Any]:
    """Values by tier name, tiers without any left out."""
    return {
        tier.name: value.item()
        for tier, value in zip(fabric.topology.tiers, values, strict=True)
        if value
    }
