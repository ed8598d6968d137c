"""Units whole where domains hold them, the few others in equal parts.

A nesting gives up a unit everywhere if it does not fit everywhere: an expert group of 8
is cut into halves on every node when some nodes have 7 GPUs. Here all domains first
take what they hold whole; only units that are left over are cut, into as few equal
parts as fit. They are the same pipeline stage of different replicas wherever that can
be, so that no replica waits for two of them.

Shapes: R ranks, N nodes, T tiers, U units.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, permutations, product
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.placement.placement import Placement
from placer.solve.problem.axes import DENSE, EXPERT, KEPT_WHOLE
from placer.solve.problem.colocation import Colocation, colocation_of, join
from placer.solve.tree.base import base_tier, linked_tier
from placer.solve.tree.capacity import node_capacity, whole_sets
from placer.solve.tree.fill import fill_domains, share_down, tree_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from placer.job.model import Job
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]


def whole_first(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Units whole where they fit, and the others in equal parts."""
    params = problem.params
    priced = params.ranks_priced // problem.job.world_size
    most = max(1, min(params.nestings, priced))
    incumbent.offer_all(islice(whole_first_fills(problem), most))


def whole_first_fills(problem: Problem) -> Iterator[Candidate]:
    """(name, GPU of every rank) of every way to do that."""
    machine, job = problem.machine, problem.job
    tier = (linked_tier if problem.goal.name == "time" else base_tier)(machine)
    if tier == len(machine.tiers) - 1:
        return
    # Nodes of a node-contiguous launch may hold different numbers of ranks.
    for block in dict.fromkeys((problem.colocation.block, 1)):
        colocation = colocation_of(machine, job, block)
        if colocation.uniform_sizes() is None:
            continue
        floor = _Floor(machine, colocation, tier)
        for name, units in reversed(list(_units(job, colocation, tier))):
            for room in floor.rooms(units.size, job.world_size):
                told = f"whole {name} groups, others in {units.size // room.part} parts"
                for stage, order in product(units.stages(), permutations(units.axes)):
                    node_of_rank = floor.filled(units, room, order, stage)
                    placement = Placement.on_nodes(machine, node_of_rank)
                    yield told, placement.gpu_of_rank


@dataclass(frozen=True, eq=False)
class _Units:
    """Sets of ranks of one size that are to stay whole.

    Attributes
    ----------
    ranks : ndarray, shape (U, size)
        Of each unit, those side by side that are the last to be parted.
    coordinate : mapping of str to ndarray, each shape (U,)
        Along the axes in which units differ.
    """

    ranks: IntArray
    coordinate: dict[str, IntArray]

    @property
    def size(self) -> int:
        """Ranks of a unit."""
        return int(self.ranks.shape[1])

    @property
    def axes(self) -> tuple[str, ...]:
        """Axes in which units differ."""
        return tuple(self.coordinate)

    @property
    def stage(self) -> IntArray:
        """Pipeline stage of each unit; shape (U,)."""
        return self.coordinate.get("pp", np.zeros(len(self.ranks), dtype=np.int64))

    def stages(self) -> Sequence[int]:
        """Stages, those in the middle of the pipeline first: they do nothing else."""
        count = int(self.stage.max()) + 1
        return sorted(range(count), key=lambda stage: abs(2 * stage + 1 - count))


def _units(job: Job, colocation: Colocation, tier: int) -> Iterator[tuple[str, _Units]]:
    """(last axis, units): co-location sets joined with one axis after another."""
    axes = job.parallelism
    rows: list[IntArray] = [*colocation.label[: tier + 1]]
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
        varying = {axis: row for axis, row in of_unit.items() if row.max() > 0}
        yield name, _Units(ranks, varying)


@dataclass(frozen=True, eq=False)
class _Room:
    """How the machine holds all units.

    Attributes
    ----------
    whole, parted : ndarray, shape (N,)
        Ranks on each node of units that are whole, and of those that are not.
    part : int
        Ranks of a unit that is not whole that share a domain.
    outer : int
        Tier whose domains hold all of a unit.
    """

    whole: IntArray
    parted: IntArray
    part: int
    outer: int


@dataclass(frozen=True, eq=False)
class _Floor:
    """The tier whose domains take units.

    Attributes
    ----------
    machine : Topology
    colocation : Colocation
        Sets of each tier are all alike.
    tier : int
    """

    machine: Topology
    colocation: Colocation
    tier: int

    def rooms(self, size: int, world: int) -> Iterator[_Room]:
        """Ways to hold all units of a size, when they do not all fit whole.

        A unit larger than every domain counts as whole in the fewest equal parts that
        can be. Few parts come first, then more where they lie nearer together.
        """
        least = int(self.colocation.sizes(self.tier)[0])
        capacity = node_capacity(self.machine, self.colocation.block)
        most = int(self._takes(capacity, least, least)[self.tier].max())
        pieces = [
            piece
            for piece in range(min(size, most), least - 1, -1)
            if size % piece == 0 == piece % least
        ]
        nearest = len(self.machine.tiers)
        for part in pieces[1:]:
            for outer in range(self.tier + 1, nearest):
                takes = self._takes(capacity, pieces[0], size, outer)
                rest = world - takes[-1]
                if rest <= 0:
                    return
                whole = share_down(self.machine, takes, takes[-1])
                left = self._takes(capacity - whole, part, size, outer)
                if left[-1] >= rest:
                    parted = share_down(self.machine, left, rest)
                    yield _Room(whole, parted, part, outer)
                    nearest = outer
                    break

    def _takes(
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

    def filled(
        self, units: _Units, room: _Room, order: Sequence[str], stage: int
    ) -> IntArray:
        """Node of every rank when units lie along the tree, axis by axis; shape (R,).

        Each outer domain takes units that follow each other, and parts those of them
        that are of the given stage, or of the next ones.
        """
        along = tree_order(self.machine)
        outer = self.machine.domain_of_node[room.outer][along]
        outer = np.cumsum(np.append(0, outer[1:] != outer[:-1]))
        whole, parted = (
            np.bincount(outer, held[along]).astype(np.int64) // units.size
            for held in (room.whole, room.parted)
        )
        along_axes = [units.coordinate[axis] for axis in order]
        in_order = np.lexsort([*along_axes, units.stage * 0])
        home = np.repeat(np.arange(len(whole)), whole + parted)
        later = (units.stage[in_order] - stage) % (units.stage.max() + 1)
        first = np.lexsort((later, home))
        begin = np.cumsum(whole + parted) - whole - parted
        is_parted = np.empty(len(home), dtype=bool)
        is_parted[first] = np.arange(len(home)) - begin[home] < parted[home]
        domain_of_rank = np.empty(units.ranks.size, dtype=np.int64)
        domain = self.machine.domain_of_node[self.tier][along]
        for chosen, held in ((~is_parted, room.whole), (is_parted, room.parted)):
            ranks = units.ranks[in_order[chosen]].ravel()
            domain_of_rank[ranks] = np.repeat(domain, held[along])
        least = int(self.colocation.sizes(self.tier)[0])
        capacity = node_capacity(self.machine, self.colocation.block)
        takes = self._takes(capacity, least, least)[: self.tier + 1]
        return fill_domains(self.machine, takes, domain_of_rank, units.ranks.ravel())
