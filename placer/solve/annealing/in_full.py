"""Walks whose changes are priced, or checked against rules, in full.

Where the compiled cost was not built, or is not that of the job. What mends rules does
not look at the cost: what is broken is counted after every change. Of sets that are
torn all ranks count that are not where most of them are.
Shapes: R ranks, U units of s of them, N nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import BoolArray, IntArray, by_appearance
from placer.solve.annealing.fence import away
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
        gpu_of_rank = self.units.gpu_of_rank(slot_of_unit)
        self.broken, _ = self._count(self._nodes(slot_of_unit))
        return float(self.units.problem.goal.value(gpu_of_rank))

    def anneal(self, incumbent: Incumbent, budget: Budget) -> None:
        """Send units elsewhere from the best placement, where that costs no more."""
        units, params = self.units, self.units.problem.params
        draw = np.random.default_rng(units.problem.seed)
        slots, value = units.slot_of_unit(incumbent.best), incumbent.value
        for _ in range(params.races * units.problem.fills_priced):
            if budget.is_over():
                return
            unit = int(draw.integers(len(units.slots.ranks)))
            goal = self._goal(unit, self._nodes(slots), draw)
            changed = self._changed(slots, unit, goal, draw)
            cost = incumbent.offer(NAME, units.gpu_of_rank(changed))
            incumbent.moves.count(MOVE, int(cost < value))
            if cost <= value:
                slots, value = changed, cost

    def walk(self, walk: Walk, moves: int, budget: Budget) -> Walk:
        """Send units by which rules are broken elsewhere, in so many moves or fewer.

        It ends where for as many moves as there are slots none has mended any.
        """
        draw, slots = np.random.default_rng(walk.seed), walk.slots
        node = self._nodes(slots)
        self.broken, by = self._count(node)
        last, patience = 0, len(self.units.slots.gpus)
        for number in range(moves):
            if not by.any() or number - last > patience or budget.is_over():
                break
            unit = int(draw.choice(np.flatnonzero(by)))
            changed = self._changed(slots, unit, self._goal(unit, node, draw), draw)
            then = self._nodes(changed)
            broken, by_then = self._count(then)
            if broken <= self.broken:
                last = number if broken < self.broken else last
                slots, node, self.broken, by = changed, then, broken, by_then
        return walk._replace(slots=slots, broken=self.broken)

    def _nodes(self, slots: IntArray) -> IntArray:
        """Node of each rank; shape (R,)."""
        return self.units.problem.machine.node_of_gpu[self.units.gpu_of_rank(slots)]

    def _count(self, node: IntArray) -> tuple[int, BoolArray]:
        """How much is broken, and whether by each unit; shape (U,)."""
        broken, by = 0, np.zeros(len(node), dtype=bool)
        for rank, far in self._far.items():
            broken += int(far[node[rank]])
            by[rank] = far[node[rank]] > 0
        for own, row in self._ties:
            both = own * (int(row.max()) + 1) + row[node]
            pairs, pair, many = np.unique(both, return_inverse=True, return_counts=True)
            most = np.zeros(int(own.max()) + 1, dtype=np.int64)
            np.maximum.at(most, pairs // (int(row.max()) + 1), many)
            broken += len(own) - int(most.sum())
            by |= many[pair] < most[own]
        for count in self.units.problem.limits.counts:
            excess, box = count.excess(node), count.box[node]
            broken += int(excess.sum())
            by[(box >= 0) & (excess[box] > 0)] = True
        return broken, np.asarray(by[self.units.slots.ranks].any(axis=1))

    def _goal(self, unit: int, node: IntArray, draw: np.random.Generator) -> int:
        """A node where a rank of a unit may be, else where it is."""
        homes, ranks = self.units.problem.limits.nodes_of_rank, self.units.slots.ranks
        goals = np.arange(self.units.problem.machine.num_nodes)
        if own := [sorted(homes[r]) for r in ranks[unit].tolist() if r in homes]:
            goals = np.array(own[draw.integers(len(own))])
        return int(draw.choice(goals) if len(goals) else node[ranks[unit, 0]])

    def _changed(
        self, slots: IntArray, unit: int, goal: int, draw: np.random.Generator
    ) -> IntArray:
        """Slots once a unit goes to a node, alone, with its set or its domain.

        Who is there takes its place.
        """
        at = self.units.problem.machine.node_of_gpu[self.units.slots.gpus]
        open_to = np.flatnonzero((at == goal).any(axis=1))
        if not len(open_to):
            return slots
        to = int(draw.choice(open_to))
        rows = self.units.problem.machine.domain_of_node[:-1, at[:, 0]]
        apart = [row for row in rows if row[to] != row[slots[unit]]]
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

    @cached_property
    def _far(self) -> dict[int, IntArray]:
        """Tiers from each node (N,) to the homes of each pinned rank."""
        homes = self.units.problem.limits.nodes_of_rank
        domains = self.units.problem.machine.domain_of_node
        of_home = {own: away(domains, own) for own in {*homes.values()}}
        return {rank: of_home[own] for rank, own in homes.items()}

    @cached_property
    def _ties(self) -> list[tuple[IntArray, IntArray]]:
        """Set of each rank that must lie in one domain, and domain of each node."""
        rows, slots = self.units.problem.machine.domain_of_node, self.units.slots
        found = list[tuple[IntArray, IntArray]]()
        for tier, own in self.units.tied:
            label = np.empty(slots.ranks.size, dtype=np.int64)
            label[slots.ranks] = own[:, None]
            found.append((label, rows[tier]))
        return found

    @cached_property
    def _labels(self) -> list[IntArray]:
        """Sets that move together: of one unit, of families, of all; each (U,)."""
        single = np.arange(len(self.units.slots.ranks))
        tied = [own for _, own in self.units.tied]
        return [single, np.zeros_like(single), *tied, *self.units.labels()]


@dataclass(eq=False)
class RunsInFull(InFull):
    """Walks of runs: hosts change turns, each filled before the next."""

    units: Runs

    def _changed(
        self, slots: IntArray, unit: int, goal: int, _draw: np.random.Generator
    ) -> IntArray:
        """Runs once another host takes the turn of a unit's."""
        host = self.units.problem.machine.host_of_node
        order, _ = by_appearance(np.concatenate((host[slots[:, 0]], host)))
        here, there = host[np.repeat(*slots.T)[unit]], host[goal]
        turn = np.argsort(order)
        turn[[here, there]] = turn[[there, here]]
        return self.units.filled(np.argsort(turn[host], kind="stable"))
