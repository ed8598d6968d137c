"""The least time of messages: steps of rings, exchanges, and flows at once.

NVLink and NIC of a GPU work side by side, and a port sends, or receives, one message
after the other. By hand: two messages of 1 GB over ports of 3 and 1 GB/s take half a
second, as does one of 1.5 GB. Shapes: F flows, R ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.cost.fabric import Fabric
from placer.cost.links import weighted_counts

if TYPE_CHECKING:
    from placer.solve.bounds.ideal import IdealNetwork


def ring_latency(fabric: Fabric, num_members: int, spread: IntArray) -> float:
    """Least latency of a ring's n-1 steps over the fewest domains of each tier, s.

    A ring over ``D`` domains of a tier leaves them ``D`` times; at each wider tier
    fewer hops need to go so far.

    ``spread`` ((T + 1,)): fewest domains that hold the members: single GPUs, then those
    of each tier.
    """
    if num_members == 1:
        return 0.0
    latency = fabric.latency
    first_outer = fabric.scale_up_tier + 1
    inner, outer = latency[:first_outer], latency[first_outer:]
    domains = int(spread[first_outer])
    cheapest = float(inner.min(initial=np.inf))
    if domains == 1 or (domains < num_members and cheapest > outer.min()):
        return float((num_members - 1) * latency.min())
    leaving = np.where(spread > 1, spread, 0)[first_outer:-1]
    rising = np.minimum.accumulate(outer[::-1])[::-1]
    outer_sum = float(leaving @ np.diff(rising, prepend=0.0))
    inner_sum = (num_members - domains) * cheapest if domains < num_members else 0.0
    return (domains - 1) / domains * outer_sum + inner_sum


def exchange_latency(latency: FloatArray, most: IntArray) -> float:
    """Least latency of one member's messages to all others, one after the other, s.

    No more of the others lie in its domain of a tier than that can hold, so all
    further messages leave it. By hand: 36 members, 4 a node, all in a rack: 3 messages
    of 1 us and 32 of 2 us.

    ``latency`` ((T,), s): of each tier. ``most`` ((T,)): members that one domain of
    each tier may hold; the last tier holds all.
    """
    within = np.minimum.accumulate(most[::-1])[::-1]
    cheapest = np.minimum.accumulate(latency[::-1])[::-1]
    return float(cheapest @ np.diff(within, prepend=1))


def least_flow_seconds(
    network: IdealNetwork,
    senders: IntArray,
    receivers: IntArray,
    size_bytes: FloatArray,
    pair_share: float = 1.0,
) -> FloatArray:
    """Least seconds of each flow; shape (F,)."""
    tier, bandwidth = network.fabric.scale_up_tier, network.fabric.bandwidth
    inner = float(bandwidth[: tier + 1].max(initial=0.0))
    outer = float(bandwidth[tier + 1 :].max(initial=0.0))
    away = _parted(network, tier, senders, receivers) if outer else senders < 0
    count = network.label.shape[1]
    seconds = np.where(away, size_bytes / pair_share / (outer or inner), 0.0)
    for ranks, others in ((senders, receivers), (receivers, senders)):
        longest = np.zeros(count)
        np.maximum.at(longest, ranks, size_bytes / max(inner, outer))
        ports = weighted_counts(ranks, size_bytes, count) / (inner + outer)
        ports = np.maximum(ports, longest)
        if outer:
            far = weighted_counts(ranks, np.where(away, size_bytes, 0.0), count)
            ports = np.maximum(ports, far / outer)
        waits = _waits(network, ranks, others)
        seconds = np.maximum(seconds, (ports + waits)[ranks])
    return np.asarray(seconds)


def _parted(
    network: IdealNetwork, tier: int, ranks: IntArray, others: IntArray
) -> BoolArray:
    """Which pairs of ranks no domain of a tier has room for; -1 are single GPUs."""
    if tier < 0:
        return np.asarray(ranks != others)
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
