"""What moves as one, and where it may go: a problem as units on slots.

Shapes: U units of s ranks, S slots, C cells (scale-up domains).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray, grouped
from placer.solve.annealing.walks import Walks
from placer.solve.score.slots import Slots

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem


@dataclass(frozen=True, eq=False)
class Units:
    """Units of a problem on the slots of its machine.

    Attributes
    ----------
    problem : Problem
    slots : Slots
    cell_of_gpu : ndarray, shape (G,)
    """

    problem: Problem
    slots: Slots
    cell_of_gpu: IntArray

    @classmethod
    def of(cls, problem: Problem, size: int = 0) -> Units | None:
        """Units of so many ranks, by default as large as can be; None if none fit.

        A launch by nodes moves what a node holds, a free one tp groups, or parts of as
        many ranks of an expert group.
        """
        machine, job = problem.machine, problem.job
        cell = problem.model.fabric.scale_up_domain_of_gpu
        if job.launcher != "free":
            if not problem.choices:
                return None
            block = problem.choices[0].block
            nodes = np.flatnonzero(machine.gpus_of_node >= block)
            first = np.asarray(machine.first_gpu_of_node)[nodes]
            ranks = np.arange(job.world_size).reshape(-1, block)
            return cls(problem, Slots(ranks, first[:, None] + np.arange(block)), cell)
        ranks_of_unit = _free_units(problem, size or job.parallelism.tp)
        if ranks_of_unit is None:
            return None
        gpus = _cut(cell, ranks_of_unit.shape[1])
        if len(gpus) < len(ranks_of_unit):
            return None
        return cls(problem, Slots(ranks_of_unit, gpus), cell)

    def walks(self, seed: int) -> Walks:
        """A walk of its own."""
        return Walks(self, seed)

    @cached_property
    def cell_of_slot(self) -> IntArray:
        """Cell of each slot; shape (S,)."""
        return self.cell_of_gpu[self.slots.gpus[:, 0]]

    @cached_property
    def slots_of_cell(self) -> list[IntArray]:
        """Slots of each cell that has any."""
        return grouped(np.arange(len(self.slots.gpus)), self.cell_of_slot)

    def slot_of_unit(self, gpu_of_rank: IntArray) -> IntArray:
        """Slots of units as a placement has them, or near by where it cuts them."""
        cells = self.cell_of_gpu[gpu_of_rank[self.slots.ranks]]
        free = {
            int(self.cell_of_slot[some[0]]): some[::-1].tolist()
            for some in self.slots_of_cell
        }
        found = np.full(len(cells), -1)
        if self.problem.job.launcher != "free":
            exact = {int(gpus[0]): slot for slot, gpus in enumerate(self.slots.gpus)}
            starts = gpu_of_rank[self.slots.ranks[:, 0]].tolist()
            if all(gpu in exact for gpu in starts):
                return np.array([exact[gpu] for gpu in starts])
        whole = (cells == cells[:, :1]).all(axis=1)
        for unit in np.argsort(~whole, kind="stable").tolist():
            names, many = np.unique(cells[unit], return_counts=True)
            wanted = names[np.argsort(-many)].tolist()
            cell = next((c for c in wanted if free.get(c)), None)
            if cell is None:
                cell = min(
                    (c for c in free if free[c]), key=lambda c: abs(c - wanted[0])
                )
            found[unit] = free[cell].pop()
        return found


def _free_units(problem: Problem, size: int) -> IntArray | None:
    """Ranks of units of a free launch: tp groups, or parts of expert groups."""
    axes = problem.job.parallelism
    if size == axes.tp:
        return axes.ranks_of_group["tp"]
    if axes.tp > 1 or axes.cp > 1 or axes.ep % size:
        return None
    return axes.ranks_of_group["ep"].reshape(-1, size)


def _cut(cell_of_gpu: IntArray, size: int) -> IntArray:
    """GPUs of cells in rows of so many; what is left of a cell is no slot."""
    parts = grouped(np.arange(len(cell_of_gpu)), cell_of_gpu)
    rows = [part[: len(part) // size * size].reshape(-1, size) for part in parts]
    return np.concatenate(rows)
