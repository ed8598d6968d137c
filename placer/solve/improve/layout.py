"""Which ranks move together, where they may be, and a placement from that.

A layout puts units into domains of one tier. The tier is the largest inside which a hop
costs the least, or one further out where no domain holds two units. A unit is a part
that the requirements tie together, or larger: axes that the best placement so far keeps
whole, heaviest first, stay whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.placement.placement import Placement
from placer.solve.problem.colocation import join
from placer.solve.tree.capacity import whole_parts
from placer.solve.tree.fill import share_down

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.job.edges import AxisEdges
    from placer.solve.problem.colocation import Parts
    from placer.solve.problem.compiled import Problem
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Layout:
    """Units of one size and the domains that hold them.

    Attributes
    ----------
    tier : int
        Tier of the domains.
    label : ndarray, shape (R,)
        Unit of every rank, from 0 up.
    inner : ndarray, shape (tiers below, R)
        Parts inside the units, outermost last.
    size : int, ranks
        Of a unit.
    takes : sequence of ndarray
        Ranks each domain of every tier can hold in whole units.
    distance : ndarray, shape (D, D)
        Between GPUs of two domains; inside one, between units.
    fence : ndarray, shape (D,)
        Units may only move between domains with the same number here.
    """

    topology: Topology
    tier: int
    label: IntArray
    inner: IntArray
    size: int
    takes: Sequence[IntArray]
    distance: FloatArray
    fence: IntArray

    @property
    def room(self) -> IntArray:
        """Ranks each domain can hold; shape (D,)."""
        return self.takes[self.tier]

    @property
    def units(self) -> int:
        """Number of units."""
        return len(self.label) // self.size

    def homes(self, gpu_of_rank: IntArray) -> IntArray | None:
        """Domain of every unit, None where one is split or a domain is too full."""
        domain = self.topology.domain_of_gpu[self.tier][gpu_of_rank]
        home = np.empty(self.units, dtype=np.int64)
        home[self.label] = domain
        held = np.bincount(home, minlength=len(self.room)) * self.size
        whole = (home[self.label] == domain).all()
        return home if whole and (held <= self.room).all() else None

    def gpu_of_rank(self, home: IntArray) -> IntArray:
        """GPU of every rank when each unit is in the given domain; shape (R,)."""
        held = np.bincount(home, minlength=len(self.room)) * self.size
        amounts = share_down(self.topology, self.takes[: self.tier + 1], held)
        nodes = np.lexsort(self.topology.domain_of_node[: self.tier + 1])
        sequence = np.lexsort((*self.inner, self.label, home[self.label]))
        node_of_rank = np.empty(len(self.label), dtype=np.int64)
        node_of_rank[sequence] = np.repeat(nodes, amounts[nodes])
        return Placement.on_nodes(self.topology, node_of_rank).gpu_of_rank


def layout_of(
    problem: Problem, axes: Sequence[AxisEdges], gpu_of_rank: IntArray
) -> Layout | None:
    """The layout in which a placement is improved, None where nothing can be.

    Parameters
    ----------
    problem : Problem
    axes : sequence of AxisEdges
    gpu_of_rank : ndarray, shape (R,)
        The best placement so far.
    """
    topology, parts = problem.machine, problem.parts
    if parts.uniform_sizes() is None:
        return None
    innermost = nearest_tier(topology)
    label = _whole_axes(
        parts.label[innermost], axes, topology.domain_of_gpu[innermost][gpu_of_rank]
    )
    layout = layout_with(problem, label, innermost)
    if layout is None or layout.tier >= _fence_tier(parts, label, innermost):
        return None
    return layout


def layout_with(
    problem: Problem, label: IntArray, innermost: int, *, outward: bool = True
) -> Layout | None:
    """The layout of given units, None where one domain holds them all.

    Parameters
    ----------
    problem : Problem
        Its parts are all alike.
    label : ndarray, shape (R,)
        Unit of every rank, from 0 up; units are equally large.
    innermost : int
        Smallest tier of which a domain can hold a unit.
    outward : bool
        Whether domains of a larger tier are taken while no domain holds two units.
    """
    topology, parts = problem.machine, problem.parts
    sizes = [int(parts.sizes(t)[0]) for t in range(innermost)]
    last = len(topology.tiers) - 1
    size = len(label) // (int(label.max()) + 1)
    takes = whole_parts(
        topology, problem.capacity, [*sizes, *[size] * (last + 1 - innermost)]
    )
    tier = innermost
    while outward and tier < last and takes[tier].max() <= size:
        tier += 1
    if tier >= last:
        return None
    fence_tier = max(tier, _fence_tier(parts, label, innermost))
    fence = _domains_at(topology, tier, fence_tier)
    distance = _distances(topology, tier)
    inner = parts.label[:innermost]
    return Layout(topology, tier, label, inner, size, takes, distance, fence)


def nearest_tier(topology: Topology) -> int:
    """Largest tier, the last aside, inside which a hop costs the least."""
    distance = [tier.distance for tier in topology.tiers]
    tier = 0
    while tier + 2 < len(distance) and distance[tier + 1] == distance[0]:
        tier += 1
    return tier


def _whole_axes(label: IntArray, axes: Sequence[AxisEdges], home: IntArray) -> IntArray:
    """Parts joined along the axes, heaviest first, up to the first that is cut.

    Only the parts when what is joined is not all of one size.
    """
    joined = label
    for axis in sorted(axes, key=lambda axis: -axis.weight):
        ends = home[axis.edges]
        if (ends[:, 0] != ends[:, 1]).any():
            break
        joined = join(joined, axis.edges)
    joined = np.unique(joined, return_inverse=True)[1]
    return joined if len(np.unique(np.bincount(joined))) == 1 else label


def _fence_tier(parts: Parts, label: IntArray, tier: int) -> int:
    """First tier from ``tier`` on whose parts are more than units; else the last."""
    last = len(parts.label) - 1
    for t in range(tier, last):
        unit_of_part = np.empty(int(parts.label[t].max()) + 1, dtype=np.int64)
        unit_of_part[parts.label[t]] = label
        if (unit_of_part[parts.label[t]] != label).any():
            return t
    return last


def _domains_at(topology: Topology, tier: int, outer: int) -> IntArray:
    """Domain of tier ``outer`` that holds each domain of ``tier``."""
    found = np.empty(len(topology.domain_names[tier]), dtype=np.int64)
    found[topology.domain_of_node[tier]] = topology.domain_of_node[outer]
    return found


def _distances(topology: Topology, tier: int) -> FloatArray:
    """Distance between domains of a tier; shape (D, D)."""
    count = len(topology.domain_names[tier])
    found = np.full((count, count), topology.tiers[tier].distance)
    for t in range(tier, len(topology.tiers) - 1):
        domain = _domains_at(topology, tier, t)
        step = topology.tiers[t + 1].distance - topology.tiers[t].distance
        found += step * (domain[:, None] != domain[None, :])
    return found
