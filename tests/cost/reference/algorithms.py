"""All-reduces by every algorithm, and the one that NCCL would take.

Each algorithm is followed hop by hop: its flows are listed, links add up what crosses
them, and the slowest hop sets the pace.
"""

from math import log2

from tests.cost.reference.collectives import by_island, edges, gathers, mean


def all_reduces(machine, groups, size, algorithm):
    """Seconds of one all-reduce in each group of GPUs, all groups at once."""
    if len(groups[0]) == 1:
        return [0.0] * len(groups)
    ring = [2 * time for time in gathers(machine, groups, size)]
    ways = [_Way(machine, group) for group in groups]
    asked = ([getattr(way, key) for way in ways] for key in ("hops", "fewest", "alone"))
    for way, pace in zip(ways, machine.fair_paces(*asked), strict=True):
        way.outer = pace / (2 * way.buffers) if way.hops else 0.0
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


class _Way:
    """Seconds a byte and latency of a group's hops, inside islands and between.

    Inside they are those of a ring, between islands those of two trees, each of which
    carries half a buffer, on one NIC for each of the fewest members.
    """

    def __init__(self, machine, group):
        self.islands = by_island(machine, group)
        self.members, self.fewest = len(group), min(map(len, self.islands))
        slow = min(machine.factor[gpu] for gpu in group)
        ring = edges([gpu for island in self.islands for gpu in island])
        tiers = [machine.tier(*hop) for hop in ring]
        tiers = [tier for tier in tiers if tier < machine.nvlink_tiers]
        rates = [machine.rate(tier) * slow for tier in tiers]
        self.inner = max((1 / rate for rate in rates), default=0.0)
        self.inner_latency = mean([machine.latency(tier) for tier in tiers])
        trees, heads = _two_trees(len(self.islands)), [one[0] for one in self.islands]
        # Buffers out of the busiest island, counted edge by edge.
        self.buffers = max(
            sum(at in edge for edge in trees) / 2 for at in range(len(heads))
        )
        up = [(heads[low], heads[high]) for low, high in trees]
        self.hops = [*up, *((high, low) for low, high in up)]
        # A NIC carries all that its island sends.
        rates = [machine.rate(machine.tier(*hop)) * slow for hop in self.hops]
        self.alone = max((2 * self.buffers / rate for rate in rates), default=0.0)
        self.outer_latency = mean([machine.hop_latency(*hop) for hop in self.hops])


def _tree(way, size, buffers):
    count = len(way.islands)
    latency = (way.members / count - 1) * way.inner_latency
    latency += log2(count) * way.outer_latency
    return size * max(2 * way.inner, buffers * way.outer) + 2 * latency


def _switch(machine, way, size):
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


def _two_trees(count):
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
