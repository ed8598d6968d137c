"""Every placement of a small job, equal machines counted once.

Units (a block of ranks that one node holds, or a single rank) are put on nodes one
after the other; in a node-contiguous launch, runs of consecutive ranks of any length.
Domains that look alike and hold nothing yet are interchangeable, so only the first of
them is tried: each placement is met once up to a symmetry of the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import factorial, inf, prod

import numpy as np

from placer.base.arrays import IntArray
from placer.placement.placement import Placement
from placer.solve.problem.colocation import Colocation, colocation_of
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.solve.tree.domains import node_capacity
from placer.solve.tree.symmetry import Symmetry
from placer.topology.machine import Machine

STEPS_BETWEEN_STOPS = 1024
# Nodes that a small job fills. Of so few ranks, placements anywhere are counted before
# they are listed: numbers stay floats, and few nodes look alike.
FEW_NODES, FEW_RANKS = 8, 100


@dataclass(frozen=True, eq=False)
class Every:
    """Placements of a job, domains that look alike being tried once."""

    nodes_of_rank: list[IntArray]  # each (R,)
    complete: bool  # whether these are all there are


def few_enumerated(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Offer every placement where there are very few: sooner done than programs."""
    params = problem.params
    most = min(params.listed[problem.goal.name], params.few_listed)
    every = every_placement(problem, budget, most=most)
    if every.complete:
        _offer(problem, incumbent, every)


