"""Ring collectives on a machine, built as NCCL builds them.

NCCL numbers scale-up domains in the order in which they first appear by communicator
rank and runs every ring over them in that order, the members of a domain side by side
(NCCL 5067397c, ``src/init.cc``, ``src/graph/connect.cc``). A group with ``q`` members
in each domain drives ``q`` NICs there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.cost.links import LinkLoad, flow_link_seconds, flow_load, weighted_counts

if TYPE_CHECKING:
    from placer.cost.fabric import Fabric

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rings:
    """The rings of some groups: g groups of n members.

    Attributes
    ----------
    gpus : ndarray, shape (g, n)
        Members in ring order.
    hop_tier : ndarray, shape (g, n)
        Tier of the hop from each member to the next, cyclically.
    domains : ndarray, shape (g,)
        Scale-up domains that the group touches.
    nics : ndarray, shape (g,)
        NICs it drives in each: its members in the domain that has the fewest.
    """

    gpus: IntArray
    hop_tier: IntArray
    domains: IntArray
    nics: IntArray


@dataclass(frozen=True, eq=False)
class RingCost:
    """What a one-way ring pass (reduce-scatter or all-gather) costs.

    Attributes
    ----------
    seconds : ndarray, shape (g,)
    bandwidth_seconds : ndarray, shape (g,)
        The part that grows with the buffer; the rest is latency.
    bytes_by_tier : ndarray, shape (T,), bytes
        Sent by all groups, by the tier of the hop.
    load : LinkLoad
    """

    seconds: FloatArray
    bandwidth_seconds: FloatArray
    bytes_by_tier: FloatArray
    load: LinkLoad


def build_rings(fabric: Fabric, gpus: IntArray) -> Rings:
    """The rings of groups whose members' GPUs, by rank, are the rows of ``gpus``."""
    domain = fabric.scale_up_domain_of_gpu[gpus]
    by_domain = np.argsort(domain, axis=1, kind="stable")
    sorted_domain = np.take_along_axis(domain, by_domain, axis=1)
    starts = np.ones(domain.shape, dtype=bool)
    starts[:, 1:] = sorted_domain[:, 1:] != sorted_domain[:, :-1]
    columns = np.broadcast_to(np.arange(domain.shape[1]), domain.shape)
    start_column = np.maximum.accumulate(np.where(starts, columns, 0), axis=1)
    first_seen = np.take_along_axis(by_domain, start_column, axis=1)
    ring = np.take_along_axis(
        by_domain, np.argsort(first_seen, axis=1, kind="stable"), axis=1
    )
    in_order = np.take_along_axis(gpus, ring, axis=1)
    following = np.roll(in_order, -1, axis=1)
    return Rings(
        in_order,
        fabric.tier_between(in_order, following),
        starts.sum(axis=1),
        _fewest_members(starts),
    )


def _fewest_members(starts: npt.NDArray[np.bool_]) -> IntArray:
    """Length of the shortest run in each row; runs begin where ``starts`` is true."""
    num_members = starts.shape[1]
    begin = np.flatnonzero(starts.ravel())
    row = begin // num_members
    end = np.append(begin[1:], starts.size)
    fewest = np.full(starts.shape[0], num_members, dtype=np.int64)
    np.minimum.at(fewest, row, end - begin)
    return fewest


def ring_cost(fabric: Fabric, rings: Rings, size_bytes: FloatArray) -> RingCost:
    """The cost of one reduce-scatter or all-gather, all groups at once.

    Parameters
    ----------
    fabric : Fabric
    rings : Rings
    size_bytes : ndarray, shape (g,), bytes
        Full buffer: what a reduce-scatter takes and an all-gather leaves on a rank.

    Notes
    -----
    Every ring edge carries ``(n-1)/n size`` (Patarasuk and Yuan 2009, JPDC 69(2)). A
    hop between domains spreads it over the group's ``q`` NICs; a shared uplink carries
    the sum over all rings. The slowest edge sets the pace; the ``n - N`` steps inside
    the ``N`` domains and the ``N - 1`` steps between them each pay the mean latency of
    such hops.
    """
    num_groups, num_members = rings.gpus.shape
    edge_bytes = (num_members - 1) / num_members * size_bytes
    following = np.roll(rings.gpus, -1, axis=1)
    outer = rings.hop_tier > fabric.scale_up_tier
    factor = fabric.factor_of_gpu[rings.gpus].min(axis=1)
    lanes = np.where(outer, rings.nics[:, None], 1)
    rate = fabric.bandwidth[rings.hop_tier] * lanes * factor[:, None]
    own = edge_bytes[:, None] / rate
    flows = np.broadcast_to(edge_bytes[:, None], rings.gpus.shape)
    load = flow_load(fabric, rings.gpus, following, rings.hop_tier, flows)
    shared = flow_link_seconds(fabric, load, rings.gpus, following, rings.hop_tier)
    bandwidth_seconds = np.maximum(own, shared).max(axis=1)
    if num_members == 1:
        bandwidth_seconds = np.zeros(num_groups)
    return RingCost(
        bandwidth_seconds + _ring_latency(fabric, rings, outer),
        bandwidth_seconds,
        weighted_counts(rings.hop_tier, flows, fabric.num_tiers),
        load,
    )


def _ring_latency(
    fabric: Fabric, rings: Rings, outer: npt.NDArray[np.bool_]
) -> FloatArray:
    """Latency of the n-1 steps of each ring, s; shape (g,)."""
    num_members = rings.gpus.shape[1]
    latency = fabric.latency[rings.hop_tier]
    outer_hops = outer.sum(axis=1)
    inner_hops = num_members - outer_hops
    outer_sum = np.where(outer, latency, 0.0).sum(axis=1)
    inner_sum = latency.sum(axis=1) - outer_sum
    outer_mean = outer_sum / np.maximum(outer_hops, 1)
    inner_mean = inner_sum / np.maximum(inner_hops, 1)
    outer_steps = np.maximum(rings.domains - 1, 0)
    inner_steps = num_members - 1 - outer_steps
    seconds: FloatArray = outer_steps * outer_mean + inner_steps * inner_mean
    return seconds
