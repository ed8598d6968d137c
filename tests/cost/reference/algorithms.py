"""Gathers and all-reduces by every algorithm, and the one that NCCL would take.

Each algorithm is followed hop by hop: its flows are listed, links add up what crosses
them, and the slowest hop sets the pace.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import TYPE_CHECKING

from tests.cost.reference.collectives import (
    by_island,
    edges,
    mean,
    rings,
)

if TYPE_CHECKING:
    from tests.cost.reference.machine import Machine

Groups = list[list[int]]


def gathers(machine: Machine, groups: Groups, size: float) -> list[float]:
    """Seconds of one reduce-scatter or all-gather in each group of GPUs."""
    return [time.total for time in rings(machine, groups, size)]


def all_reduces(
    machine: Machine, groups: Groups, size: float, algorithm: str
) -> list[float]:
    """Seconds of one all-reduce in each group of GPUs, all groups at once."""
    if len(groups[0]) == 1:
        return [0.0] * len(groups)
    ring = [2 * time.total for time in rings(machine, groups, size)]
    ways = _tree_ways(machine, groups)
    tree = [_tree(way, size, way.buffers) for way in ways]
    switch = [_switch(machine, way, size) for way in ways]
    if algorithm != "auto":
        return {"ring": ring, "tree": tree, "nvls": switch}[algorithm]
    # NCCL's tuner counts a tree over three islands as one over more.
    for g, way in enumerate(ways):
        if len(way.islands) == 3:
            tree[g] = _tree(way, size, 2.0)
    found = []
    for way, *times in zip(ways, ring, tree, switch, strict=True):
        reduces = way.fewest > 2
        if not reduces:
            times = times[:2]
        elif machine.in_racks:
            times = times[2:]
        found.append(min(times))
    return found


@dataclass
class _Way:
    """Seconds a byte and latency of a group's hops, inside islands and between."""

    islands: list[list[int]]
    inner: float = 0.0
    inner_latency: float = 0.0
    outer: float = 0.0
    outer_latency: float = 0.0

    @property
    def members(self) -> int:
        return sum(len(island) for island in self.islands)

    @property
    def fewest(self) -> int:
        return min(len(island) for island in self.islands)

    @property
    def buffers(self) -> float:
        """Buffers out of the busiest island of two trees, counted edge by edge."""
        out = [0.0] * len(self.islands)
        for low, high in _two_trees(len(self.islands)):
            out[low] += 0.5
            out[high] += 0.5
        return max(out)


def _tree(way: _Way, size: float, buffers: float) -> float:
    count = len(way.islands)
    latency = (way.members / count - 1) * way.inner_latency
    latency += log2(count) * way.outer_latency
    return size * max(2 * way.inner, buffers * way.outer) + 2 * latency


def _switch(machine: Machine, way: _Way, size: float) -> float:
    efficiency, between, channels = 0.74, 0.98, 16
    if machine.in_racks:
        efficiency, between, channels = 0.60, 0.60, 32
    count = len(way.islands)
    pace = way.buffers * max(way.inner / between, way.outer)
    pace = max(way.inner / efficiency, pace)
    at_once = channels * min(32, way.fewest)
    chunk = 131072 if count < 4 else 65536
    if count == 1:
        limits = [(65536, 64), (32768, 8), (16384, 2)]
    else:
        limits = [(65536, 4), (32768, 1)]
    for smaller, times in limits:
        if size < times * at_once * chunk and smaller < chunk:
            chunk = smaller
    levels = 0
    while 2**levels < count:
        levels += 1
    waiting = (2 + 2 * levels) * min(at_once * chunk, size) * pace
    latency = 25 / 3.4 * way.inner_latency + 2 * log2(count) * way.outer_latency
    return size * pace + waiting + latency


def _inside(machine: Machine, group: list[int]) -> _Way:
    """A group's way, with the hops of its ring inside islands."""
    way = _Way(by_island(machine, group))
    slow = min(machine.factor[gpu] for gpu in group)
    latencies = []
    for one, other in edges([gpu for island in way.islands for gpu in island]):
        t = machine.tier(one, other)
        if t < machine.nvlink_tiers:
            way.inner = max(way.inner, 1 / (machine.rate(t) * slow))
            latencies.append(machine.latency(t))
    way.inner_latency = mean(latencies)
    return way


def _tree_ways(machine: Machine, groups: Groups) -> list[_Way]:
    """Ways whose hops between islands are those of two trees."""
    ways = [_inside(machine, group) for group in groups]
    hops = []
    for way in ways:
        heads = [island[0] for island in way.islands]
        pairs = []
        for low, high in _two_trees(len(heads)):
            pairs.append((heads[low], heads[high]))
            pairs.append((heads[high], heads[low]))
        hops.append(pairs)
    # A hop carries half a buffer, and a NIC all that its island sends.
    buffers = [2 * way.buffers for way in ways]
    _set_outer(machine, ways, hops, buffers)
    return ways


def _set_outer(
    machine: Machine,
    ways: list[_Way],
    hops: list[list[tuple[int, int]]],
    on_nic: list[float],
) -> None:
    """Pace between islands, one NIC for each of the fewest.

    ``on_nic``: hops whose bytes the same NICs carry.
    """
    alone, nics = [], [way.fewest for way in ways]
    for way, flows, many in zip(ways, hops, on_nic, strict=True):
        slow = min(machine.factor[gpu] for island in way.islands for gpu in island)
        one = [machine.rate(machine.tier(*flow)) * slow for flow in flows]
        alone.append(max((many / rate for rate in one), default=0.0))
    paces = machine.fair_paces(hops, nics, alone)
    for way, flows, pace, many in zip(ways, hops, paces, on_nic, strict=True):
        way.outer = pace / many if many else 0.0
        found = [machine.hop_latency(one, other) for one, other in flows]
        way.outer_latency = mean(found)


def _two_trees(count: int) -> list[tuple[int, int]]:
    """(child, parent) of both trees over 0 .. count-1."""
    first = []
    for vertex in range(1, count):
        bit = 1
        while not vertex & bit:
            bit *= 2
        parent = vertex - bit
        if not parent & (2 * bit):
            parent += 2 * bit
        if parent >= count:
            parent = vertex - bit
        first.append((vertex, parent))
    if count % 2:
        second = [((low + 1) % count, (high + 1) % count) for low, high in first]
    else:
        second = [(count - 1 - low, count - 1 - high) for low, high in first]
    return first + second