def enumerated(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Offer every placement of a small job; complete, that is a proof."""
    _offer(problem, incumbent, every_placement(problem, budget))


def _offer(problem: Problem, incumbent: Incumbent, every: Every) -> None:
    for node_of_rank in every.nodes_of_rank:
        if incumbent.ends():
            return
        incumbent.offer("enumeration", problem.machine.gpus_on(node_of_rank))
    if every.complete and incumbent.is_whole and problem.nodes_decide:
        text = (
            f"all {len(every.nodes_of_rank):,} ways to place "
            f"{problem.job.world_size} ranks, equal domains counted once"
        )
        incumbent.prove(float(incumbent.value), text)


def listed_under_rules(
    problem: Problem, budget: Budget, most: int
) -> list[IntArray] | None:
    """GPU of every rank in all placements of a very small job that keep its rules.

    Nodes of which rules say different things are not alike. Only the placements count
    that use the fewest hosts to avoid. None where these are not all there are.
    """
    every = every_placement(problem, budget, problem.limits.marks, most)
    if not (every.complete and problem.nodes_decide):
        return None
    legal = []
    for node_of_rank in every.nodes_of_rank:
        if budget.is_over():
            return None
        gpu_of_rank = Placement.on_nodes(problem.machine, node_of_rank).gpu_of_rank
        if problem.allows(gpu_of_rank):
            legal.append(gpu_of_rank)
    avoided = [problem.avoided(gpu_of_rank) for gpu_of_rank in legal]
    least = min(avoided, default=0)
    return [g for g, used in zip(legal, avoided, strict=True) if used == least]


def every_placement(
    problem: Problem,
    budget: Budget,
    marks: IntArray | None = None,
    most: int | None = None,
) -> Every:
    """All placements of a job of few units; none of a larger one.

    ``marks`` ((N,)): numbers that also tell nodes apart. ``most``: placements that are
    listed; by default as many as for a job without rules.
    """
    topology, job, colocation = problem.machine, problem.job, problem.colocation
    is_free, ranks = job.launcher == "free", job.world_size
    largest = 1 if is_free else int(topology.gpus_of_node.max())
    is_small = ranks <= FEW_NODES * largest
    if not is_small and not (is_free and ranks <= FEW_RANKS):
        return Every([], complete=False)
    most = most or problem.params.listed[problem.goal.name]
    alike, anyhow = Symmetry(topology, marks), colocation_of(topology, job, 1)
    room = topology.gpus_of_node
    may_be_anywhere = is_free and len(np.unique(anyhow.label[0])) == ranks
    if not (is_small or (may_be_anywhere and fewest(alike, room, ranks) < most)):
        return Every([], complete=False)

    def walk(shape: Colocation) -> Enumeration:
        capacity = np.minimum(node_capacity(topology, shape.block), room)
        steps = most * (ranks if may_be_anywhere else 2)
        return Enumeration(topology, shape, capacity, steps, alike, budget.is_over)

    def listed(nodes_of_rank: Iterator[IntArray]) -> list[IntArray]:
        return list(islice(nodes_of_rank, most))

    anywhere = walk(anyhow)
    found = listed(anywhere.walk(in_runs=not is_free))
    complete = anywhere.complete and len(found) < most
    if not (complete or is_free) and colocation.block > 1:
        # Too many ways to give nodes different numbers of ranks: equal ones only.
        found = listed(walk(colocation).walk(in_runs=False))
    return Every(found if complete else found[: problem.params.listed_sample], complete)


def fewest(symmetry: Symmetry, room_of_node: IntArray, ranks: int) -> float:
    """There are at least so many placements of ranks that may be anywhere.

    ``n!`` times the coefficient of ``x**n`` in the product over all nodes of ``1 + x +
    .. + x**c / c!``, over the ways to exchange domains that look alike. By hand: 9
    ranks on nodes of 4 and 5 have 126, 4 on two nodes of 2 have 6 / 2. Infinite where
    there are too many nodes to count.
    """
    if len(room_of_node) > FEW_NODES:
        return inf
    ways = np.ones(1)
    for room in room_of_node.tolist():
        sizes = range(min(room, ranks) + 1)
        ways = np.convolve(ways, [1 / factorial(size) for size in sizes])[: ranks + 1]
    if len(ways) <= ranks:
        return 0.0
    alike = [count for row in symmetry.shape for count in np.bincount(row).tolist()]
    return float(ways[ranks]) * factorial(ranks) / prod(map(factorial, alike))


class Enumeration:
    """A depth-first walk over all placements that keep the sets together.

    ``colocation``: with a block of at least 1: that many consecutive ranks form a unit.
    ``capacity_of_node`` ((N,)): ranks each node may hold. ``most_steps``: units put on
    a node, again and again, after which the walk is given up. ``symmetry``: of the
    machine: which domains are alike. ``stop``: called now and then; True gives the
    walk up.
    """

    def __init__(
        self,
        topology: Machine,
        colocation: Colocation,
        capacity_of_node: IntArray,
        most_steps: int,
        symmetry: Symmetry,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.domains = topology.domain_of_node
        self.block = colocation.block
        self.steps_left = most_steps
        self.stop = stop
        self.room = (capacity_of_node // colocation.block).tolist()
        first = np.arange(0, colocation.label.shape[1], colocation.block)
        self.label = colocation.label[:, first]
        self.num_units = len(first)
        self.node_of_unit = np.zeros(self.num_units, dtype=np.int64)
        self.shape = symmetry.shape
        self.used = [
            np.zeros(int(row.max()) + 1, dtype=np.int64) for row in self.domains
        ]
        self.home: list[dict[int, int]] = [{} for _ in self.domains]

    @property
    def complete(self) -> bool:
        """Whether the walk, when it has ended, has met every placement."""
        return self.steps_left > 0

    def walk(self, *, in_runs: bool) -> Iterator[IntArray]:
        """Node of every rank, shape (R,) each; a node may hold one run of units."""
        for nodes in self._extend_runs(0) if in_runs else self._extend(0):
            yield np.repeat(nodes, self.block)

    def _extend(self, unit: int) -> Iterator[IntArray]:
        """Complete the placement from ``unit`` on, in every way."""
        if unit == self.num_units:
            yield self.node_of_unit.copy()
            return
        for node in self._different(self.room):
            if self._allowed(unit, node):
                settled = self._put(unit, node)
                yield from self._extend(unit + 1)
                self._take_back(unit, node, settled)

    def _extend_runs(self, first: int) -> Iterator[IntArray]:
        """Complete the placement from unit ``first`` on by runs on unused nodes."""
        if first == self.num_units:
            yield self.node_of_unit.copy()
            return
        pairs = zip(self.used[0], self.room, strict=True)
        unused = [0 if used else room for used, room in pairs]
        spare = sum(unused) - (self.num_units - first)
        for node in self._different(unused):
            # A shorter run would leave too little room for the rest.
            shortest = self.room[node] - spare
            run: list[list[int]] = []
            end = first
            while end < self.num_units and self.room[node] and self._allowed(end, node):
                run.append(self._put(end, node))
                end += 1
                if len(run) >= shortest or end == self.num_units:
                    yield from self._extend_runs(end)
            for settled in reversed(run):
                end -= 1
                self._take_back(end, node, settled)

    def _different(self, room: list[int]) -> Iterator[int]:
        """Nodes with room; of those that look alike, one."""
        tried = set()
        for node, free in enumerate(room):
            if free and self.steps_left > 0:
                looks = self._looks(node)
                if looks not in tried:
                    tried.add(looks)
                    yield node

    def _allowed(self, unit: int, node: int) -> bool:
        """Whether the unit's sets already live where ``node`` is, or nowhere."""
        for t, home in enumerate(self.home):
            domain = int(self.domains[t, node])
            if home.get(int(self.label[t, unit]), domain) != domain:
                return False
        return True

    def _looks(self, node: int) -> tuple[int, ...]:
        """What tells nodes apart: used domains by number, empty ones by shape."""
        inside = self.domains[:, node].tolist()
        return tuple(
            domain if self.used[t][domain] else ~self.shape[t][domain]
            for t, domain in enumerate(inside)
        )

    def _put(self, unit: int, node: int) -> list[int]:
        """Place a unit; tiers at which its part found its home."""
        self.steps_left -= 1
        if self.steps_left % STEPS_BETWEEN_STOPS == 0 and self.stop():
            self.steps_left = 0
        self.node_of_unit[unit] = node
        self.room[node] -= 1
        settled = []
        for t, home in enumerate(self.home):
            domain = int(self.domains[t, node])
            self.used[t][domain] += 1
            part = int(self.label[t, unit])
            if part not in home:
                home[part] = domain
                settled.append(t)
        return settled

    def _take_back(self, unit: int, node: int, settled: list[int]) -> None:
        self.room[node] += 1
        for t in range(len(self.home)):
            self.used[t][self.domains[t, node]] -= 1
        for t in settled:
            del self.home[t][int(self.label[t, unit])]
