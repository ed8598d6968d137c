"""All-to-all and point-to-point exchanges on a machine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.cost.collectives import Sizes, share_sent
from placer.cost.fabric import Fabric
from placer.cost.links import (
    Cost,
    LinkLoad,
    Traffic,
    flow_link_seconds,
    flow_load,
    weighted_counts,
)

# Kernels that send a token once to each member reach this share of what else goes over
# NVLink, the mean of dispatch and combine on 8 to 36 GPUs of GB200 and 8 of B200
# (shifangx/DeepEP 1242eb4f, Hybrid-EP_Intra-node_Implementation.md, 16 SMs).
KERNEL_SHARE = 0.82


def members_together(fabric: Fabric, gpus: IntArray) -> IntArray:
    """How many of a group's members share each member's domain; shape (T, g, n)."""
    together = np.full((fabric.num_tiers, *gpus.shape), gpus.shape[1], dtype=np.int64)
    for t, domain_of_gpu in enumerate(fabric.domain_of_gpu[:-1]):
        together[t] = _alike(domain_of_gpu[gpus])
    return together


def _alike(places: IntArray) -> IntArray:
    """How many members of a row have the place of each; shape (g, n)."""
    by_place = np.argsort(places, axis=1)
    in_order = np.take_along_axis(places, by_place, axis=1)
    starts = np.ones(places.shape, dtype=bool)
    starts[:, 1:] = in_order[:, 1:] != in_order[:, :-1]
    run = np.cumsum(starts).reshape(places.shape) - 1
    found = np.empty_like(places)
    np.put_along_axis(found, by_place, np.bincount(run.ravel())[run], axis=1)
    return found


def _detours(fabric: Fabric, gpus: IntArray, peers: FloatArray) -> FloatArray:
    """Detours over NVLink for each peer on another rail; (T, g, n), s."""
    found = np.zeros(peers.shape)
    rail = fabric.rail_of_gpu[gpus]
    for t in np.flatnonzero(fabric.detour).tolist():
        inner, outer = (
            domain[gpus] * (int(fabric.rail_of_gpu.max()) + 1) + rail
            for domain in (fabric.child_domain_of_gpu(t), fabric.domain_of_gpu[t])
        )
        on_rail = _alike(outer) - _alike(inner)
        found[t] = fabric.detour[t] * (peers[t] - on_rail)
    return found


def all_to_all_cost(
    fabric: Fabric, gpus: IntArray, size_bytes: Sizes, copies: int = 0
) -> Cost:
    """The cost of one all-to-all in every row of ``gpus`` at once.

    ``gpus``: shape (g, n). ``size_bytes`` (bytes): what one member sends in all, its
    own share included; one for all groups, or one for each copy of the machine that
    groups are on. ``copies``: experts that each token in the buffer is bound for, when
    it crosses once to each scale-up domain and goes on once to each member there; 0
    sends every copy by itself.

    Each member sends ``size/n`` to every other, over NVLink and over its NIC side by
    side; the fullest NVLink port, NIC or shared uplink sets the time, and the ``n-1``
    pairwise sends each pay the latency of their hop. Deduplicated, a member sends to
    other domains the share of its tokens expected there, one message each, and passes
    on inside its domain what arrives for the other members (DeepSeek-V3, arXiv
    2412.19437, section 3.2.2). A member gets a token once, however many of the token's
    experts it has (deepseek-ai/DeepEP dd758ca, ``csrc/kernels/legacy/intranode.cu``).
    """
    num_members = gpus.shape[1]
    together = members_together(fabric, gpus)
    within = np.concatenate((np.ones((1, *gpus.shape), dtype=np.int64), together))
    peers = np.diff(within, axis=0).astype(np.float64)
    share = np.reshape(fabric.per_row(size_bytes, gpus), (-1, 1)) / num_members
    inner = fabric.scale_up_tier + 1
    nearby = crossing = messages = np.ones(1)
    if copies:
        nearby, crossing, messages = _deduplicated(within[inner], copies)
    sent = share * np.concatenate((peers[:inner] * nearby, peers[inner:] * crossing))
    port = sent / fabric.bandwidth[:, None, None] / fabric.factor_of_gpu[gpus]
    port[:inner] /= KERNEL_SHARE if copies else 1.0
    own = np.maximum(port[:inner].sum(axis=0), port[inner:].sum(axis=0))
    hops = np.concatenate((peers[:inner], peers[inner:] * messages))
    latency = np.tensordot(fabric.latency, hops, axes=1)
    if fabric.has_rails:
        latency = latency + _detours(fabric, gpus, peers).sum(axis=0) * messages
    load = _exchange_load(fabric, gpus, share * crossing, num_members - within[:-1])
    shared = np.zeros(gpus.shape)
    for t in fabric.scale_out_tiers:
        busy = load["up", t] / fabric.uplink_capacity[t]
        sends = num_members > within[t]
        path = np.where(sends, busy[fabric.child_domain_of_gpu(t)[gpus]], 0.0)
        shared = np.maximum(shared, path)
    for t, links in fabric.links.items():
        busy = load["between", t] / links.capacity
        for link, mine, there in _on_links(fabric, gpus, t):
            path = np.where(mine & (there > 0), busy[link], 0.0)
            shared = np.maximum(shared, path)
            latency = latency + mine * there * links.more_latency[link] * messages
    return Cost(
        (np.maximum(own, shared) + latency).max(axis=1),
        Traffic(lambda: (fabric.total(sent, gpus), load)),
    )


def _deduplicated(
    here: IntArray, copies: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What deduplication makes of one member's bytes and messages to another.

    ``here`` ((g, n)): members in each member's scale-up domain. Gives factors: on bytes
    inside the domain (all that arrive for other members are passed on), on bytes beyond
    it, on messages beyond it; shape (g, n) or (g, 1).
    """
    num_members = here.shape[1]
    domains = np.rint((1 / here).sum(axis=1)).astype(np.int64)[:, None]
    crossing = share_sent(domains, copies)
    messages = (domains - 1) / np.maximum(num_members - here, 1)
    nearby = num_members / here * share_sent(np.array(num_members), copies)
    return nearby, crossing, messages


