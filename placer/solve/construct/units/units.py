"""Groups of ranks that are to stay whole, and the tier whose domains take them.

Shapes: R ranks, N nodes, U units, H stretches of the tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.base.arrays import BoolArray, IntArray
from placer.solve.problem.axes import DENSE, EXPERT, KEPT_WHOLE
from placer.solve.problem.colocation import Colocation, colocation_of, join
from placer.solve.tree.base import base_tier, linked_tier
from placer.solve.tree.capacity import node_capacity, whole_sets
from placer.solve.tree.fill import fill_domains
from placer.solve.tree.in_runs import fill_in_runs

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.problem.compiled import Problem
    from placer.topology.machine import Machine


@dataclass(frozen=True, eq=False)
class Units:
    """Sets of ranks of one size that are to stay whole.

    Attributes
    ----------
    axis : str
        The last axis that they hold whole.
    ranks : ndarray, shape (U, size)
        Of each unit, those side by side that are the last to be parted.
    coordinate : mapping of str to ndarray, each shape (U,)
        Along the axes in which units differ.
    """

    axis: str
    ranks: IntArray
    coordinate: dict[str, IntArray]

    @classmethod
    def of(cls, axis: str, ranks: IntArray, along: dict[str, IntArray]) -> Units:
        """With their coordinates along all axes."""
        return cls(axis, ranks, {a: row for a, row in along.items() if row.max() > 0})

    @property
    def size(self) -> int:
        """Ranks of a unit."""
        return int(self.ranks.shape[1])

    @property
    def stage(self) -> IntArray:
        """Pipeline stage of each unit; shape (U,)."""
        return self.coordinate.get("pp", np.zeros(len(self.ranks), dtype=np.int64))

    def orders(
        self, whole: IntArray, parted: IntArray
    ) -> Iterator[tuple[IntArray, BoolArray]]:
        """Units along the tree, and which of them are not whole; both shape (U,).

        Each stretch of the tree takes units that follow each other, and parts those of
        them that are of one stage, or of the next ones. Stages in the middle of the
        pipeline come first: they do nothing else. Each comes with every order of axes.

        Parameters
        ----------
        whole, parted : ndarray, shape (H,)
            Units of each stretch that are whole, and those that are not.
        """
        count = int(self.stage.max()) + 1
        stages = sorted(range(count), key=lambda stage: abs(2 * stage + 1 - count))
        home = np.repeat(np.arange(len(whole)), whole + parted)
        begin = np.cumsum(whole + parted) - whole - parted
        for stage, axes in product(stages, permutations(self.coordinate)):
            along_axes = [self.coordinate[axis] for axis in axes]
            in_order = np.lexsort([*along_axes, self.stage * 0])
            first = np.lexsort(((self.stage[in_order] - stage) % count, home))
            is_parted = np.empty(len(home), dtype=bool)
            is_parted[first] = np.arange(len(home)) - begin[home] < parted[home]
            yield in_order, is_parted


@dataclass(frozen=True, eq=False)
class Floor:
    """The tier whose domains take units.

    Attributes
    ----------
    colocation : Colocation
        Sets of each tier are all alike.
    in_runs : bool
        Whether each node holds one run of consecutive ranks, of any length.
    """

    machine: Machine
    colocation: Colocation
    tier: int
    in_runs: bool

    @property
    def grain(self) -> int:
        """Ranks that stay together in a domain."""
        return int(self.colocation.sizes(self.tier)[0])

    @property
    def capacity(self) -> IntArray:
        """Ranks each node may hold; shape (N,)."""
        return node_capacity(self.machine, self.colocation.block)

    def takes(
        self, capacity: IntArray, piece: int, unit: int, outer: int | None = None
    ) -> list[IntArray]:
        """Ranks each domain can hold in pieces, and from a tier on in whole units.

        Parameters
        ----------
        capacity : ndarray, shape (N,)
        piece, unit : int
            Ranks.
        outer : int, optional
            By default the tier itself.
        """
        outer = self.tier if outer is None else outer
        inside = [int(self.colocation.sizes(t)[0]) for t in range(self.tier)]
        pieces = [piece] * (outer - self.tier)
        units = [unit] * (len(self.machine.tiers) - outer)
        return whole_sets(self.machine, capacity, [*inside, *pieces, *units])

    def arranged(
        self,
        units: Units,
        counts: Sequence[IntArray],
        domains: Sequence[npt.ArrayLike],
    ) -> Iterator[IntArray]:
        """Node of every rank for each order of the units; shape (R,).

        Parameters
        ----------
        counts : pair of ndarray, each shape (H,)
            Units of each stretch of the tree that are whole, and those that are not.
        domains : pair of array
            Domains of their ranks, one unit after the other along the tree.
        """
        for in_order, is_parted in units.orders(*counts):
            domain_of_rank = np.empty(units.ranks.size, dtype=np.int64)
            for split, own in enumerate(domains):
                ranks = units.ranks[in_order[is_parted == split]].ravel()
                domain_of_rank[ranks] = np.ravel(own)
            yield self.node_of_rank(domain_of_rank, units)

    def node_of_rank(self, domain_of_rank: IntArray, units: Units) -> IntArray:
        """Node of every rank when its domain is known; shape (R,)."""
        takes = self.takes(self.capacity, self.grain, self.grain)[: self.tier + 1]
        if self.in_runs:
            domain_of_node = self.machine.domain_of_node[self.tier]
            found = fill_in_runs(domain_of_node, takes[0], domain_of_rank)
            if found is not None:
                return found
        return fill_domains(self.machine, takes, domain_of_rank, units.ranks.ravel())


def floors(problem: Problem) -> Iterator[Floor]:
    """The tier that takes units, for every way to keep ranks together in a launch."""
    machine, job = problem.machine, problem.job
    tier = (linked_tier if problem.goal.name == "time" else base_tier)(machine)
    if tier == len(machine.tiers) - 1:
        return
    # Nodes of a node-contiguous launch may hold different numbers of ranks.
    for block in dict.fromkeys((problem.colocation.block, 1)):
        colocation = colocation_of(machine, job, block)
        if colocation.uniform_sizes() is not None:
            in_runs = block == 1 and job.launcher != "free"
            yield Floor(machine, colocation, tier, in_runs)


def units_of(job: Job, floor: Floor) -> list[Units]:
    """Co-location sets joined with one axis after another, the largest first."""
    return list(_units(job, floor))[::-1]


def _units(job: Job, floor: Floor) -> Iterator[Units]:
    axes = job.parallelism
    rows: list[IntArray] = [*floor.colocation.label[: floor.tier + 1]]
    for name in KEPT_WHOLE:
        members = axes.ranks_of_group[name]
        label = np.unique(join(rows[-1], members), return_inverse=True)[1]
        counts = np.bincount(label)
        if (counts != counts[0]).any():
            return
        if label.max() == rows[-1].max():
            continue
        rows.append(label)
        ranks = np.lexsort(rows).reshape(len(counts), -1)
        grid = EXPERT if axes.ep > 1 else DENSE
        of_unit = {axis: axes.coordinates[axis][ranks[:, 0]] for axis in grid}
        yield Units.of(name, ranks, of_unit)
