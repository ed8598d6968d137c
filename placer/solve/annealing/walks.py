"""Walks of the compiled annealer: what they begin with, and how they cool."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.annealing.sets import blocks_of, labels_of
from placer.solve.score.evaluator import Compiled
from placer.solve.score.groups import Rows
from placer.solve.score.step_time import step_kernel

if TYPE_CHECKING:
    from placer.solve.annealing.units import Units
    from placer.solve.run.budget import Budget
    from placer.solve.score._kernel import Annealer, StepTime
    from placer.solve.score.groups import Numbers

HOT, RANGE = 1e-3, 300.0  # of the value; how many times cooler a walk ends
USUAL = 0.2  # of the usual change of a move: hot enough
PROBES = 1800
PIECES = 100  # of a walk, between looks at the time
MELTED = 0.05  # above the best: so hot that nothing of it is left


class PricedInFull(Exception):  # noqa: N818
    """The compiled step does not say of a job what the scorer says."""


@dataclass(eq=False)
class Walks:
    """Annealing of units on slots, walk after walk.

    Attributes
    ----------
    units : Units
    evaluator : Compiled
    annealer : Annealer
    """

    units: Units
    seed: int
    evaluator: Compiled = field(init=False)
    kernel: StepTime = field(init=False)
    annealer: Annealer = field(init=False)

    def __post_init__(self) -> None:
        from placer.solve.score._kernel import Annealer

        problem = self.units.problem
        found = step_kernel(problem.model, self.units.slots)
        if found is None:
            raise PricedInFull
        self.evaluator = Compiled(*found)
        self.kernel = found[1]
        self.units = replace(self.units, slots=found[0])
        axes, ranks = problem.job.parallelism, found[0].ranks
        families: list[tuple[Numbers, Numbers, Numbers]] = []
        for label in labels_of(problem.job, ranks):
            number = np.unique(label, return_inverse=True)[1].reshape(-1)
            rows = _rows(number, ranks, axes.coordinates["pp"])
            if np.diff(rows.start).max() > 1 or not families:
                families.append((number.astype(np.int32), rows.start, rows.entry))
        block = _rows(blocks_of(axes, ranks), ranks, axes.coordinates["pp"])
        self.annealer = Annealer(
            self.kernel,
            self.seed,
            self.evaluator.width,
            families,
            block.start,
            block.entry,
            axes.ep > 1,
        )

    def load(self, gpu_of_rank: IntArray) -> float:
        """Begin at a placement, or near by where units are cut; its cost."""
        return self.load_slots(self.units.slot_of_unit(gpu_of_rank))

    def load_slots(self, slot_of_unit: IntArray) -> float:
        """Begin with units on slots; the cost."""
        self.annealer.load(self.evaluator.atoms(slot_of_unit))
        return self.annealer.best

    @property
    def best(self) -> tuple[float, IntArray]:
        """The least cost of a walk, and its slots."""
        width = self.evaluator.width
        slots = np.asarray(self.annealer.best_slots[::width], np.int64) // width
        return self.annealer.best, slots

    @property
    def gpu_of_rank(self) -> IntArray:
        """The best placement of a walk; shape (R,)."""
        return self.evaluator.slots.gpu_of_rank(self.best[1])

    @property
    def _is_melted(self) -> bool:
        return self.kernel.value > self.annealer.best * (1 + MELTED)

    def walk(self, moves: int, scale: float, budget: Budget) -> None:
        """Anneal from the best so far, so hot, in so many moves."""
        start = self.best[1]
        self.load_slots(start)
        usual = self.annealer.usual_change(PROBES, HOT)
        self.load_slots(start)
        hot = min(HOT, USUAL * usual)
        cold = hot / RANGE
        for piece in range(PIECES):
            if budget.is_over() or self._is_melted:
                return
            self.annealer.walk(
                max(moves // PIECES, 1),
                piece / PIECES,
                (piece + 1) / PIECES,
                hot * scale,
                cold,
            )


def _rows(label: IntArray, ranks: IntArray, stage: IntArray) -> Rows:
    """Units of each label, by stage."""
    order = np.lexsort((np.arange(len(label)), stage[ranks[:, 0]], label))
    count = np.bincount(label)
    start = np.concatenate(([0], np.cumsum(count))).astype(np.int32)
    return Rows(start, order.astype(np.int32))
