"""Every placement of a small job, equal machines counted once.

Ranks are put on nodes one after the other; in a node-contiguous launch, runs of
consecutive ranks of any length. Domains that look alike and hold nothing yet are
interchangeable, so only the first of them is tried: each placement is met once up to a
symmetry of the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from math import inf, lgamma, log

import numpy as np

from placer.base.arrays import IntArray, grouped
from placer.solve.problem.colocation import Colocation, colocation_of
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.solve.tree.symmetry import Symmetry


def few_enumerated(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Offer every placement where there are very few: sooner done than programs."""
    enumerated(problem, incumbent, budget, problem.params.few_listed)


def enumerated(
    problem: Problem, incumbent: Incumbent, budget: Budget, most: float = inf
) -> None:
    """Offer every placement of a small job, which is a proof; fewer than ``most``."""
    listed = problem.params.listed[problem.goal.name]
    every = every_placement(problem, budget, int(min(listed, most)))
    if every is not None:
        offered(problem, incumbent, map(problem.machine.gpus_on, every))


def offered(problem: Problem, incumbent: Incumbent, every: Iterable[IntArray]) -> bool:
    """Offer all placements (R,) that may be, which is a proof; whether all were."""
    count = 0
    for gpu_of_rank in every:
        if incumbent.ends():
            return False
        count += incumbent.offer("enumeration", gpu_of_rank) < inf
    if incumbent.is_whole and problem.nodes_decide:
        kept = " under the rules" if problem.job.rules else ""
        text = (
            f"all {count:,} ways to place {problem.job.world_size} ranks{kept}, "
            "equal domains counted once"
        )
        incumbent.prove(float(incumbent.value), text)
    return True


def every_placement(
    problem: Problem, budget: Budget, most: int
) -> list[IntArray] | None:
    """Node of every rank, (R,), in all placements of a job of few units.

    Domains that look alike, of which rules say the same, are tried once. None where
    there are too many: ``most`` or more.
    """
    topology, job = problem.machine, problem.job
    is_free, ranks, room = job.launcher == "free", job.world_size, topology.gpus_of_node
    alike = Symmetry(topology, problem.limits.marks)
    anyhow, few_nodes = colocation_of(topology, job, 1), problem.params.listed_nodes
    may_be_anywhere = is_free and len(np.unique(anyhow.label[0])) == ranks
    is_small = ranks <= few_nodes * (1 if is_free else int(room.max()))
    if not is_small and not (
        may_be_anywhere
        and len(room) <= few_nodes
        and log_fewest(alike, room, ranks) < log(most)
    ):
        return None
    steps = most * (ranks if may_be_anywhere else 2)
    walk = Enumeration(problem, anyhow, steps, alike, budget.is_over)
    found = list(islice(walk.placements(), most))
    return found if walk.complete and len(found) < most else None


def log_fewest(symmetry: Symmetry, room_of_node: IntArray, ranks: int) -> float:
    """Logarithm of how many placements there are at least, if ranks may be anywhere.

    Ways to fill the first nodes with ``n`` ranks, ``n! / (c! d! ..)`` where they hold
    ``c``, ``d`` and so on, over the ways to exchange those that look alike. By hand: 9
    ranks on nodes of 4 and 5 have 126, 4 on two nodes of 2 have 6 / 2.
    """
    filled = np.diff(np.minimum(np.cumsum(room_of_node), ranks), prepend=0)
    alike = np.bincount(np.array(symmetry.shape[0])[filled > 0])
    others = sum(lgamma(count + 1) for count in (*filled.tolist(), *alike.tolist()))
    return lgamma(ranks + 1) - others


class Enumeration:
    """A depth-first walk over all placements that keep the sets together.

    ``most_steps``: ranks put on a node, again and again, after which the walk is given
    up. ``symmetry``: of the machine: which domains are alike. ``stop``: True gives the
    walk up.
    """

    def __init__(
        self,
        problem: Problem,
        colocation: Colocation,
        most_steps: int,
        symmetry: Symmetry,
        stop: Callable[[], bool],
    ) -> None:
        self.in_runs = problem.job.launcher != "free"
        self.domains = problem.machine.domain_of_node
        self.steps_left = most_steps
        self.stop = stop
        self.room = problem.machine.gpus_of_node.tolist()
        self.label = colocation.label
        self.ranks = colocation.label.shape[1]
        self.node_of_rank = np.zeros(self.ranks, dtype=np.int64)
        self.shape = symmetry.shape
        self.used = [
            np.zeros(int(row.max()) + 1, dtype=np.int64) for row in self.domains
        ]
        # The last rank before each of the same set; -1 for the first of a set.
        self.before = np.full(self.label.shape, -1)
        for before, label in zip(self.before, self.label, strict=True):
            for ranks in grouped(np.arange(self.ranks), label):
                before[ranks[1:]] = ranks[:-1]

    @property
    def complete(self) -> bool:
        """Whether the walk, when it has ended, has met every placement."""
        return self.steps_left > 0

    def placements(self) -> Iterator[IntArray]:
        """Node of every rank, (R,), in every way."""
        ways, placed = [self._nodes(0)], 0
        while ways:
            rank = len(ways) - 1
            if placed > rank:
                placed = rank
                self._count(int(self.node_of_rank[rank]), -1)
            node = next(ways[-1], None)
            if node is None:
                ways.pop()
                continue
            self.steps_left = 0 if self.stop() else self.steps_left - 1
            self.node_of_rank[rank] = node
            self._count(node, 1)
            placed = rank + 1
            if placed < self.ranks:
                ways.append(self._nodes(placed))
            else:
                yield self.node_of_rank.copy()

    def _nodes(self, rank: int) -> Iterator[int]:
        """Nodes that may take a rank; of those that look alike, one.

        In a launch by nodes that of the rank before, or one without ranks, where such
        have room for all that follow.
        """
        room = self.room
        if self.in_runs:
            last = self.node_of_rank[rank - 1] if rank else -1
            pairs = enumerate(zip(self.used[0], self.room, strict=True))
            room = [0 if used and n != last else free for n, (used, free) in pairs]
            if sum(room) < self.ranks - rank:
                return
        tried = set()
        for node, free in enumerate(room):
            if free and self.steps_left > 0:
                looks = self._looks(node)
                if looks not in tried and self._allowed(rank, node):
                    tried.add(looks)
                    yield node

    def _allowed(self, rank: int, node: int) -> bool:
        """Whether the rank's sets already live where ``node`` is, or nowhere."""
        before, inside = self.before[:, rank], self.domains[:, node]
        homes = self.domains[np.arange(len(before)), self.node_of_rank[before]]
        return bool(((before < 0) | (homes == inside)).all())

    def _looks(self, node: int) -> tuple[int, ...]:
        """What tells nodes apart: used domains by number, empty ones by shape."""
        inside = self.domains[:, node].tolist()
        return tuple(
            domain if self.used[t][domain] else ~self.shape[t][domain]
            for t, domain in enumerate(inside)
        )

    def _count(self, node: int, more: int) -> None:
        """A rank more on a node, or one less."""
        self.room[node] -= more
        for used, domain in zip(self.used, self.domains[:, node], strict=True):
            used[domain] += more
