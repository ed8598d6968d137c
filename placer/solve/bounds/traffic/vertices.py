"""Vertices of a graph of traffic: ranks, or sets of them that stay together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.cost.links import weighted_counts

if TYPE_CHECKING:
    from placer.job.model import RankTraffic
    from placer.solve.bounds.network.ideal import IdealNetwork


def tiers_with_uplinks(
    network: IdealNetwork,
) -> Iterator[tuple[int, IntArray | None]]:
    """Tiers that several uplinks lead to, and the set of each rank; shape (R,).

    What stays together is one vertex too, where all of it is of one size; else None.
    """
    ranks = network.label.shape[1]
    for t in network.fabric.scale_out_tiers:
        if t == 0 or len(network.fabric.uplink_capacity[t]) < 2:
            continue
        sets = network.label[t - 1]
        sizes = np.bincount(sets)
        are_alike = 1 < sizes[0] < ranks and (sizes == sizes[0]).all()
        yield t, sets if are_alike else None


def between_sets(traffic: RankTraffic, label: IntArray) -> RankTraffic:
    """What sets of ranks send each other."""
    count = int(label.max()) + 1
    keys = label[traffic.senders] * count + label[traffic.receivers]
    apart = keys // count != keys % count
    keys, which = np.unique(keys[apart], return_inverse=True)
    size = weighted_counts(which, traffic.size_bytes[apart], len(keys))
    return replace(
        traffic, senders=keys // count, receivers=keys % count, size_bytes=size
    )
