"""Load on uplinks and links, and the seconds that the fullest of them needs.

Bottleneck rule for flows that run together: each takes as long as its most loaded link,
loads counted per direction (max-min bound; Bertsekas and Gallager, *Data Networks*,
6.5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from placer.cost.fabric import Fabric


@dataclass(frozen=True, eq=False)
class LinkLoad:
    """Bytes on every uplink of every tier and on every link, both directions.

    Attributes
    ----------
    up, down : list of ndarray, bytes
        ``up[t][d]`` leaves child domain ``d`` of tier ``t``; ``down[t][d]`` enters it.
        Arrays of NVLink tiers are empty.
    between : mapping of int to ndarray, bytes
        On the links of every tier that has some, each direction by itself
        (`PairLinks`).
    """

    up: list[FloatArray]
    down: list[FloatArray]
    between: Mapping[int, FloatArray] = field(default_factory=dict)

    def scaled(self, factor: float | FloatArray) -> LinkLoad:
        """The load of ``factor`` such rounds."""
        return LinkLoad(
            [u * factor for u in self.up],
            [d * factor for d in self.down],
            {t: sent * factor for t, sent in self.between.items()},
        )

    def plus(self, other: LinkLoad) -> LinkLoad:
        """Both loads together."""
        return LinkLoad(
            [one + more for one, more in zip(self.up, other.up, strict=True)],
            [one + more for one, more in zip(self.down, other.down, strict=True)],
            {t: sent + other.between[t] for t, sent in self.between.items()},
        )

    def reversed(self) -> LinkLoad:
        """As many bytes the other way."""
        back = {t: np.roll(sent, len(sent) // 2) for t, sent in self.between.items()}
        return LinkLoad(self.down, self.up, back)


def weighted_counts(index: IntArray, weights: npt.ArrayLike, length: int) -> FloatArray:
    """Sum of the weights of each index below ``length``; shape (length,)."""
    counts = np.bincount(np.ravel(index), np.ravel(weights), length)
    return counts.astype(np.float64, copy=False)


def flow_load(
    fabric: Fabric,
    sources: IntArray,
    targets: IntArray,
    tiers: IntArray,
    size_bytes: FloatArray,
) -> LinkLoad:
    """The load of flows between GPUs; all arguments broadcast to one flow an entry."""
    up: list[FloatArray] = [np.empty(0)] * fabric.num_tiers
    down: list[FloatArray] = [np.empty(0)] * fabric.num_tiers
    for t in fabric.scale_out_tiers:
        child = fabric.child_domain_of_gpu(t)
        num_children = len(fabric.uplink_capacity[t])
        crosses = tiers >= t
        sizes = np.broadcast_to(size_bytes, tiers.shape)[crosses]
        up[t] = weighted_counts(child[sources[crosses]], sizes, num_children)
        down[t] = weighted_counts(child[targets[crosses]], sizes, num_children)
    between = {
        t: links.load(fabric.link_of(t, sources, targets), size_bytes)
        for t, links in fabric.links.items()
    }
    return LinkLoad(up, down, between)


def flow_link_seconds(
    fabric: Fabric,
    load: LinkLoad,
    sources: IntArray,
    targets: IntArray,
    tiers: IntArray,
) -> FloatArray:
    """Seconds that the most loaded shared link on each flow's path needs."""
    seconds = np.zeros(tiers.shape)
    for t in fabric.scale_out_tiers:
        crosses = tiers >= t
        if not crosses.any():
            continue
        child = fabric.child_domain_of_gpu(t)
        busy_up = load.up[t] / fabric.uplink_capacity[t]
        busy_down = load.down[t] / fabric.uplink_capacity[t]
        path = np.maximum(
            busy_up[child[sources[crosses]]], busy_down[child[targets[crosses]]]
        )
        seconds[crosses] = np.maximum(seconds[crosses], path)
    for t, links in fabric.links.items():
        link = fabric.link_of(t, sources, targets)
        busy = load.between[t] / links.capacity
        seconds = np.maximum(seconds, np.where(link >= 0, busy[link], 0.0))
    return seconds
