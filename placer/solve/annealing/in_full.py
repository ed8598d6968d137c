"""Walks whose changes are priced, or checked against rules, in full.

Where the compiled cost was not built, or is not that of the job. What mends rules does
not look at the cost: what is broken is counted after every change. Of sets that are
torn all members count that are not where most of them are.
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
from placer.solve.run.incumbent import Incumbent
from placer.solve.score.slots import exchanged

if TYPE_CHECKING:
    from placer.solve.annealing.runs import Runs
    from placer.solve.annealing.units import Units

NAME = "annealed in full"
MOVE = "exchange"


@dataclass(eq=False)
class InFull:
    """Walks of units on slots without anything compiled, walk after walk."""

    units: Units
    broken: int = field(default=0, init=False)  # of what was loaded, or walked to

    def load(self, slot_of_unit: IntArray) -> float:
        """Begin with units on slots; the cost."""
        self.broken, _ = self._count(slot_of_unit)
        gpu_of_rank = self.units.gpu_of_rank(slot_of_unit)
        return float(self.units.problem.goal.value(gpu_of_rank))

    def anneal(self, incumbent: Incumbent, budget: Budget) -> None:
        """Send units elsewhere from the best placement, where that costs no more."""
        problem = self.units.problem
        draw = np.random.default_rng(problem.seed)
        slots, value = self.units.slot_of_unit(incumbent.best), incumbent.value
        for _ in range(problem.params.races * problem.fills_priced):
            if budget.is_over():
                return
            changed = self._changed(slots, int(draw.integers(len(slots))), draw)
            cost = incumbent.offer(NAME, self.units.gpu_of_rank(changed))
            incumbent.moves.count(MOVE, int(cost < value))
            if cost <= value:
                slots, value = changed, cost

    def walk(self, walk: Walk, moves: int, budget: Budget) -> Walk:
        """Send units by which rules are broken elsewhere, in so many moves or fewer.

        Fewer where for some time none mends any.
        """
        draw, slots = np.random.default_rng(walk.seed), walk.slots
        self.broken, by = self._count(slots)
        last, patience = 0, len(self.units.slots.gpus)
        for number in range(moves):
            if not by.any() or number - last > patience or budget.is_over():
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
        far = np.zeros_like(pin)
        if len(away):
            far = np.where(pin < 0, 0, away[pin, place])
        broken, by = int(far.sum()), far > 0
        for own, row in self._ties:
            width = int(row.max()) + 1
            pairs, pair, many = np.unique(
                own * width + row[place], return_inverse=True, return_counts=True
            )
            most = np.zeros(int(own.max()) + 1, dtype=np.int64)
            np.maximum.at(most, pairs // width, many)
            broken += len(own) - int(most.sum())
            by |= many[pair] < most[own]
        node_of_rank = np.empty(ranks.size, dtype=np.int64)
        node_of_rank[ranks] = self._nodes[place]
        for count in limits.counts:
            excess, box = count.excess(node_of_rank), count.box[node_of_rank]
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
        elif chosen := self._ties[draw.integers(len(self._ties) + 1) :]:
            own, row = chosen[0]
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
class RunsInFull(InFull):
    """Walks of runs: hosts change turns, each filled before the next."""

    units: Runs

    def _places(self, slots: IntArray) -> IntArray:
        return np.repeat(*slots.T)

    def _changed(
        self, slots: IntArray, unit: int, draw: np.random.Generator
    ) -> IntArray:
        """Runs once another host takes the turn of a unit's."""
        host = self.units.problem.machine.host_of_node
        order, _ = by_appearance(np.concatenate((host[slots[:, 0]], host)))
        here = host[self._places(slots)[unit]]
        there = host[self._goal(unit, slots, draw)]
        turn = np.argsort(order)
        turn[[here, there]] = turn[[there, here]]
        return self.units.filled(np.argsort(turn[host], kind="stable"))

    @cached_property
    def _nodes(self) -> IntArray:
        ranks, machine = self.units.slots.ranks, self.units.problem.machine
        nodes = np.arange(machine.num_nodes)[:, None]
        return np.broadcast_to(nodes, (machine.num_nodes, ranks.shape[1]))
