"""Walks that mend what rules forbid, where the annealer was not built.

What is broken is counted in full after every change, and the cost is not looked at. Of
sets that are torn all members count that are not where most of them are.
Shapes: U units of s ranks, P places (slots, or nodes of runs).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import BoolArray, IntArray, by_appearance
from placer.solve.annealing.fence import pins
from placer.solve.annealing.walks import Walk
from placer.solve.run.budget import Budget
from placer.solve.score.slots import exchanged

if TYPE_CHECKING:
    from placer.solve.annealing.runs import Runs
    from placer.solve.annealing.units import Units

NEAR = 0.5  # of goals of units that have no pin: near who must be in one domain
PATIENCE = 500  # moves, since one that mended


@dataclass(eq=False)
class MendsInFull:
    """Walks of units on slots that break ever less, walk after walk."""

    units: Units
    broken: int = field(default=0, init=False)  # of what was loaded, or walked to

    def load(self, slot_of_unit: IntArray) -> float:
        """Begin with units on slots; the cost."""
        self.broken, _ = self._count(slot_of_unit)
        gpu_of_rank = self.units.gpu_of_rank(slot_of_unit)
        return float(self.units.problem.goal.value(gpu_of_rank))

    def walk(self, walk: Walk, moves: int, budget: Budget) -> Walk:
        """Send units by which rules are broken elsewhere, in so many moves or fewer."""
        draw, slots = np.random.default_rng(walk.seed), walk.slots
        self.broken, by = self._count(slots)
        last = 0
        for number in range(moves):
            if not by.any() or number - last > PATIENCE or budget.is_over():
                break
            changed = self._changed(slots, int(draw.choice(np.flatnonzero(by))), draw)
            broken, then = self._count(changed)
            if broken <= self.broken:
                last = number if broken < self.broken else last
                slots, self.broken, by = changed, broken, then
        return walk._replace(slots=slots, broken=self.broken)

    def _places(self, slots: IntArray) -> IntArray:
        """Place of each unit; shape (U,)."""
        return slots

    def _count(self, slots: IntArray) -> tuple[int, BoolArray]:
        """How much is broken, and whether by each unit; shape (U,)."""
        limits, ranks = self.units.problem.limits, self.units.slots.ranks
        (pin, away), place = self._pins, self._places(slots)
        pinned = np.flatnonzero(pin >= 0)
        far = away[pin[pinned], place[pinned]] if len(pinned) else pinned
        broken, by = int(far.sum()), np.isin(np.arange(len(pin)), pinned[far > 0])
        for own, row in self._ties:
            both = own * (int(row.max()) + 1) + row[place]
            pairs, pair, many = np.unique(both, return_inverse=True, return_counts=True)
            most = np.zeros(int(own.max()) + 1, dtype=np.int64)
            np.maximum.at(most, pairs // (int(row.max()) + 1), many)
            broken += len(own) - int(most.sum())
            by |= many[pair] < most[own]
        node_of_rank = np.empty(ranks.size, dtype=np.int64)
        node_of_rank[ranks] = self._nodes[place]
        for count in limits.counts:
            excess = count.excess(node_of_rank)
            box = count.box[node_of_rank]
            broken += int(excess.sum())
            by |= ((box >= 0) & (excess[box] > 0))[ranks].any(axis=1)
        return broken, by

    def _changed(
        self, slots: IntArray, unit: int, draw: np.random.Generator
    ) -> IntArray:
        """Slots once a unit goes where it may be, alone, with its set or its domain.

        Who is there takes its place.
        """
        to = self._goal(unit, slots, draw)
        apart = [row for row in self._rows if row[to] != row[slots[unit]]]
        if not apart:
            return exchanged(slots, slots[[unit]], np.array([to]))
        row, label = (some[draw.integers(len(some))] for some in (apart, self._labels))
        set_at = np.full(len(row), -1)
        set_at[slots] = label
        mates = (set_at == label[unit]) & (row == row[slots[unit]])
        there = np.flatnonzero(row == row[to])
        # The unit, then its mates, with where it goes, then who is together there.
        here = np.flatnonzero(mates)
        here = here[np.argsort(here != slots[unit], kind="stable")]
        there = there[np.lexsort((set_at[there] != set_at[to], there != to))]
        return exchanged(slots, here[: len(there)], there[: len(here)])

    def _goal(self, unit: int, slots: IntArray, draw: np.random.Generator) -> int:
        """A place that is open to a unit, perhaps near its set; else where it is."""
        (pin, away), place = self._pins, self._places(slots)
        goals = np.arange(len(self._nodes))
        if pin[unit] >= 0:
            goals = np.flatnonzero(away[pin[unit]] == 0)
        elif self._ties and draw.random() < NEAR:
            own, row = self._ties[draw.integers(len(self._ties))]
            mate = draw.choice(np.flatnonzero(own == own[unit]))
            goals = np.flatnonzero(row == row[place[mate]])
        return int(draw.choice(goals) if len(goals) else place[unit])

    @cached_property
    def _nodes(self) -> IntArray:
        """Node of each rank of a unit at each place; shape (P, s)."""
        return self.units.problem.machine.node_of_gpu[self.units.slots.gpus]

    @cached_property
    def _pins(self) -> tuple[IntArray, IntArray]:
        return pins(self.units.problem.limits, self.units.slots.ranks, self._nodes)

    @cached_property
    def _rows(self) -> list[IntArray]:
        """Domain of each place at every tier but the last; each shape (P,)."""
        rows = self.units.problem.machine.domain_of_node[:-1]
        return [row[self._nodes[:, 0]] for row in rows]

    @cached_property
    def _ties(self) -> list[tuple[IntArray, IntArray]]:
        """Set of each unit that must lie in one domain, and domain of each place."""
        found = [(own, self._rows[tier]) for tier, own in self.units.tied]
        return [(np.unique(own, return_inverse=True)[1], row) for own, row in found]

    @cached_property
    def _labels(self) -> list[IntArray]:
        """Sets that move together: of one unit, of families, of all; each (U,)."""
        single = np.arange(len(self.units.slots.ranks))
        tied = [own for own, _ in self._ties]
        return [single, np.zeros_like(single), *tied, *self.units.labels()]


@dataclass(eq=False)
class RunMendsInFull(MendsInFull):
    """Walks of runs: hosts change turns, each filled before the next."""

    units: Runs

    def _places(self, slots: IntArray) -> IntArray:
        return np.repeat(*slots.T)

    def _changed(
        self, slots: IntArray, unit: int, draw: np.random.Generator
    ) -> IntArray:
        """Runs once another host takes the turn of a unit's, or that comes last."""
        machine = self.units.problem.machine
        host = machine.host_of_node
        order, _ = by_appearance(np.concatenate((host[slots[:, 0]], host)))
        here = host[self._places(slots)[unit]]
        there = host[self._goal(unit, slots, draw)]
        i, j = (int(np.flatnonzero(order == one)[0]) for one in (here, there))
        way = draw.integers(3)
        if way == 0:
            order[i], order[j] = there, here
        elif way == 1:
            order = np.insert(np.delete(order, j), i - (j < i), there)
        else:
            order = np.append(np.delete(order, i), here)
        turn = np.argsort(order)
        return self.units.filled(np.argsort(turn[host], kind="stable"))

    @cached_property
    def _nodes(self) -> IntArray:
        ranks, machine = self.units.slots.ranks, self.units.problem.machine
        nodes = np.arange(machine.num_nodes)[:, None]
        return np.broadcast_to(nodes, (machine.num_nodes, ranks.shape[1]))
