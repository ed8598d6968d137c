"""Units that change places at the price of the whole placement.

Where the compiled cost was not built, or is not that of the job.
Shapes: U units, S slots.
"""

from __future__ import annotations

from math import log

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.annealing.units import Units
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.solve.score.slots import exchanged

PRICED, RANKS_PRICED = 150, 100_000  # in each race, and their ranks
HOT, COLD = 0.03, 1e-3  # of the gap
NAME = "annealed in full"
MOVE = "exchange"


def annealed_in_full(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Exchange units, or all of a set in a cell, with those on slots elsewhere."""
    units = Units.of(problem)
    if units is None or not incumbent.is_worth_searching or not incumbent.elite:
        return
    draw = np.random.default_rng(problem.seed)
    labels = [np.arange(len(units.slots.ranks)), *units.labels()]
    ranks = problem.job.world_size
    most = problem.params.races * min(PRICED, RANKS_PRICED // ranks)
    slots, value = units.slot_of_unit(incumbent.best), float(incumbent.value)
    gap = value - float(incumbent.bound)
    for number in range(most):
        if budget.is_over():
            return
        label = labels[draw.integers(len(labels))]
        changed = _exchanged(units, slots, label, draw)
        cost = incumbent.offer(NAME, units.slots.gpu_of_rank(changed))
        heat = gap * HOT * (COLD / HOT) ** (number / most)
        incumbent.moves.count(MOVE, int(cost < value))
        if cost <= value - heat * log(draw.random()):
            slots, value = changed, cost


def _exchanged(
    units: Units, slots: IntArray, label: IntArray, draw: np.random.Generator
) -> IntArray:
    """Slots when the mates of a unit in its cell change places; shape (U,)."""
    cell = units.cell_of_slot
    unit = int(draw.integers(len(slots)))
    mates = slots[(label == label[unit]) & (cell[slots] == cell[slots[unit]])]
    cells = units.slots_of_cell
    there = np.setdiff1d(cells[draw.integers(len(cells))], mates)
    there = draw.permutation(there)[: len(mates)]
    return exchanged(slots, draw.permutation(mates)[: len(there)], there)
