"""Chains of nodes that hold runs of ranks, annealed for the slowest replica.

All groups in their order are a row of chains (`cut_at_nodes`). A walk moves chains
along the row, exchanges them, and makes others of as many groups, priced by the least
part of each group. See docs/method.md, "Chains annealed". Shapes: R ranks, U units, C
sets of replicas, P stages, A units of a stage, S pieces of a unit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import log
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.solve.bounds.experts.expert_parts import stage_parts
from placer.solve.bounds.experts.part_runs import are_runs
from placer.solve.construct.by_nodes.chain_kinds import Chain, cut_chains, least_parts
from placer.solve.construct.by_nodes.cut_at_nodes import LONGEST, MOST_RANKS, SORTS
from placer.solve.construct.by_nodes.seated_hosts import NAME as SEATED
from placer.solve.construct.by_nodes.seated_hosts import Seats
from placer.solve.construct.experts.parts_pace import Pace
from placer.solve.problem.colocation import colocation_of
from placer.solve.run.cooling import accepts, cooling, exchanged
from placer.solve.tree.fill import tree_order

if TYPE_CHECKING:
    from placer.solve.bounds.experts.expert_parts import StageParts
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent

NAME = "chains of nodes, annealed"
WALKS = 2  # from each placement
# Changes of a walk: at most, and times the units that are priced with each.
MOST_CHANGES, MOST_PRICED = 300_000, 60_000_000
LOOK = 256  # changes between two looks at the clock
ROUNDING = 1e-9
# Shares of the slowest replica's step: how far below it a replica still counts, and
# what a step may grow by at the beginning and at the end.
NEARLY, HOT, COLD = 0.004, 0.008, 0.0003
# How often a chain moves along the row, and changes places with others; else two chains
# become two others. Most move by one place, some by fewer than `FAR`.
MOVED, EXCHANGED, BY_ONE, FAR = 0.5, 0.65, 0.7, 6


def walked_chains(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Chains of the elite pool, annealed for the step time."""
    # Where nodes must hold equal blocks no group is cut in another way.
    is_free = problem.job.launcher == "free" or problem.forced_block
    if problem.goal.name == "time" and not is_free:
        incumbent.offer_all(chain_fills(problem, incumbent, budget.share(2)))


def chain_fills(
    problem: Problem, incumbent: Incumbent, budget: Budget
) -> Iterator[Candidate]:
    """(name, GPU of every rank) of what walks end with, laid in each order."""
    machine = problem.machine
    row = Row.of(problem)
    if row is None:
        return
    seats = Seats.of(problem)
    laid = [row.chains(machine.node_of_gpu[gpus]) for gpus in incumbent.elite]
    starts = [one for one in laid if one and len({chain.least for chain in one}) > 1]
    for turn, (number, start) in product(range(WALKS), enumerate(starts)):
        if budget.is_over() or incumbent.is_within(problem.params.parts_walk_gap):
            return
        kinds = row.kinds(min(min(chain.least) for chain in start))
        walk = ChainWalk(row, kinds, start, [problem.seed, number, turn])
        walk.go(budget)
        for order in permutations(("pp", "dp")):
            nodes = row.node_of_rank(walk.best, order)
            gpus = machine.gpus_on(nodes)
            yield NAME, gpus
            if seats is not None:
                nodes = seats.seated(nodes, budget)
                yield f"{NAME}, {SEATED}", machine.gpus_on(nodes)


