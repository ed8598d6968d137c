"""The move region: which ranks move together, and where they may be.

Units, each a co-location set, move between domains of one tier: the base tier, the
largest inside which a hop costs the least, or one further out where no domain holds two
units. Shapes: R ranks, U units, D domains of the tier, A axes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray, IntArray, by_appearance
from placer.solve.problem.axes import DENSE, EXPERT
from placer.solve.tree.base import base_tier
from placer.solve.tree.capacity import ancestor_of_domain, whole_sets
from placer.solve.tree.fill import (
    fill_domains,
    fullest_first,
    tree_order,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from placer.job.model import Job
    from placer.solve.problem.compiled import Problem
    from placer.topology.machine import Machine


@dataclass(frozen=True, eq=False)
class MoveRegion:
    """Units of one size and the domains that hold them.

    Attributes
    ----------
    tier : int
        Tier of the domains.
    label : ndarray, shape (R,)
        Unit of every rank, from 0 up.
    inner : ndarray, shape (tiers below, R)
        Co-location sets inside the units, outermost last.
    capacities : sequence of ndarray
        Ranks each domain of every tier can hold in whole units.
    enclosure : ndarray, shape (D,)
        Units may only move between domains with the same number here.
    """

    job: Job
    topology: Machine
    tier: int
    label: IntArray
    inner: IntArray
    capacities: Sequence[IntArray]
    enclosure: IntArray

    @property
    def units(self) -> int:
        """Number of units."""
        return int(self.label.max()) + 1

    @property
    def size(self) -> int:
        """Ranks of a unit."""
        return len(self.label) // self.units

    @property
    def capacity(self) -> IntArray:
        """Ranks each domain can hold; shape (D,)."""
        return self.capacities[self.tier]

    @property
    def coordinate(self) -> IntArray:
        """Of each unit along every axis in which units differ; shape (A, U)."""
        first = np.unique(self.label, return_index=True)[1]
        axes = EXPERT if self.job.parallelism.ep > 1 else DENSE
        of_unit = [self.job.parallelism.coordinates[axis][first] for axis in axes]
        varying = [values for values in of_unit if values.max() > 0]
        return np.array(varying, dtype=np.int64).reshape(-1, self.units)

    @property
    def distance(self) -> FloatArray:
        """Between GPUs of two domains; inside one, between units; shape (D, D)."""
        tiers, count = self.topology.tiers, len(self.capacity)
        found = np.full((count, count), tiers[self.tier].distance)
        for t in range(self.tier, len(tiers) - 1):
            domain = ancestor_of_domain(self.topology, self.tier, t)
            increment = tiers[t + 1].distance - tiers[t].distance
            found += increment * (domain[:, None] != domain[None, :])
        return found

    def of_contents(self, held: IntArray) -> MoveRegion:
        """The region whose units are what domains hold, each whole; shape (U,).

        They go to domains with as much room as they come from, one to each.
        """
        label, room = held[self.label], self.capacity
        size = len(label) // (int(held.max()) + 1)
        kinds = np.stack((self.enclosure, room))
        enclosure = np.unique(kinds, axis=1, return_inverse=True)[1].reshape(-1)
        capacities = [np.where(c > 0, size, 0) for c in self.capacities]
        return replace(self, label=label, capacities=capacities, enclosure=enclosure)

    def homes(self, placements: Iterable[IntArray]) -> list[IntArray]:
        """Domain of every unit in each placement that can be had here; shape (U,).

        Placements that split a unit or fill a domain too full are left out.
        """
        found = []
        for gpu_of_rank in placements:
            domain = self.topology.domain_of_gpu[self.tier][gpu_of_rank]
            home = np.empty(self.units, dtype=np.int64)
            home[self.label] = domain
            held = np.bincount(home, minlength=len(self.capacity)) * self.size
            if (home[self.label] == domain).all() and (held <= self.capacity).all():
                found.append(home)
        return found

    def gpu_of_rank(self, home: IntArray) -> IntArray:
        """GPU of every rank when each unit is in the given domain; shape (R,)."""
        sequence = np.lexsort((*self.inner, self.label))
        capacities = self.capacities[: self.tier + 1]
        node_of_rank = fill_domains(
            self.topology, capacities, home[self.label], sequence
        )
        return self.topology.gpus_on(node_of_rank)

    def along_the_tree(self) -> Iterator[IntArray]:
        """Domain of each unit when units lie along the tree, axis by axis; shape (U,).

        Every order of the axes, with the domains of each tier in their order and the
        fullest first.
        """
        room = self.capacity // self.size
        if room.sum() < self.units:
            return
        fullest = fullest_first(self.topology, self.capacities[0])
        for nodes in (tree_order(self.topology), fullest):
            along = self.topology.domain_of_node[self.tier][nodes]
            domains = by_appearance(along)[0]
            for order in permutations(self.coordinate):
                sequence = np.lexsort(order) if order else np.arange(self.units)
                home = np.empty(self.units, dtype=np.int64)
                home[sequence] = np.repeat(domains, room[domains])[: self.units]
                yield home


def flow_region(problem: Problem, machine: Machine) -> MoveRegion | None:
    """Where single co-location sets move.

    None where nothing can move: one domain holds them all, rules leave each where it
    is, or they are not all alike.

    Parameters
    ----------
    machine : Machine
        That of the problem, with distances of its own.
    """
    innermost = base_tier(machine)
    label = problem.colocation.label[innermost]
    topology, colocation = problem.machine, problem.colocation
    if colocation.uniform_sizes() is None:
        return None
    sizes = [int(colocation.sizes(t)[0]) for t in range(innermost)]
    last = len(topology.tiers) - 1
    size = len(label) // (int(label.max()) + 1)
    capacities = whole_sets(
        topology, problem.capacity, [*sizes, *[size] * (last + 1 - innermost)]
    )
    tier = innermost
    while tier < last and capacities[tier].max() <= size:
        tier += 1
    outer = _enclosing_tier(problem, label, innermost)
    if tier >= min(last, outer):
        return None
    enclosure = ancestor_of_domain(topology, tier, outer)
    inner = colocation.label[:innermost]
    return MoveRegion(problem.job, machine, tier, label, inner, capacities, enclosure)


def _enclosing_tier(problem: Problem, label: IntArray, tier: int) -> int:
    """First tier from ``tier`` on whose sets are more than units; else the last."""
    rows = problem.colocation.label
    for t in range(tier, len(rows) - 1):
        unit_of_set = np.empty(int(rows[t].max()) + 1, dtype=np.int64)
        unit_of_set[rows[t]] = label
        if (unit_of_set[rows[t]] != label).any():
            return t
    return len(rows) - 1
