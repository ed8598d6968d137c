"""Walks of a job that runs already, at a price for every rank that moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from placer.base.arrays import IntArray, grouped, row_of_number
from placer.placement.previous import Previous
from placer.solve.annealing.annealed import is_for
from placer.solve.annealing.runs import Runs
from placer.solve.annealing.units import Units
from placer.solve.annealing.walks import PricedInFull, Walk
from placer.solve.problem.compiled import Problem
from placer.solve.rearrange.settle import exchanged
from placer.solve.run.budget import Budget
from placer.solve.score.slots import Slots

GRADIENTS = ("dp_cp", "edp")  # axes of groups that add them up
NEVER = 1 << 30  # ranks that a unit counts which must not leave its cell
# How hot walks are, one after the other: a sum has no plateaus.
SCALES = {"time": (3.0, 0.3, 0.1), "hop-cost": (1.0, 0.1, 0.01)}
# Moves of each for a unit whose cell lost GPUs.
MOVES_A_UNIT = {"time": 300, "hop-cost": 3000}


class Seated(Units):
    """Units that may also move with all that add up their gradients."""

    def labels(self) -> Iterator[IntArray]:
        """Label of each unit in every family of sets that moves know; shape (U,)."""
        yield from super().labels()
        groups = self.problem.job.parallelism.ranks_of_group
        for axis in GRADIENTS:
            yield row_of_number(groups[axis])[self.slots.ranks[:, 0]]

    @classmethod
    def around(cls, problem: Problem, seats: IntArray) -> Units | None:
        """Units on seats and on free GPUs, without nodes to avoid."""
        found = cls.of(problem, seats) if problem.choices else None
        if found is None:
            return None
        node_of_gpu = problem.machine.node_of_gpu
        avoided = problem.limits.avoided.copy()
        avoided[node_of_gpu[seats[seats >= 0]]] = False
        gpus = found.slots.gpus
        gpus = gpus[~avoided[node_of_gpu[gpus[:, 0]]]]
        if len(gpus) < len(found.slots.ranks):
            return None
        return replace(found, slots=Slots(found.slots.ranks, gpus))


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
        pinned = np.isin(ranks, [*units.problem.limits.nodes_of_rank]).any(axis=1)
        pinned &= seat >= 0
        kept = np.where(pinned, NEVER, (at >= 0).sum(axis=1))
        self._home = np.where(kept > 0, seat, -1)
        first = np.take_along_axis(at, (at >= 0).argmax(axis=1)[:, None], axis=1)[:, 0]
        first = np.where(pinned, seats[ranks[:, 0]], first)
        cells, slot = np.unique(units.cell_of_slot, return_index=True)
        home = units.cell_of_gpu[first]
        place = np.minimum(np.searchsorted(cells, home), len(cells) - 1)
        is_there = (kept > 0) & (cells[place] == home)
        # First who shared a domain with somebody whose GPU is gone.
        where = before.domain[max(units.tier, 0)]
        hit = np.isin(where, where[before.is_lost])[ranks].any(axis=1)
        self.affected = np.flatnonzero(hit)
        self.walks.set_home(np.where(is_there, slot[place], -1), kept, self.affected)

    @classmethod
    def on(cls, problem: Problem, before: Previous, seats: IntArray) -> Homeward | None:
        """The walks of a problem; None where nothing can move, or fast enough."""
        units: Units | None = Seated.around(problem, seats)
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
        units, goal = self.units, self.units.problem.goal.name
        at = units.slots_at(start)
        if isinstance(units, Runs) or (at < 0).any():
            at = units.slot_of_unit(start)
        wanted = MOVES_A_UNIT[goal] * len(self.affected)
        least, most = units.problem.params.homeward_moves
        moves = min(max(least, wanted), most)
        for scale in SCALES[goal]:
            at = walks.walk(Walk(next(seeds), scale, at), moves, budget).slots
        if isinstance(units, Runs):
            return exchanged(units.problem, units.gpu_of_rank(at), self.before)
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
