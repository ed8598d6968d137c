"""Trees between scale-up domains.

NCCL 5067397c, ``src/graph/trees.cc``: domains count in ring order; a vertex hangs below
the one that has its lowest set bit moved up by one, or, past the end, cleared. The
second tree is the first with its vertices shifted by one (odd counts) or mirrored
(even). Shapes: g groups, e edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.collectives import Route, tree_buffers
from placer.cost.fabric import Fabric
from placer.cost.fair_share import Crossings, Hops, fair_pace
from placer.cost.links import LinkLoad, flow_load

if TYPE_CHECKING:
    from placer.cost.rings import Rings


@dataclass(frozen=True, eq=False)
class Edges:
    """Flows of some groups: along their rings, or between domains."""

    fabric: Fabric  # of which nothing is asked but where GPUs lie
    # group, sources and targets, (e,): group, and GPUs at both ends, of each flow.
    group: IntArray
    sources: IntArray
    targets: IntArray
    tiers: IntArray  # (e,): tier of each flow
    share: FloatArray  # (e,): bytes on the flow for each byte that is counted

    @cached_property
    def load(self) -> LinkLoad:
        """Load of one such byte in every group."""
        ends = self.sources, self.targets
        return flow_load(self.fabric, *ends, self.tiers, self.share)

    @cached_property
    def bytes_by_tier(self) -> FloatArray:
        """Bytes sent for each of them; shape (T,)."""
        return self.fabric.by_tier(self.tiers, self.share, self.sources)

    @cached_property
    def _uplinks(self) -> list[tuple[int, Hops]]:
        """Hops over uplinks of every tier that has any, both directions."""
        found = []
        by_group = np.argsort(self.group, kind="stable")
        for t in self.fabric.scale_out_tiers:
            leaves = by_group[self.tiers[by_group] >= t]
            child = self.fabric.child_domain_of_gpu(t)
            found += [
                (t, Hops(self.group[leaves], child[ends]))
                for ends in (self.sources[leaves], self.targets[leaves])
            ]
        return found

    @cached_property
    def _links(self) -> list[tuple[int, Hops]]:
        """Hops over links of every tier that has some."""
        found = []
        by_group = np.argsort(self.group, kind="stable")
        for t in self.fabric.links:
            link = self.fabric.link_of(t, self.sources, self.targets)
            on = by_group[link[by_group] >= 0]
            found.append((t, Hops(self.group[on], link[on])))
        return found

    def crossings(self, fabric: Fabric) -> Crossings:
        """Where the flows share uplinks and links, both directions of every tier."""
        shared, links = fabric.shared_uplinks, fabric.links
        uplinks = [(hops, shared[t]) for t, hops in self._uplinks if t in shared]
        return uplinks + [(hops, links[t].capacity) for t, hops in self._links]


def double_tree(rings: Rings) -> Edges:
    """Both trees of every group, each edge both ways: half the buffer on every flow."""
    first, position = _domains(rings)
    group = np.repeat(np.arange(len(first)), rings.domains)
    count = rings.domains[group]
    found = []
    for parent in (parent_in_tree(position, count), _parent_in_second(position, count)):
        hangs = parent >= 0
        child_gpu = first[group[hangs], position[hangs]]
        found.append((group[hangs], child_gpu, first[group[hangs], parent[hangs]]))
    of_edge, low, high = (np.concatenate(parts) for parts in zip(*found, strict=True))
    tiers = rings.fabric.tier_between(low, high)
    return Edges(
        rings.fabric,
        np.concatenate((of_edge, of_edge)),
        np.concatenate((low, high)),
        np.concatenate((high, low)),
        np.concatenate((tiers, tiers)),
        np.full(2 * len(low), 0.5),
    )


def tree_route(rings: Rings, fabric: Fabric, ring: Route) -> Route:
    """What a double tree finds on its way, given what the ring does.

    Its pace is that of the buffers that go in and out of a domain (`tree_buffers`);
    each edge carries half a buffer. Alone a byte takes as long as on one NIC at the
    slowest tier.
    """
    edges, count = rings.tree, len(rings.gpus)
    halves = 2 * tree_buffers(rings.domains)
    seconds = np.zeros(count)
    np.maximum.at(seconds, edges.group, 1 / fabric.bandwidth[edges.tiers])
    alone = seconds / rings.factor * halves
    pace = fair_pace(edges.crossings(fabric), rings.shared, alone) / halves
    latency = fabric.hop_latency(edges.sources, edges.targets, edges.tiers)
    total = np.bincount(edges.group, latency, count)
    number = np.maximum(np.bincount(edges.group, minlength=count), 1)
    return ring._replace(outer_pace=pace, outer_latency=total / number)


def _domains(rings: Rings) -> tuple[IntArray, IntArray]:
    """First GPU of each group's domains (g, most domains), and their positions."""
    outer = rings.outer
    starts = np.ones(outer.shape, dtype=bool)
    starts[:, 1:] = outer[:, :-1]
    column = np.cumsum(starts, axis=1) - 1
    first = np.zeros((len(outer), int(rings.domains.max())), dtype=np.int64)
    row = np.broadcast_to(np.arange(len(outer))[:, None], outer.shape)
    first[row[starts], column[starts]] = rings.gpus[starts]
    return first, column[starts]


def parent_in_tree(vertex: IntArray, count: IntArray) -> IntArray:
    """Parent of each vertex among ``count``; -1 for the root, vertex 0."""
    lowest = vertex & -vertex
    cleared = vertex ^ lowest
    up = cleared | (lowest << 1)
    return np.where(vertex == 0, -1, np.where(up < count, up, cleared))


def _parent_in_second(vertex: IntArray, count: IntArray) -> IntArray:
    """Parent in the second tree: shifted by one, or mirrored for even counts."""
    odd = count % 2 == 1
    parent = parent_in_tree(
        np.where(odd, (vertex - 1) % count, count - 1 - vertex), count
    )
    back = np.where(odd, (parent + 1) % count, count - 1 - parent)
    return np.where(parent < 0, -1, back)
