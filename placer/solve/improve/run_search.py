"""Local search on the hop cost where nodes hold runs of ranks of several lengths.

Units of one size, as `hop_search` moves them, do not exist there: what moves is all
that a node holds. It goes to a node with room for it, against what that node holds.
Simulated annealing on plain numbers: a change touches two runs and their neighbours.

Shapes: N nodes, U runs, E edges between runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from placer.arrays import IntArray
from placer.solve.improve.hop_search import links_between
from placer.solve.improve.moves import FAR_SHARE
from placer.solve.problem.colocation import colocation_of
from placer.solve.run.cooling import accepts, cooling
from placer.solve.tree.base import base_tier

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

T = TypeVar("T")

NAME = "runs annealed"
# Temperatures at the start and the end, in the median of what changes cost.
HEAT = (0.5, 0.003)
SAMPLED = 200  # changes
LOOKED_AT = 256  # changes between two looks at the clock
KNOWN_HOPS = 1 << 18  # pairs of nodes whose distance is kept


def runs_annealed(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Exchange what nodes hold, where these are runs of different lengths."""
    best, job = incumbent.gpu_of_rank, problem.job
    if problem.goal.name != "hop-cost" or job.launcher == "free" or best is None:
        return
    node_of_rank = problem.machine.node_of_gpu[best]
    node, run, length = np.unique(node_of_rank, return_inverse=True, return_counts=True)
    if (length == length[0]).all() and problem.choices:
        return
    name = incumbent.method
    for number in range(problem.params.run_walks):
        search = _Runs(problem, run, node, problem.seed + number)
        found = search.better(problem.params.run_changes, budget)
        if found is not None:
            node = found
            placed = problem.machine.gpus_on(node[run])
            incumbent.offer(f"{name}, {NAME}", placed)
        if incumbent.ends():
            return


class _Runs:
    """Runs and the nodes that hold them.

    Parameters
    ----------
    run : ndarray, shape (R,)
        Of every rank.
    node : ndarray, shape (U,)
        That holds each run.
    """

    def __init__(
        self, problem: Problem, run: IntArray, node: IntArray, seed: int
    ) -> None:
        machine = problem.machine
        self.draw = _numbers(np.random.default_rng(seed)).__next__
        self.home, self.length = node.tolist(), np.bincount(run).tolist()
        self.room = machine.gpus_of_node.tolist()
        self.held = [-1] * len(self.room)
        for number, at in enumerate(self.home):
            self.held[at] = number
        # Domains of all tiers of each node, innermost first, and hops to those that
        # share a tier.
        self.domains = list(zip(*machine.domain_of_node.tolist(), strict=True))
        self.hops = [tier.distance for tier in machine.tiers]
        self.hop = lru_cache(KNOWN_HOPS)(self._hop)
        inner = machine.domain_of_node[min(base_tier(machine) + 1, len(self.hops) - 1)]
        self.near = [
            np.flatnonzero(inner == d).tolist() for d in range(inner.max() + 1)
        ]
        self.inner = inner.tolist()
        self.enclosure = machine.domain_of_node[_enclosing_tier(problem, run)].tolist()
        links = links_between(problem.hops.axes, run)
        self.others: list[list[tuple[int, float]]] = [[] for _ in self.home]
        for (one, other), weight in zip(
            links.edges.tolist(), links.weight.tolist(), strict=True
        ):
            self.others[one].append((other, weight))
            self.others[other].append((one, weight))

    def better(self, changes: int, budget: Budget) -> IntArray | None:
        """Node of each run in the best placement met; None if the start is that."""
        sampled = [abs(self._delta(*self._drawn())) for _ in range(SAMPLED)]
        usual = float(np.median([one for one in sampled if one] or [0.0]))
        cost = least = 0.0
        best: list[int] | None = None
        for heat in cooling(*HEAT, changes, budget, LOOKED_AT):
            run, there = self._drawn()
            delta = self._delta(run, there)
            if not accepts(delta, usual * heat, self.draw):
                continue
            self._exchange(run, there)
            cost += delta
            if cost < least - 1e-9 * usual:
                least, best = cost, [*self.home]
        return None if best is None else np.array(best)

    def _drawn(self) -> tuple[int, int]:
        """A run and a node, mostly near a neighbour of its, with room for either."""
        run = self._one_of(range(len(self.home)))
        if self.draw() < FAR_SHARE or not self.others[run]:
            there = self._one_of(range(len(self.room)))
        else:
            beside = self.home[self._one_of(self.others[run])[0]]
            there = self._one_of(self.near[self.inner[beside]])
        here, other = self.home[run], self.held[there]
        fits = self.length[run] <= self.room[there] and (
            other < 0 or self.length[other] <= self.room[here]
        )
        may = fits and self.enclosure[here] == self.enclosure[there]
        return run, there if may else here

    def _one_of(self, choices: Sequence[T]) -> T:
        return choices[int(self.draw() * len(choices))]

    def _delta(self, run: int, there: int) -> float:
        """What it adds to the cost if a run goes to a node, against what is there."""
        here, other = self.home[run], self.held[there]
        if here == there:
            return 0.0
        found = self._cost(run, there, other) - self._cost(run, here, other)
        if other >= 0:
            found += self._cost(other, here, run) - self._cost(other, there, run)
        return found

    def _cost(self, run: int, node: int, but: int) -> float:
        """Cost of the edges of a run on a node, those to one other run aside."""
        found = 0.0
        for other, weight in self.others[run]:
            if other != but:
                found += weight * self.hop(node, self.home[other])
        return found

    def _hop(self, node: int, other: int) -> float:
        """Distance between two nodes, that of the innermost domain that holds both."""
        both = zip(self.domains[node], self.domains[other], strict=True)
        distance: float = self.hops[sum(a != b for a, b in both)]
        return distance

    def _exchange(self, run: int, there: int) -> None:
        """A run goes to a node, and what is there to the run's."""
        here, other = self.home[run], self.held[there]
        if here == there:
            return
        self.home[run], self.held[there] = there, run
        self.held[here] = other
        if other >= 0:
            self.home[other] = here


def _numbers(rng: np.random.Generator) -> Iterator[float]:
    """Random numbers from 0 to 1."""
    while True:
        yield from rng.random(LOOKED_AT).tolist()


def _enclosing_tier(problem: Problem, run: IntArray) -> int:
    """First tier in whose domains a requirement holds several runs; else the last."""
    label = colocation_of(problem.machine, problem.job, 1).label
    for tier, of_rank in enumerate(label[:-1]):
        several = np.unique(np.stack((of_rank, run)), axis=1).shape[1]
        if several > len(np.unique(of_rank)) and len(np.unique(of_rank)) < len(run):
            return tier
    return len(label) - 1