@dataclass(frozen=True, eq=False)
class Row:
    """Units in the order of their ranks, and nodes with room for pieces of them.

    Attributes
    ----------
    seconds : ndarray, shape (S + 1,), s
        Of an all-to-all, by the pieces of the least part.
    slot : ndarray, shape (C, P, A)
        Units that replicas of each set wait for, stage by stage.
    """

    problem: Problem
    parts: StageParts
    pace: Pace
    seconds: FloatArray
    slot: IntArray

    @classmethod
    def of(cls, problem: Problem) -> Row | None:
        """None where nodes do not hold runs of units, or parts do not matter."""
        machine, axes = problem.machine, problem.job.parallelism
        colocation = colocation_of(machine, problem.job, 0)
        parts = stage_parts(problem.model, colocation)
        # Chains take nodes, which are the domains only where nodes have no islands.
        if parts is None or machine.node_tier or not are_runs(parts):
            return None
        units, times = parts.units, parts.seconds(1)
        if len(times) == 1:
            return None
        seconds = np.zeros(units.pieces + 1)
        seconds[list(times)] = list(times.values())
        unit = np.arange(axes.world_size) // (units.pieces * units.ranks)
        place = axes.coordinates["dp"] * axes.pp + axes.coordinates["pp"]
        waits = np.unique(place * units.number + unit) % units.number
        slot = np.unique(waits.reshape(axes.dp, axes.pp, units.alike), axis=0)
        pace = Pace.of(parts, min(times.values()), max(times.values()))
        return cls(problem, parts, pace, seconds, slot)

    def chains(self, node_of_rank: IntArray) -> list[Chain] | None:
        """Chains of a placement, None where a piece is divided."""
        ranks, size = self.parts.units.ranks, self.parts.units.pieces
        ends = np.append(np.flatnonzero(np.diff(node_of_rank)) + 1, len(node_of_rank))
        if (ends % ranks).any():
            return None
        held = np.diff(ends // ranks, prepend=0).tolist()
        rooms = self.parts.room[node_of_rank[ends - 1]].tolist()
        found, first = [], 0
        for last in (np.flatnonzero(ends // ranks % size == 0) + 1).tolist():
            mine = tuple(held[first:last])
            least = least_parts(mine, size)
            found.append(Chain(mine, tuple(rooms[first:last]), least))
            first = last
        return found

    def kinds(self, least: int) -> Mapping[int, Sequence[Chain]]:
        """Chains by their units: nodes that hold some whole, and cut ones.

        Parameters
        ----------
        least : int, pieces
            Of a part of a unit.
        """
        size = self.parts.units.pieces
        rooms, nodes = np.unique(self.parts.room, return_counts=True)
        found: defaultdict[int, list[Chain]] = defaultdict(list)
        for room in rooms.tolist():
            for units in range(1, room // size + 1):
                found[units].append(Chain((units * size,), (room,), (size,) * units))
        usual = rooms[np.argsort(-nodes, kind="stable")[:SORTS]].tolist()
        sorts = sorted(room for room in usual if room % size)
        longest = max(1, min(LONGEST, MOST_RANKS // size))
        for chain in cut_chains(longest, size, least, sorts, self.seconds):
            if len(chain.held) > 1:
                found[len(chain.least)].append(chain)
        return found

    def steps(self, chains: Sequence[Chain]) -> FloatArray:
        """Steps of the replicas of each set; shape (C,), s."""
        least = [low for chain in chains for low in chain.least]
        return self.pace.steps(self.seconds[least][self.slot].max(axis=-1))

    def node_of_rank(self, chains: Sequence[Chain], order: Sequence[str]) -> IntArray:
        """Node of every rank, chains taking nodes along the tree; shape (R,).

        Those first that come first along the last axis of an order.
        """
        parts, axes = self.parts, self.problem.job.parallelism
        free: defaultdict[int, list[int]] = defaultdict(list)
        for node in tree_order(self.problem.machine)[::-1].tolist():
            free[int(parts.room[node])].append(node)
        each = parts.units.pieces * parts.units.ranks
        ends = each * np.cumsum([len(chain.least) for chain in chains])
        first = np.append(0, ends[:-1])
        found = np.empty(axes.world_size, dtype=np.int64)
        for at in np.lexsort([axes.coordinates[axis][first] for axis in order]):
            chain = chains[at]
            taken = [free[room].pop() for room in chain.rooms]
            held = np.array(chain.held) * parts.units.ranks
            found[first[at] : ends[at]] = np.repeat(taken, held)
        return found


class ChainWalk:
    """A row of chains under annealing.

    Parameters
    ----------
    kinds : mapping of int to sequence of Chain
        That chains may become, by their units.
    """

    def __init__(
        self,
        row: Row,
        kinds: Mapping[int, Sequence[Chain]],
        chains: Sequence[Chain],
        seed: Sequence[int],
    ) -> None:
        self.row, self.kinds, self.rng = row, kinds, np.random.default_rng(seed)
        self.chains, self.best = list(chains), list(chains)
        self.free = Counter(row.parts.room.tolist())
        for chain in chains:
            self.free.subtract(chain.rooms)

    def go(self, budget: Budget) -> None:
        """Changes, colder and colder."""
        least, energy = self._priced(self.chains)
        scale = least
        changes = min(MOST_CHANGES, MOST_PRICED // self.row.slot.size)
        for heat in cooling(HOT, COLD, changes, budget, LOOK):
            turn, free = self.rng.random(), self.free
            if turn < MOVED:
                changed = self._moved()
            elif turn < EXCHANGED:
                changed = self._exchanged()
            else:
                changed, free = self._remade()
            if changed is None:
                continue
            step_s, after = self._priced(changed)
            if not accepts(after - energy, scale * heat, self.rng.random):
                continue
            self.chains, self.free, energy = changed, free, after
            if step_s < least * (1 - ROUNDING):
                least, self.best = step_s, changed

    def _priced(self, chains: Sequence[Chain]) -> tuple[float, float]:
        """The slowest step, and with a little more for others nearly as slow, s."""
        steps = self.row.steps(chains)
        top = float(steps.max())
        near = NEARLY * top
        return top, top + near * log(float(np.exp((steps - top) / near).sum()))

    def _moved(self) -> list[Chain] | None:
        """A chain changes places with the next one, or goes a little further."""
        chains, one = self.chains, self._some()
        by = 1 if self.rng.random() < BY_ONE else int(self.rng.integers(1, FAR))
        other = one + by
        if other >= len(chains) or chains[one] == chains[other]:
            return None
        first, last = chains[one], chains[other]
        between = chains[one + 1 : other]
        if self.rng.random() < 1 / 2:
            return [*chains[:one], last, *between, first, *chains[other + 1 :]]
        return [*chains[:one], *between, last, first, *chains[other + 1 :]]

    def _exchanged(self) -> list[Chain] | None:
        """A chain changes places with others that have as many units together."""
        chains, one, begin = self.chains, self._some(), self._some()
        units = [len(chain.least) for chain in chains]
        found = exchanged(chains, units, one, begin)
        return None if found is None or found[1] == [chains[one]] else found[0]

    def _remade(self) -> tuple[list[Chain] | None, Counter[int]]:
        """Two chains become others, one unit longer and shorter or not; free nodes."""
        chains, one = self.chains, self._some()
        other = one + 1 if self.rng.random() < 1 / 2 else self._some()
        if other >= len(chains) or other == one:
            return None, self.free
        longer = int(self.rng.choice((-1, 0, 0, 1)))
        free, changed = self.free.copy(), list(chains)
        for at, more in ((one, longer), (other, -longer)):
            units = len(chains[at].least) + more
            kinds = self.kinds.get(units, ())
            if units and not kinds:
                return None, self.free
            free.update(chains[at].rooms)
            if units:
                changed[at] = kinds[int(self.rng.integers(len(kinds)))]
                free.subtract(changed[at].rooms)
        if min(free.values()) < 0:
            return None, self.free
        left = {one: len(chains[one].least) + longer}
        left[other] = len(chains[other].least) - longer
        return [c for at, c in enumerate(changed) if left.get(at, 1)], free

    def _some(self) -> int:
        return int(self.rng.integers(len(self.chains)))
