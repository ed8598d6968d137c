"""Segments of chains and the problem of stitching them together.

A *chain* is a pipeline of stages, say, and a *segment* what one rack holds of it, or
what several racks hold that were joined. `stitch` joins segments until every chain is
whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placer.arrays import FloatArray, IntArray

# Shares of whole numbers of units that should add up to one, do so to much better.
ROUNDING = 1e-6


class Kind(NamedTuple):
    """A sort of segment: its units, and the joints inside (0 when not counted)."""

    length: int
    joints: int


# Half a unit: two make one.
HALF = Kind(0, 0)
Pair = tuple[Kind, Kind]


class Fragment(NamedTuple):
    """Units of a segment that lie in one leaf domain.

    ``twin`` is the leaf of the second half of a unit cut in two, else ``leaf``.
    """

    leaf: int
    length: int
    twin: int


Segment = tuple[Fragment, ...]


@dataclass(frozen=True, eq=False)
class Stitching:
    """The problem.

    Attributes
    ----------
    capacity : ndarray, shape (leaves,)
        Units each leaf domain can hold.
    parents : sequence of ndarray
        ``parents[i]`` gives the parent of each domain of level ``i``; level 0 is the
        leaves, the last level has one domain.
    joint_cost : sequence of float
        Price of a joint in a domain of level 1, 2, ...
    length : int
        Units of a replica.
    replicas : int
        Replicas wanted.
    shared_gain : float
        What it is worth that two replicas have a stage in the same leaf: the edges
        between them then need not leave it there. Two segments cut from one leaf can
        share as many stages as the shorter has.
    most_joints : int or None
        Joints a replica may have; None for any number.
    spare_halves : ndarray, shape (leaves,)
        Half units each leaf has room for beside its units; two make a unit.
    half_cost : sequence of float
        Price of making a unit of two halves in a domain of level 1, 2, ...
    most_halved : int or None
        Units that may be made of halves; None for any number.
    closed : bool
        Whether a replica is a ring: the joint that completes it is made twice.
    multiples : sequence of int
        Segments that leave a domain of level 1, 2, ... have a multiple of so many units
        (all, where left out).
    """

    capacity: IntArray
    parents: Sequence[IntArray]
    joint_cost: Sequence[float]
    length: int
    replicas: int
    shared_gain: float = 0.0
    most_joints: int | None = None
    spare_halves: IntArray | None = None
    half_cost: Sequence[float] = ()
    most_halved: int | None = None
    closed: bool = False
    multiples: Sequence[int] = ()

    @property
    def usable(self) -> FloatArray:
        """Units of each leaf, less its share of those that outer domains cannot use.

        A domain whose segments must be multiples of some units uses whole multiples.
        """
        room = self.capacity.astype(np.float64)
        domain = np.arange(len(room))
        for parent, multiple in zip(self.parents, self.multiples, strict=False):
            domain = parent[domain]
            inside = np.bincount(domain, room)
            whole = np.floor(inside / multiple + ROUNDING) * multiple
            room *= (whole / np.maximum(inside, 1.0))[domain]
        return room

    def parent(self, level: int) -> IntArray:
        """Domain that holds each domain of a level; the last level is in one, 0."""
        is_top = level == len(self.parents)
        return np.zeros(1, dtype=np.int64) if is_top else self.parents[level]

    def in_tree_order(self, level: int) -> IntArray:
        """Domains of a level, those of each outer domain side by side."""
        below = self.parents[level - 1] if level else np.arange(len(self.capacity))
        ancestors = [np.arange(int(below.max()) + 1)]
        for parent in self.parents[level:]:
            ancestors.append(parent[ancestors[-1]])
        return np.lexsort(ancestors)

    def multiple(self, level: int) -> int:
        """Units of which segments that leave a domain of a level have a multiple."""
        return self.multiples[level - 1] if level <= len(self.multiples) else 1

    def joint_price(self, level: int, pair: Pair) -> float:
        """Price of joining two segments in a domain of a level.

        A ring of two units has a single edge, which is no ring.
        """
        if pair == (HALF, HALF):
            return self.half_cost[level - 1]
        length = pair[0].length + pair[1].length
        closes = self.closed and length == self.length
        return self.joint_cost[level - 1] * (2 if closes else 1)

    def kinds(self) -> list[Kind]:
        """All sorts of segments."""
        return [
            Kind(length, joints)
            for length in range(1, self.length + 1)
            for joints in range(min(self.most_joints or 0, length - 1) + 1)
        ]

    def pairs(self) -> list[Pair]:
        """All sorts of segments that can be joined, each two once."""
        kinds = self.kinds()
        return [
            (first, second)
            for i, first in enumerate(kinds)
            for second in kinds[i:]
            if self.join(first, second) is not None
        ]

    def join(self, first: Kind, second: Kind) -> Kind | None:
        """What two segments make, None when too long or with too many joints."""
        if first == second == HALF:
            return Kind(1, 0)
        length = first.length + second.length
        if length > self.length:
            return None
        if self.most_joints is None:
            return Kind(length, 0)
        joints = first.joints + second.joints + 1
        return Kind(length, joints) if joints <= self.most_joints else None


def price_of_joints(problem: Stitching, replicas: Sequence[Segment]) -> float:
    """Price of all joints, each as near to the leaves as can be, and of the halves."""
    return sum(_price_of_replica(problem, replica) for replica in replicas)


def _price_of_replica(problem: Stitching, replica: Segment) -> float:
    pieces = [leaf for leaf, _, twin in replica if leaf == twin]
    halves = [(leaf, twin) for leaf, _, twin in replica if leaf != twin]
    price = last = 0.0
    for level, parent in enumerate(problem.parents, 1):
        pieces = parent[pieces].tolist()
        halves = [(int(parent[leaf]), int(parent[twin])) for leaf, twin in halves]
        joined = [leaf for leaf, twin in halves if leaf == twin]
        halves = [(leaf, twin) for leaf, twin in halves if leaf != twin]
        if joined:
            price += len(joined) * problem.half_cost[level - 1]
        own = pieces + joined
        pieces = list(set(own))
        if len(own) > len(pieces):
            last = problem.joint_cost[level - 1]
            price += (len(own) - len(pieces)) * last
    # The joint that closes a ring is made twice.
    return price + (last if problem.closed else 0.0)


@dataclass(frozen=True, eq=False)
class Stitched:
    """The answer.

    Attributes
    ----------
    replicas : list of Segment
        Fragments of every replica.
    price : float
        Of all joints; inf where it is not known.
    lower_bound : float
        On that price; -inf when none was found.
    proved : bool
        Whether the program was solved to the end, or as near as was asked for.
    cut_short : bool
        Whether the clock, not the work, set the end.
    """

    replicas: list[Segment]
    price: float
    lower_bound: float
    proved: bool
    cut_short: bool
