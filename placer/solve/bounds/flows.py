"""The least time of flows between ranks, all at once: what each rank's ports need.

NVLink and NIC of a GPU work side by side, each message goes over one of them, and a
port sends, or receives, one message after the other. Shapes: F flows, R ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.cost.links import weighted_counts

if TYPE_CHECKING:
    from placer.solve.bounds.ideal import IdealNetwork

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def least_flow_seconds(
    network: IdealNetwork,
    senders: IntArray,
    receivers: IntArray,
    size_bytes: FloatArray,
) -> FloatArray:
    """Least seconds of each flow; shape (F,)."""
    parted = _parted(network, senders, receivers)
    sent = _port_seconds(network, senders, size_bytes, parted)[senders]
    received = _port_seconds(network, receivers, size_bytes, parted)[receivers]
    return np.maximum(sent, received)


def _parted(network: IdealNetwork, first: IntArray, second: IntArray) -> BoolArray:
    """Which pairs of ranks no scale-up domain holds with all that is tied to them."""
    tier = network.fabric.scale_up_tier
    if tier < 0:
        return np.ones(len(first), dtype=bool)
    label = network.label[tier]
    size = np.bincount(label)
    room = int(network.capacities[tier].max())
    one, other = label[first], label[second]
    return np.asarray((one != other) & (size[one] + size[other] > room))


def _port_seconds(
    network: IdealNetwork, ranks: IntArray, size_bytes: FloatArray, parted: BoolArray
) -> FloatArray:
    """Least seconds of the messages of each rank, to or from it; shape (R,).

    NVLink reaches as many ranks as a domain holds besides: all others take a NIC, and
    they have no more to send than the smallest messages. Parted ranks take it too.
    """
    fabric = network.fabric
    first_outer = fabric.scale_up_tier + 1
    inner, outer = np.split(fabric.bandwidth, [first_outer])
    rates = np.array([inner.max(initial=0.0), outer.max(initial=0.0)])
    room = int(network.capacities[first_outer - 1].max()) if first_outer else 1
    order = np.lexsort((-size_bytes, parted, ranks))
    rank, size, away = ranks[order], size_bytes[order], parted[order]
    count = network.label.shape[1]
    total = weighted_counts(rank, size, count)
    longest = np.zeros(count)
    np.maximum.at(longest, rank, size)
    seconds = np.maximum(total / rates.sum(), longest / rates.max())
    full = np.arange(len(rank)) - np.searchsorted(rank, rank) >= room - 1
    far = weighted_counts(rank, np.where(away | full, size, 0.0), count)
    if rates[1]:
        seconds = np.maximum(seconds, far / rates[1])
    if rates.all():
        # All the rest on NVLink, or the smallest of it on the NIC too. Where NVLink is
        # full a larger message may change places with a smaller one.
        least = np.full(count, np.inf)
        np.minimum.at(least, rank[~away & ~full], size[~away & ~full])
        least[rank[full & ~away]] = 0.0
        near = np.maximum(far / rates[1], (total - far) / rates[0])
        seconds = np.minimum(near, np.maximum(seconds, (far + least) / rates[1]))
    waits = np.full(len(rank), float(fabric.latency.min()))
    waits[away] = fabric.latency[first_outer:].min(initial=np.inf)
    return np.asarray(seconds + weighted_counts(rank, waits, count))