def _on_links(
    fabric: Fabric, gpus: IntArray, t: int
) -> Iterator[tuple[int, BoolArray, IntArray]]:
    """Links of a tier with members at both ends: who at its start, how many at its end.

    With the link come arrays of shapes (g, n) and (g, 1).
    """
    child, links = fabric.child_domain_of_gpu(t)[gpus], fabric.links[t]
    ends = np.stack((links.sources, links.targets))
    for link in np.flatnonzero(np.isin(ends, child).all(axis=0)).tolist():
        there = (child == links.targets[link]).sum(axis=1, keepdims=True)
        yield link, child == links.sources[link], there


def _exchange_load(
    fabric: Fabric, gpus: IntArray, size_bytes: FloatArray, outside: IntArray
) -> LinkLoad:
    """The load when a member sends ``size_bytes`` to each of ``outside[t]`` others.

    An all-to-all is symmetric: as much enters a domain as leaves it.
    """
    load = LinkLoad()
    for t in fabric.scale_out_tiers:
        child = fabric.child_domain_of_gpu(t)[gpus]
        count = len(fabric.uplink_capacity[t])
        sent = weighted_counts(child, size_bytes * outside[t], count)
        load["up", t] = load["down", t] = sent
    for t, links in fabric.links.items():
        load["between", t] = np.zeros(len(links.capacity))
        for link, mine, there in _on_links(fabric, gpus, t):
            load["between", t][link] = (mine * there * size_bytes).sum()
    return load


def flows_cost(
    fabric: Fabric,
    sources: IntArray,
    targets: IntArray,
    size_bytes: FloatArray,
    pair_share: float = 1.0,
) -> Cost:
    """The cost of flows of any sizes between GPUs, all at once; shapes (F,).

    A GPU sends what goes over NVLink and what goes over its NIC side by side, one
    message after the other, and receives likewise. A flow waits for the port that is
    busy longest at either end, or for the fullest shared uplink on its way. So flows
    between all members of a group cost what their all-to-all does, and a single one
    what a send does. Over its NIC a flow reaches no more than ``pair_share`` of the
    rate, which several fill.
    """
    tiers = fabric.tier_between(sources, targets)
    load = flow_load(fabric, sources, targets, tiers, size_bytes)
    shared = flow_link_seconds(fabric, load, sources, targets, tiers)
    seconds, latency = shared, np.zeros(len(tiers))
    hop = fabric.latency[tiers] + fabric.link_latency(sources, targets)
    count = fabric.domain_of_gpu.shape[1]
    outside = tiers > fabric.scale_up_tier
    slower = np.minimum(fabric.factor_of_gpu[sources], fabric.factor_of_gpu[targets])
    alone = size_bytes / fabric.bandwidth[tiers] / slower / pair_share
    seconds = np.maximum(seconds, np.where(outside, alone, 0.0))
    for ends in (sources, targets):
        for over in (outside, ~outside):
            pace = np.where(over, size_bytes / fabric.bandwidth[tiers], 0.0)
            busy = weighted_counts(ends, pace, count) / fabric.factor_of_gpu
            seconds = np.maximum(seconds, busy[ends])
        waits = weighted_counts(ends, hop, count)
        latency = np.maximum(latency, waits[ends])
    by_tier = weighted_counts(tiers, size_bytes, fabric.num_tiers)
    return Cost(seconds + latency, Traffic(lambda: (by_tier, load)))


def send_cost(
    fabric: Fabric, sources: IntArray, targets: IntArray, size_bytes: Sizes
) -> Cost:
    """The cost of point-to-point messages that all run at once.

    ``alpha + size / bandwidth`` of the tier (Hockney 1994, Parallel Computing 20(3)),
    or the time of the fullest shared uplink on the way when that is longer.
    """
    tiers = fabric.tier_between(sources, targets)
    size_bytes = np.broadcast_to(size_bytes, tiers.shape)
    load = flow_load(fabric, sources, targets, tiers, size_bytes)
    shared = flow_link_seconds(fabric, load, sources, targets, tiers)
    factor = np.minimum(fabric.factor_of_gpu[sources], fabric.factor_of_gpu[targets])
    own = size_bytes / fabric.bandwidth[tiers] / factor
    moved = np.where(sources == targets, 0.0, size_bytes)
    return Cost(
        fabric.hop_latency(sources, targets, tiers) + np.maximum(own, shared),
        Traffic(lambda: (fabric.by_tier(tiers, moved, sources), load)),
    )
