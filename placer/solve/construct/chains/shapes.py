"""Shapes of a job for stitching: units that stay whole, in chains that may be cut.

A *unit* is a set of ranks that stays in one leaf domain: all ranks along some axes
(tp; tp x cp; an expert-parallel group; a shard group), and at least what the
requirements tie together there. Units that differ along one more axis form a *chain*:
open along pp, closed where the axis is a ring. There is a chain, a *lane*, for each
value of the remaining axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from math import lcm, prod
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import IntArray
from placer.solve.problem.axes import Axis, families, split
from placer.solve.tree.capacity import whole_sets

if TYPE_CHECKING:
    from placer.solve.problem.colocation import Colocation
    from placer.solve.problem.compiled import Problem
    from placer.solve.problem.objective import Objective
    from placer.topology.machine import Machine


class LaneAxis(NamedTuple):
    """An axis along which lanes are neighbours.

    Attributes
    ----------
    closed : bool
        Whether its last lane is a neighbour of its first.
    weight : float
        Of the edges between two units at the same place of neighbouring lanes.
    """

    size: int
    closed: bool
    weight: float


@dataclass(frozen=True, eq=False)
class Shape:
    """Units, chains and lanes.

    Attributes
    ----------
    name : str
        For people: ``pp chains of tp cp``.
    ranks : ndarray, shape (lanes, length, ranks of a unit)
        Lanes in mixed radix of ``lanes``, first axis fastest.
    closed : bool
        Whether a chain's last unit is a neighbour of its first.
    joint_weight : float
        Of the edges between two neighbouring units of a chain.
    lanes : tuple of LaneAxis
        Heaviest first.
    leaf_tier : int
        Tier of the domains that units stay in.
    room : ndarray, shape (leaf domains,)
        Ranks that each leaf domain can hold.
    inner : tuple of int, length leaf_tier + 1
        Ranks that domains of the tiers up to the leaves take together.
    half_weight : float
        Of the edges that cutting a unit in two halves cuts; 0 where units must stay
        whole.
    multiples : tuple of int
        For the tiers above the leaves, the last one left out: domains hold multiples of
        so many units of a chain, because a requirement ties them together.
    """

    name: str
    ranks: IntArray
    closed: bool
    joint_weight: float
    lanes: tuple[LaneAxis, ...]
    leaf_tier: int
    room: IntArray
    inner: tuple[int, ...]
    half_weight: float
    multiples: tuple[int, ...]

    @property
    def length(self) -> int:
        """Units of a chain."""
        return int(self.ranks.shape[1])

    @property
    def unit(self) -> int:
        """Ranks of a unit."""
        return int(self.ranks.shape[2])

    @property
    def halves(self) -> IntArray:
        """Ranks of each half unit; shape (lanes, 2 length, ranks of a half)."""
        return self.ranks.reshape(len(self.ranks), 2 * self.length, -1)

    @cached_property
    def capacity(self) -> IntArray:
        """Units that each leaf domain can hold; shape (leaf domains,)."""
        return self.room // self.unit

    @property
    def missing(self) -> int:
        """Units that the leaf domains cannot hold whole; negative when they can."""
        return self.ranks.size // self.unit - int(self.capacity.sum())

    @property
    def spare_halves(self) -> IntArray:
        """Half units each leaf has room for beside its whole ones."""
        return (self.room % self.unit >= self.unit // 2).astype(np.int64)


class _Grid(NamedTuple):
    """The axes of a shape, innermost first.

    Attributes
    ----------
    tied, added : list of Axis
        Inside a unit: what must be there, and what was added.
    links : list of Axis
        Along a chain.
    multiples : tuple of int
        As of the shape.
    """

    tied: list[Axis]
    added: list[Axis]
    links: list[Axis]
    lanes: list[Axis]
    multiples: tuple[int, ...]


def shapes(problem: Problem) -> Iterator[Shape]:
    """Every shape whose units keep what must stay together and that leaves can hold.

    Units are grown from what is tied together by adding whole axes, heaviest first;
    each axis that is left may be the chain, unless outer requirements tie units
    together: these then form the chain. The leaf tier is the innermost with room for
    two units and a price to leave it.
    """
    goal = problem.goal
    for family in families(problem):
        found = set()
        for tier in _leaf_tiers(problem.machine, goal):
            for grid in _grids(family, problem.colocation, tier):
                shape = _shape(problem, tier, grid)
                if shape is None or _splits_heaviest(family[0], grid, shape):
                    continue
                if shape.name not in found:
                    found.add(shape.name)
                    yield shape


def _splits_heaviest(axis: Axis, grid: _Grid, shape: Shape) -> bool:
    """Whether the heaviest axis could stay whole in a leaf domain, but does not."""
    between = [own.name for own in (*grid.links, *grid.lanes)]
    return axis.name in between and axis.size <= int(shape.room.max())


def _leaf_tiers(topology: Machine, goal: Objective) -> list[int]:
    """Tiers whose domains it costs something to leave, innermost first."""
    distance = [tier.distance for tier in topology.tiers]
    least = max(topology.scale_up_tier, 0) if goal.name == "time" else 0
    return [t for t in range(least, len(distance) - 1) if distance[t] < distance[t + 1]]


def _grids(
    family: Sequence[Axis], colocation: Colocation, tier: int
) -> Iterator[_Grid]:
    """Units, chains and lanes that keep the sets of a leaf tier and of all above."""
    cut = split(family, colocation.label[tier])
    bound_at = _bound_above(family, colocation, tier)
    if cut is None or bound_at is None:
        return
    tied, free = cut
    for link in free:
        rest = [axis for axis in free if axis is not link]
        for count in range(len(rest) + 1):
            outside = [axis for axis in free if axis not in rest[:count]]
            bound = sorted(
                (axis for axis in outside if axis.name in bound_at),
                key=lambda axis: bound_at[axis.name],
            )
            links = bound or [link]
            lanes = [axis for axis in outside if axis not in links]
            if links[0] is link and all(axis.name != "ep" for axis in outside):
                multiples = tuple(
                    prod(a.size for a in bound if bound_at[a.name] <= outer)
                    for outer in range(tier + 1, len(colocation.label) - 1)
                )
                yield _Grid(tied, rest[:count], links, lanes, multiples)


def _bound_above(
    family: Sequence[Axis], colocation: Colocation, tier: int
) -> dict[str, int] | None:
    """Tier above the leaves at which units along an axis are first tied together.

    None when sets are no boxes of whole axes.
    """
    bound: dict[str, int] = {}
    leaf = split(family, colocation.label[tier])
    for outer in range(tier + 1, len(colocation.label) - 1):
        cut = split(family, colocation.label[outer])
        if cut is None or leaf is None:
            return None
        inner_size = {axis.name: axis.size for axis in leaf[0]}
        for axis in cut[0]:
            if axis.size > inner_size.get(axis.name, 1):
                bound.setdefault(axis.name, outer)
                if axis.size < next(a.size for a in family if a.name == axis.name):
                    return None
    return bound


def _shape(problem: Problem, tier: int, grid: _Grid) -> Shape | None:
    """The shape of a grid, None when it does not keep the sets or does not fit."""
    inside = [*grid.tied, *grid.added]
    unit = prod(axis.size for axis in inside)
    width = {axis.name: axis.size for axis in grid.tied}
    half_weight = _half_weight(grid, unit)
    inner = _inner(problem, tier, inside)
    smallest = unit // 2 if half_weight else unit
    units = [*inner[:-1], *[smallest] * (len(problem.machine.tiers) - tier)]
    room = whole_sets(problem.machine, problem.capacity, units)[tier]
    if room.max() < 2 * unit:
        return None
    return Shape(
        name=f"{_names(grid.links)} chains of {_names(inside)}",
        ranks=_ranks(problem.colocation, tier, grid),
        closed=len(grid.links) == 1 and grid.links[0].closed,
        joint_weight=_joint_weight(grid, unit),
        lanes=tuple(
            LaneAxis(
                axis.size, axis.closed, axis.weight * unit / width.get(axis.name, 1)
            )
            for axis in grid.lanes
        ),
        leaf_tier=tier,
        room=room,
        inner=(*inner[:-1], smallest),
        half_weight=half_weight,
        multiples=grid.multiples,
    )


def _names(axes: Sequence[Axis]) -> str:
    return " ".join(dict.fromkeys(axis.name for axis in axes))


def _joint_weight(grid: _Grid, unit: int) -> float:
    """Of the edges that cutting a chain once cuts.

    Along the axis of a simple chain a unit has one edge for each of its ranks that
    differ in other axes. Where several axes form the chain, a cut severs as many edges
    of an outer one as there are units between its neighbours.
    """
    width = {axis.name: axis.size for axis in grid.tied}
    weight, between = 0.0, 1
    for axis in grid.links:
        weight += axis.weight * unit / width.get(axis.name, 1) * between
        between *= axis.size
    return weight


def _half_weight(grid: _Grid, unit: int) -> float:
    """Of the edges cut by halving a unit along its lightest axis, 0 if it must not."""
    if not grid.added or len(grid.tied) + len(grid.added) < 2:
        return 0.0
    axis = grid.added[-1]
    if axis.size % 2 or axis.name in ("ep", "tp", "etp"):
        return 0.0
    width = {tied.name: tied.size for tied in grid.tied}.get(axis.name, 1)
    cuts = 2 if axis.closed else 1
    return axis.weight * unit / (axis.size * width) * cuts


def _inner(problem: Problem, tier: int, inside: Sequence[Axis]) -> list[int]:
    """Ranks that domains of the tiers up to the leaves take together.

    No more than is tied together where the tiers up to the leaves cost the same, else
    as many of the unit's innermost factors as a domain holds.
    """
    topology = problem.machine
    single = [1] * len(topology.tiers)
    largest = [
        int(held.max()) for held in whole_sets(topology, problem.capacity, single)
    ]
    distance = [own.distance for own in topology.tiers]
    steps = [1, *accumulate(chain.from_iterable(map(_primes, inside)), mul)]
    found = [1]
    for t in range(tier + 1):
        size = int(problem.colocation.sizes(t)[0])
        if distance[t] < distance[tier]:
            fitting = [step for step in steps if step <= largest[t]]
            wider = lcm(size, fitting[-1])
            size = wider if wider <= largest[t] else size
        found.append(lcm(size, found[-1]))
    return [*found[1:-1], steps[-1]]


def _primes(axis: Axis) -> list[int]:
    """Prime factors of an axis' size."""
    rest, factor, found = axis.size, 2, []
    while rest > 1:
        while rest % factor == 0:
            found.append(factor)
            rest //= factor
        factor += 1
    return found


def _ranks(colocation: Colocation, tier: int, grid: _Grid) -> IntArray:
    """Ranks of the units; those of a set of an inner tier side by side."""
    nest = np.zeros(colocation.label.shape[1], dtype=np.int64)
    stride = 1
    for axis in (*grid.tied, *grid.added, *grid.links, *grid.lanes):
        nest += axis.coordinate * stride
        stride *= axis.size
    unit = prod(axis.size for axis in (*grid.tied, *grid.added))
    keys = [nest]
    for label in colocation.label[:tier]:
        first = np.full(int(label.max()) + 1, stride)
        np.minimum.at(first, label, nest)
        keys.append(first[label])
    length = prod(axis.size for axis in grid.links)
    return np.lexsort([*keys, nest // unit]).reshape(-1, length, unit)
