"""Walks of a job that runs already, at a price for every rank that moves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placer.base.arrays import IntArray, grouped, row_of_number
from placer.placement.previous import Previous
from placer.solve.annealing.annealed import is_for
from placer.solve.annealing.race import SCALES
from placer.solve.annealing.runs import Runs
from placer.solve.annealing.units import Units
from placer.solve.annealing.walks import PricedInFull, Walk
from placer.solve.problem.compiled import Problem
from placer.solve.rearrange.settle import exchanged
from placer.solve.run.budget import Budget

GRADIENTS = ("dp_cp", "edp")  # axes of groups that add them up


class Seated(Units):
    """Units that may also move with all that add up their gradients."""

    def labels(self) -> Iterator[IntArray]:
        """Label of each unit in every family of sets that moves know; shape (U,)."""
        yield from super().labels()
        groups = self.problem.job.parallelism.ranks_of_group
        for axis in GRADIENTS:
            yield row_of_number(groups[axis])[self.slots.ranks[:, 0]]


class Homeward:
    """Walks that pay for ranks that leave the cells where they were.

    ``seats`` ((R,)): GPUs that whole units keep if they stay in their cell; -1 where
    there is none.
    """

    def __init__(self, units: Units, before: Previous, seats: IntArray) -> None:
        self.before, self.walks = before, units.walks()
        self.units = units = self.walks.units
        ranks, seat = units.slots.ranks, units.slots_at(seats)
        at = before.gpu_of_rank[ranks]
        kept = (at >= 0).sum(axis=1)
        self._home = np.where(kept > 0, seat, -1)
        slot_of_cell = np.full(int(units.cell_of_gpu.max()) + 1, -1)
        slot_of_cell[units.cell_of_slot] = np.arange(len(units.cell_of_slot))
        home = slot_of_cell[units.cell_of_gpu[at.max(axis=1)]]  # of any that has a GPU
        # First who shared a domain with somebody whose GPU is gone.
        where = before.domain[max(units.tier, 0)]
        hit = np.isin(where, where[before.is_lost])[ranks].any(axis=1)
        affected = np.flatnonzero(hit)
        self.walks.set_home(np.where(kept > 0, home, -1), kept, affected)

    @classmethod
    def on(cls, problem: Problem, before: Previous, seats: IntArray) -> Homeward | None:
        """The walks of a problem; None where nothing can move, or fast enough.

        They use no more hosts to avoid than the seats.
        """
        problem = problem.avoiding(problem.avoided(seats[seats >= 0]))
        units: Units | None = Seated.of(problem, seats) if problem.choices else None
        if units is None and problem.job.launcher != "free":
            units = Runs.on_nodes(problem)
        if units is None or not is_for(problem):
            return None
        try:
            return cls(units, before, seats)
        except PricedInFull:
            return None

    @property
    def unit_size(self) -> int:
        """Ranks of a unit."""
        return int(self.units.slots.ranks.shape[1])

    def walk(
        self, start: IntArray, price: float, seeds: Iterator[int], budget: Budget
    ) -> IntArray:
        """The cheapest placement found near another, at a price a rank; shape (R,)."""
        walks = self.walks
        walks.annealer.price = price
        units, problem = self.units, self.units.problem
        at = units.slots_at(start)
        if isinstance(units, Runs) or (at < 0).any():
            at = units.slot_of_unit(start)
        for scale in sorted(SCALES[problem.goal.name], reverse=True):
            walk = Walk(next(seeds), scale, at)
            at = walks.walk(walk, problem.params.homeward_moves, budget).slots
        if isinstance(units, Runs):
            return exchanged(problem, units.gpu_of_rank(at), self.before)
        return units.slots.gpu_of_rank(self._seated(at))

    def _seated(self, slot_of_unit: IntArray) -> IntArray:
        """Units on the slots that they had, where they are in that cell."""
        units, home = self.units, self._home
        cell = units.cell_of_slot[slot_of_unit]
        stays = (home >= 0) & (units.cell_of_slot[home] == cell)
        found = np.where(stays, home, -1)
        free = np.ones(len(units.cell_of_slot), dtype=bool)
        free[found[stays]] = False
        keeps = ~stays & free[slot_of_unit]
        found[keeps] = slot_of_unit[keeps]
        free[found[keeps]] = False
        left = found < 0
        for some in grouped(np.flatnonzero(left), cell[left]):
            there = np.flatnonzero(free & (units.cell_of_slot == cell[some[0]]))
            found[some] = there[: len(some)]
        return found
