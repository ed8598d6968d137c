"""Closed forms of the collectives, as NCCL runs them.

Symbols: n members in N scale-up domains, q members in the domain that has the fewest, S
bytes of the full buffer. Sources: NCCL 5067397c, ``src/graph/tuning.cc`` (steps and
latencies of each algorithm), ``src/graph/trees.cc``; what the forms leave out of NCCL's
own time model is said in ``docs/cost-model.md``. Every form gives the seconds that grow
with the buffer and those that do not, one entry a group; g groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray

# Of a buffer in bytes: one for all groups, or one for each.
Sizes = float | FloatArray

# Going through a reducing switch takes so many NVLink steps (NCCL: 25 us where a ring's
# step takes 3.4).
NVLS_STEPS = 25 / 3.4


class Switch(NamedTuple):
    """How NCCL uses an NVLink switch that reduces."""

    efficiency: float  # buffer a second, in units of the rate of one GPU's NVLink
    # The same of what goes in and out of a domain, where NICs are no limit.
    between: float
    # Each a block of threads that moves its part of the buffer chunk by chunk.
    channels: int


# Efficiency as measured on one domain: 274 of 369 GB/s on 8 H100 (479 GB/s of bus
# bandwidth), 425 to 430 of 720 on 72 GB200 (839 to 847). Between domains the same
# threads are at work; on H100 NCCL has 45.5 GB/s for each of 8 channels, of 371. Its
# channels are NVLS_NCHANNELS_SM90 and _SM100.
NODE_SWITCH, RACK_SWITCH = Switch(0.74, 0.98, 16), Switch(0.60, 0.60, 32)
NVLS_HEADS = 32  # members among whom NCCL divides the buffer, at most
# NCCL cuts a buffer into chunks of so many bytes, of half as many over four domains or
# more; small buffers into smaller ones, so that each is cut into several: (chunk, how
# often all chunks together must fit).
NVLS_CHUNK = 131072
NVLS_CUTS = ((65536, 64), (32768, 8), (16384, 2))
NVLS_TREE_CUTS = ((65536, 4), (32768, 1))


class Route(NamedTuple):
    """What groups of one size find on their way."""

    members: int  # n
    # domains and fewest, (g,): N, and the members in the domain that has the fewest
    # (q).
    domains: IntArray
    fewest: IntArray
    in_racks: bool  # whether an NVLink switch joins more GPUs than those of one node
    # inner_pace and outer_pace, (g,), s/B: of the slowest hop inside a domain and
    # between two, all NICs of the group and all groups together; 0 where the group has
    # no such hop.
    inner_pace: FloatArray
    outer_pace: FloatArray
    # inner_latency and outer_latency, (g,), s: mean over such hops.
    inner_latency: FloatArray
    outer_latency: FloatArray

    def rows(self, chosen: BoolArray) -> Route:
        """Some of the groups."""
        return Route(
            self.members,
            self.domains[chosen],
            self.fewest[chosen],
            self.in_racks,
            self.inner_pace[chosen],
            self.outer_pace[chosen],
            self.inner_latency[chosen],
            self.outer_latency[chosen],
        )


class Seconds(NamedTuple):
    """Seconds of a collective: what grows with the buffer, and the rest; shape (g,)."""

    transfer: FloatArray
    latency: FloatArray

    @property
    def total(self) -> FloatArray:
        """Both together."""
        return self.transfer + self.latency

    def times(self, rounds: float) -> Seconds:
        """So many rounds of it."""
        return Seconds(self.transfer * rounds, self.latency * rounds)


def ring_pass(route: Route, size_bytes: Sizes) -> Seconds:
    """One reduce-scatter or all-gather around a ring.

    Every edge carries ``(n-1)/n S`` (Patarasuk and Yuan 2009, JPDC 69(2)); of ``n-1``
    steps ``N-1`` go between domains.
    """
    n, domains = route.members, route.domains
    pace = np.maximum(route.inner_pace, route.outer_pace)
    return Seconds(
        (n - 1) / n * size_bytes * pace,
        (domains - 1) * route.outer_latency + (n - domains) * route.inner_latency,
    )


def ring_all_reduce(route: Route, size_bytes: Sizes) -> Seconds:
    """An all-reduce around a ring: reduce-scatter and all-gather.

    ``2 (n-1)/n S`` bytes an edge, ``2 (n-1)`` steps.
    """
    return ring_pass(route, size_bytes).times(2.0)


def tree_buffers(domains: IntArray) -> FloatArray:
    """Buffers that go out of the busiest domain of a double tree, and into it.

    Each tree carries half the buffer up and down. A domain with two children in one
    tree is a leaf of the other: two buffers; with three domains it has one child, with
    two it has no parent there.
    """
    return np.minimum(domains / 2, 2.0)


def tree_all_reduce(route: Route, size_bytes: Sizes) -> Seconds:
    """An all-reduce over a double binary tree of domains, a chain inside each.

    A domain is an inner vertex of one tree and a leaf of the other, each tree reducing
    and broadcasting half the buffer, pipelined; ``2 ((n/N - 1) inner + log2 N outer)``
    of latency (Sanders, Speck and Traeff 2009, *Two-tree algorithms*, Parallel
    Computing 35(12)).
    """
    return _tree_with(tree_buffers(route.domains), route, size_bytes)


def tuned_tree_all_reduce(route: Route, size_bytes: Sizes) -> Seconds:
    """A tree as NCCL's tuner sees it, where nobody asks for one.

    Over three domains a tree sends one and a half buffers, a ring more. The tuner
    halves a tree's bandwidth over any number of domains beyond two (``tuning.cc``), so
    it takes the ring there but for short buffers (NVIDIA/nccl issue 1801).
    """
    buffers = np.where(route.domains > 2, 2.0, tree_buffers(route.domains))
    return _tree_with(buffers, route, size_bytes)


def _tree_with(buffers: FloatArray, route: Route, size_bytes: Sizes) -> Seconds:
    between = buffers * route.outer_pace
    chain = (route.members / route.domains - 1) * route.inner_latency
    levels = np.log2(route.domains) * route.outer_latency
    return Seconds(
        size_bytes * np.maximum(2.0 * route.inner_pace, between), 2.0 * (chain + levels)
    )


def nvls_all_reduce(route: Route, size_bytes: Sizes) -> Seconds:
    """An all-reduce that the NVLink switch computes, and trees between domains.

    Every member's buffer goes through the switch once (Klenk et al. 2020, *An
    in-network architecture for accelerating shared-memory multiprocessor collectives*,
    ISCA), at the share of NVLink's rate that the threads in charge reach. Between
    domains it goes as in a tree (NCCL's NVLSTree), through the same threads: the rate
    does not rise with the NICs. The first chunks pass all stages before the last can:
    into the switch and out of it, up the tree and down.
    """
    switch = RACK_SWITCH if route.in_racks else NODE_SWITCH
    inside = route.inner_pace / switch.efficiency
    between = np.maximum(route.inner_pace / switch.between, route.outer_pace)
    pace = np.maximum(inside, tree_buffers(route.domains) * between)
    stages = 2.0 + 2.0 * np.ceil(np.log2(route.domains))
    first = np.minimum(_in_flight(route, switch, size_bytes), size_bytes)
    levels = np.log2(route.domains) * route.outer_latency
    return Seconds(
        (size_bytes + stages * first) * pace,
        NVLS_STEPS * route.inner_latency + 2.0 * levels,
    )


def _in_flight(route: Route, switch: Switch, size_bytes: Sizes) -> FloatArray:
    """Bytes of one chunk on every channel of every head; shape (g,)."""
    at_once = switch.channels * np.minimum(route.fewest, NVLS_HEADS)
    trees = route.domains > 1
    chunk = np.where(route.domains >= 4, NVLS_CHUNK // 2, NVLS_CHUNK)
    for cuts, which in ((NVLS_CUTS, ~trees), (NVLS_TREE_CUTS, trees)):
        for smaller, times in cuts:
            too_large = which & (size_bytes < times * at_once * chunk)
            chunk = np.where(too_large, np.minimum(chunk, smaller), chunk)
    return np.asarray(at_once * chunk, dtype=np.float64)


def runs_all_reduce(name: str, route: Route) -> BoolArray:
    """Whether NCCL would consider an algorithm for each group; shape (g,).

    A switch reduces for three members or more. Where it joins a rack NCCL's tuner takes
    it whatever else could run: it expects more of it than it gives.
    """
    switched = route.fewest > 2
    return switched if name == "nvls" else ~(switched & route.in_racks)


Form = Callable[[Route, Sizes], Seconds]

ALL_REDUCES: Mapping[str, Form] = {
    "ring": ring_all_reduce,
    "tree": tree_all_reduce,
    "nvls": nvls_all_reduce,
}
# What NCCL's tuner chooses from (`runs_all_reduce`), as it sees them.
TUNED_ALL_REDUCES: Mapping[str, Form] = {
    "ring": ring_all_reduce,
    "tree": tuned_tree_all_reduce,
    "nvls": nvls_all_reduce,
}


def all_reduces(algorithm: str) -> Mapping[str, Form]:
    """What may be run for an algorithm that a job asks for, or for ``auto``."""
    if algorithm == "auto":
        return TUNED_ALL_REDUCES
    return {algorithm: ALL_REDUCES[algorithm]}


def share_sent(places: IntArray, top_k: int) -> FloatArray:
    """Share of a token's ``top_k`` copies that is sent when each place gets one.

    ``P (1 - (1 - 1/P)^k) / k`` for experts drawn uniformly over P places, scale-up
    domains or members of a group.
    """
    found: FloatArray = places * (1.0 - (1.0 - 1.0 / places) ** top_k) / top_k
    return found
