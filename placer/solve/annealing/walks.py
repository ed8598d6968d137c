"""Walks of the compiled annealer: what they begin with, and how they cool."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.annealing.fence import fence_in
from placer.solve.annealing.sets import blocks_of
from placer.solve.run.budget import Budget
from placer.solve.score.evaluator import Compiled, compiled
from placer.solve.score.groups import Rows

if TYPE_CHECKING:
    from placer.solve.annealing.units import Units
    from placer.solve.score._kernel import Annealer


class Walk(NamedTuple):
    """Where a walk begins or has got to, and how hot it goes on."""

    seed: int
    scale: float  # of the heat that is usual
    slots: IntArray  # (U,): of units; rows (node, units) where runs walk
    cost: float = inf  # infinite before the walk
    broken: int = 0  # how much it breaks of the rules


class PricedInFull(Exception):  # noqa: N818
    """The compiled cost does not say of a job what the scorer says."""


@dataclass(eq=False)
class Walks:
    """Annealing of units on slots, walk after walk.

    What is compiled takes longer to make than a walk of a large job.
    """

    units: Units
    evaluator: Compiled = field(init=False)
    annealer: Annealer = field(init=False)
    _counted: list[tuple[str, int, int]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        problem = self.units.problem
        found = compiled(problem, self.units.slots)
        if found is None:
            raise PricedInFull
        from placer.solve.score._kernel import Annealer

        self.evaluator, kernel, width = found, found.kernel, found.width
        if found.slots is not self.units.slots:
            self.units = replace(self.units, slots=found.slots)
        units = self.units
        axes, ranks = problem.job.parallelism, found.slots.ranks
        stage = axes.coordinates["pp"][ranks[:, 0]]
        tied = [(t, _family(row, stage)) for t, row in units.tied]
        families = [sets for _, sets in tied]
        for label in units.labels():
            sets = _family(label, stage)
            if np.diff(sets.start).max() > 1 or not families:
                families.append(sets)
        found.load(np.arange(len(ranks)))
        blocks = _family(blocks_of(axes, ranks), stage)
        self.annealer = Annealer(
            kernel, width, families, blocks=blocks, has_experts=axes.ep > 1
        )
        nodes = self._nodes_of_places
        for tier, sets in tied:
            domain = problem.machine.domain_of_node[tier, nodes[:, 0]]
            self.annealer.add_tie(sets=sets, domain=domain)
        if (partners := units.partners) is not None:
            self.annealer.set_partners(partners)
        if problem.job.rules:
            fence_in(self.annealer, problem.limits, ranks, nodes)
        self._counted = self.annealer.moves

    @property
    def _nodes_of_places(self) -> IntArray:
        """Node of each rank of a unit at each place that rules see; shape (P, s)."""
        return self.units.problem.machine.node_of_gpu[self.units.slots.gpus]

    def set_home(self, slot: IntArray, ranks: IntArray, affected: IntArray) -> None:
        """From now on units pay for ranks that leave their cells.

        ``slot`` ((U,)): any in the cell where a unit was, -1 for none. ``ranks``
        ((U,)): those of each unit that lose their GPUs. ``affected`` ((any,)): units
        that are moved first.
        """
        self.annealer.set_home(slot, ranks, affected)
        self._counted = self.annealer.moves

    def load(self, slot_of_unit: IntArray) -> float:
        """Begin with units on slots; the cost."""
        self.annealer.load(self.evaluator.atoms(slot_of_unit))
        return self.annealer.best

    @property
    def broken(self) -> int:
        """How much the best of a walk breaks of the rules; it costs the least then."""
        return self.annealer.broken

    @property
    def best(self) -> tuple[float, IntArray]:
        """The least cost of a walk, and its slots."""
        width = self.evaluator.width
        slots = np.asarray(self.annealer.best_slots[::width], np.int64) // width
        return self.annealer.best, slots

    def counted(self) -> list[tuple[str, int, int]]:
        """Each move, how often it helped and was tried since the last count."""
        now = self.annealer.moves
        before, self._counted = self._counted, now
        return [
            (name, helped - then[1], tried - then[2])
            for (name, helped, tried), then in zip(now, before, strict=True)
        ]

    def walk(self, walk: Walk, moves: int, budget: Budget) -> Walk:
        """Anneal in so many moves; the walk with the best slots on the way."""
        self.annealer.begin_walk(walk.seed)
        self.load(walk.slots)
        problem = self.units.problem
        (most, of_usual, cooler), (probes, pieces) = (
            problem.params.heat,
            problem.params.probes_and_pieces,
        )
        hot = of_usual * self.annealer.usual_change(probes, most)
        self.load(walk.slots)
        if problem.goal.name == "time" and self.units.partners is None:
            hot = min(most, hot)
        for piece in range(pieces):
            if budget.is_over():
                break
            self.annealer.walk(
                max(moves // pieces, 1),
                piece / pieces,
                hot * walk.scale,
                hot / cooler,
            )
        cost, slots = self.best
        return walk._replace(slots=slots, cost=cost, broken=self.broken)


def walk_in_pool(pool: list[Walks], moves: int, budget: Budget, walk: Walk) -> Walk:
    """A walk on what no other thread is at."""
    walks = pool.pop()
    found = walks.walk(walk, moves, budget)
    pool.append(walks)
    return found


def _family(label: IntArray, stage: IntArray) -> Rows:
    """The units of each set, by stage: two sets that swap exchange equal stages."""
    size = np.unique(label, return_counts=True)[1]
    return Rows(np.append(0, np.cumsum(size)), np.lexsort((stage, label)))
