"""The move region: which ranks move together, and where they may be.

Units move between domains of one tier, the largest whose links are as
fast as those of a node. It is one further out where no domain holds two units. A unit
is a co-location set, or larger: groups that the best placement keeps whole, heaviest
first, stay whole. Shapes: R ranks, U units, D domains of the tier, A axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray, by_appearance
from placer.solve.problem.axes import DENSE, EXPERT, KEPT_WHOLE
from placer.solve.problem.colocation import join
from placer.solve.tree.base import linked_tier
from placer.solve.tree.capacity import whole_sets
from placer.solve.tree.fill import (
    choose_children,
    fill_domains,
    fullest_first,
    tree_order,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from placer.job.model import Job
    from placer.solve.problem.compiled import Problem
    from placer.topology.machine import Machine

# Domain of each unit in sequence, given units that fit each domain, units, and how many
# values the outermost axis has.
Filling = Callable[[IntArray, int, int], Iterator[IntArray]]


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
    """

    job: Job
    topology: Machine
    tier: int
    label: IntArray
    inner: IntArray
    capacities: Sequence[IntArray]

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

    def along_the_tree(self, filling: Filling) -> Iterator[IntArray]:
        """Domain of each unit when units lie along the tree, axis by axis; shape (U,).

        Every order of the axes, in every way that ``filling`` knows, with the domains
        of each tier in their order and the fullest first.
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
                values = int(order[-1].max()) + 1 if order else 1
                for share in filling(room[domains], self.units, values):
                    home = np.empty(self.units, dtype=np.int64)
                    home[sequence] = domains[share]
                    yield home


def by_value(room: IntArray, units: int, values: int) -> Iterator[IntArray]:
    """The fewest domains; all equally full; some for each value of the axis."""
    places = np.arange(len(room))
    yield np.repeat(places, choose_children(room, units))
    yield np.repeat(places, _in_proportion(room, units))
    if units % values == 0:
        shares = _of_their_own(room, units // values, values)
        yield np.concatenate([np.repeat(places, share) for share in shares])


def _in_proportion(room: IntArray, units: int) -> IntArray:
    """Units each domain gets when all are equally full, up to rounding."""
    exact = room * units / room.sum()
    share: IntArray = np.floor(exact).astype(np.int64)
    missing = units - int(share.sum())
    share[np.argsort(share - exact, kind="stable")[:missing]] += 1
    return share


def _of_their_own(room: IntArray, units: int, values: int) -> Sequence[IntArray]:
    """Units each domain gets of every value, with no domain shared if that fits."""
    free, shares = room.copy(), []
    for left in range(values - 1, -1, -1):
        share = choose_children(free, units)
        shares.append(share)
        untouched = np.where(share > 0, 0, free)
        enough = untouched.sum() >= left * units
        free = untouched if enough else free - share
    return shares


def time_region(problem: Problem, gpu_of_rank: IntArray) -> MoveRegion | None:
    """Where a placement's step time is improved, None where nothing can move.

    Parameters
    ----------
    gpu_of_rank : ndarray, shape (R,)
        The best placement so far.
    """
    topology = problem.machine
    # Nodes that differ are told apart; equal ones of a domain are not.
    factors = topology.bandwidth_factor, topology.speed_of_node
    is_even = all((factor == factor[0]).all() for factor in factors)
    innermost = linked_tier(topology) if is_even else 0
    groups = problem.job.parallelism.ranks_of_group
    members = (groups[axis] for axis in KEPT_WHOLE)
    label = _kept_whole(problem, gpu_of_rank, innermost, members)
    return _region(problem, label, innermost, outward=is_even)


def _kept_whole(
    problem: Problem, gpu_of_rank: IntArray, tier: int, sets: Iterable[IntArray]
) -> IntArray:
    """Unit of every rank: co-location sets joined with what shares domains anyway.

    Parameters
    ----------
    gpu_of_rank : ndarray, shape (R,)
    sets : iterable of ndarray
        Ranks in rows, heaviest first: joined up to the first that a domain of the tier
        does not hold whole, or that would make units of different sizes.
    """
    label: IntArray = problem.colocation.label[tier]
    if not problem.params.keep_whole:
        return label
    home = problem.machine.domain_of_gpu[tier]
    for members in sets:
        inside = home[gpu_of_rank[members]]
        if (inside != inside[:, :1]).any():
            break
        joined = np.unique(join(label, members), return_inverse=True)[1]
        if len(np.unique(np.bincount(joined))) > 1:
            break
        label = joined
    return label


def _region(
    problem: Problem, label: IntArray, innermost: int, *, outward: bool = True
) -> MoveRegion | None:
    """The region of given units.

    None where one domain holds them all, or co-location sets are not all alike.

    Parameters
    ----------
    label : ndarray, shape (R,)
        Unit of every rank, from 0 up; units are equally large.
    innermost : int
        Smallest tier of which a domain can hold a unit.
    outward : bool
        Whether domains of a larger tier are taken while no domain holds two units.
    """
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
    while outward and tier < last and capacities[tier].max() <= size:
        tier += 1
    if tier >= last:
        return None
    inner = colocation.label[:innermost]
    return MoveRegion(problem.job, topology, tier, label, inner, capacities)
