"""The least time of flows between ranks, all at once: what each rank's ports need.

NVLink and NIC of a GPU work side by side, and a port sends, or receives, one message
after the other. Messages of a rank to a set of ranks that stay together make a bundle,
all of it over one port. Shapes: F flows, B bundles, R ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.cost.links import weighted_counts
from placer.cost.network import hop_by_hop

if TYPE_CHECKING:
    from placer.cost.exchange import ExchangeCost
    from placer.solve.bounds.network.ideal import IdealNetwork


def least_flow_seconds(
    network: IdealNetwork,
    senders: IntArray,
    receivers: IntArray,
    size_bytes: FloatArray,
    pair_share: float = 1.0,
) -> FloatArray:
    """Least seconds of each flow; shape (F,)."""
    sent = _port_seconds(network, senders, receivers, size_bytes)[senders]
    received = _port_seconds(network, receivers, senders, size_bytes)[receivers]
    alone = _alone_on_nic(network, senders, receivers, size_bytes / pair_share)
    return np.maximum(np.maximum(sent, received), alone)


def least_relay(
    network: IdealNetwork, members: IntArray, size_bytes: float
) -> list[ExchangeCost]:
    """Least cost of a message along each row of ``members``, (g, n), hop after hop.

    Hops whose ranks stay together alike cost the same.
    """
    are_told = network.in_runs or network.limits or network.near is not None
    if are_told or network.replica is not None:  # then ranks are no longer alike
        return hop_by_hop(network, members, size_bytes)
    sets = network.label[:, members]
    together = (sets[..., 1:] == sets[..., :-1]).any(axis=1)
    _, first, sort = np.unique(together, axis=1, return_index=True, return_inverse=True)
    costs = [
        network.send(members[:, hop], members[:, hop + 1], size_bytes)
        for hop in first.tolist()
    ]
    return [costs[one] for one in sort.ravel().tolist()]


def _port_seconds(
    network: IdealNetwork, ranks: IntArray, others: IntArray, size_bytes: FloatArray
) -> FloatArray:
    """Least seconds of the messages of each rank, to or from it; shape (R,).

    NVLink reaches as many bundles as a domain holds besides: all others take a NIC, and
    they have no more to send than the smallest. So do those to sets that no domain
    holds beside the rank's own.
    """
    fabric = network.fabric
    first_outer = fabric.scale_up_tier + 1
    count = network.label.shape[1]
    label, room = np.arange(count), 1
    inner, outer = np.split(fabric.bandwidth, [first_outer])
    if first_outer:
        label = network.label[first_outer - 1]
        capacity = network.capacities[first_outer - 1]
        room = int(capacity.max())
        if np.count_nonzero(capacity) == 1:
            outer = outer[:0]  # nobody is outside
    keys, which = np.unique(ranks * count + label[others], return_inverse=True)
    size = np.bincount(which, size_bytes, len(keys))
    rank, other = keys // count, keys % count
    members = np.bincount(label)
    own = members[label[rank]]
    away = (label[rank] != other) & (own + members[other] > room)
    # Sets are numbered by a rank of theirs: not every number is one.
    places = (room - own) // members[members > 0].min() + (own > 1)

    order = np.lexsort((-size, away, rank))
    rank, size, away, places = (v[order] for v in (rank, size, away, places))
    full = np.arange(len(rank)) - np.searchsorted(rank, rank) >= places
    rates = np.array([inner.max(initial=0.0), outer.max(initial=0.0)])
    total = weighted_counts(rank, size, count)
    longest = np.zeros(count)
    np.maximum.at(longest, rank, size)
    far = weighted_counts(rank, np.where(away | full, size, 0.0), count)
    seconds = np.maximum(total / rates.sum(), longest / rates.max())
    if rates[1]:
        seconds = np.maximum(seconds, far / rates[1])
    if rates.all():
        # All the rest on NVLink, or the smallest bundle on the NIC too. Where NVLink is
        # full a larger one may change places with a smaller one.
        least = np.full(count, np.inf)
        np.minimum.at(least, rank[~away & ~full], size[~away & ~full])
        least[rank[full & ~away]] = 0.0
        near = np.maximum(far / rates[1], (total - far) / rates[0])
        seconds = np.minimum(near, np.maximum(seconds, (far + least) / rates[1]))
    return np.asarray(seconds + _waits(network, ranks, others))


def _alone_on_nic(
    network: IdealNetwork, ranks: IntArray, others: IntArray, size_bytes: FloatArray
) -> FloatArray:
    """Least seconds of each flow that no scale-up domain has room for; 0 of others."""
    tier = network.fabric.scale_up_tier
    outer = network.fabric.bandwidth[tier + 1 :]
    if not len(outer):
        return np.zeros(len(ranks))
    parted = ranks != others
    if tier >= 0:
        parted = _parted(network, tier, ranks, others)
    return np.where(parted, size_bytes / outer.max(), 0.0)


def _parted(
    network: IdealNetwork, tier: int, ranks: IntArray, others: IntArray
) -> BoolArray:
    """Which pairs of ranks are of sets that no domain of a tier holds both."""
    label, room = network.label[tier], int(network.capacities[tier].max())
    members, one, other = np.bincount(label), label[ranks], label[others]
    parted: BoolArray = (one != other) & (members[one] + members[other] > room)
    return parted


def _waits(network: IdealNetwork, ranks: IntArray, others: IntArray) -> FloatArray:
    """Least latency of all messages of each rank, one after the other; shape (R,)."""
    latency = network.fabric.latency
    waits = np.full(len(ranks), float(latency.min()))
    for tier in range(len(network.label) - 1):
        waits[_parted(network, tier, ranks, others)] = latency[tier + 1 :].min()
    return weighted_counts(ranks, waits, network.label.shape[1])
