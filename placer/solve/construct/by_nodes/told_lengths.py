"""Lengths of runs on hosts, annealed on what they alone cost.

A table has the pipeline time of a replica for each pattern of parts (`run_counts.py`),
another the data-parallel time for so few members (`network/limit.py`), both on the best
network. *Stretches*, runs of whole groups that begin and end with a host, change places
or move. Then hosts are chosen for the runs. See docs/method.md, "Lengths of runs
annealed".

Shapes: M runs, R ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray, equal_runs, row_of_number
from placer.solve.bounds.case import cut_by_runs
from placer.solve.bounds.network.limit import exposed_by_members, gradient_groups
from placer.solve.construct.by_nodes.asked_runs import on_hosts
from placer.solve.run.cooling import accepts, cooling, exchanged

if TYPE_CHECKING:
    from placer.solve.bounds.groups.cut_groups import CutGroups
    from placer.solve.bounds.groups.run_counts import RunCounts
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

NAME = "lengths of runs annealed"
# Of the mean of the slower half: it leads to where no replica is the slowest.
OTHERS = 0.1
MOVED = 0.5  # share of changes that move a stretch and exchange none
RANKS = 20_000_000  # of all changes together: a change takes time for each rank
MOST = 20_000  # changes
HEAT = (0.3, 0.003)  # at the start and the end, relative to what can be gained
LOOKED_AT = 64  # changes between two looks at the clock


def told_lengths(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Better lengths of runs than those of the best placement, on hosts."""
    best, machine = incumbent.gpu_of_rank, problem.machine
    if problem.goal.name != "time" or best is None or problem.job.launcher == "free":
        return
    tier = machine.node_tier
    if problem.model.fabric.scale_up_tier != tier:
        return
    cut = cut_by_runs(problem)
    counts = cut.run_counts if cut is not None and cut.fewest else None
    if cut is None or counts is None or not counts.has_all:
        return
    host_of_rank = machine.domain_of_gpu[tier][best]
    _, lengths = equal_runs(host_of_rank)
    walk = _Walk(_Told(cut, counts), lengths, problem.seed)
    found = walk.better(cut.pipeline_s, budget)
    if found is not None:
        incumbent.offer(
            f"{incumbent.method}, {NAME}", on_hosts(problem, found, counts.size)
        )


class _Told:
    """What is known of a step from the lengths of runs alone.

    Parameters
    ----------
    cut : CutGroups
    counts : RunCounts
        Of these groups.
    """

    def __init__(self, cut: CutGroups, counts: RunCounts) -> None:
        job, self.counts = cut.step.model.job, counts
        groups = gradient_groups(job)
        room = int(counts.gpus.max())
        _, self.exposed = exposed_by_members(cut.step, cut.network, groups, room)
        self.group = row_of_number(groups)
        self.stage = job.parallelism.coordinates["pp"]

    def seconds(self, lengths: IntArray) -> tuple[float, float]:
        """Time that the slowest replica and gradients take, and one to be led by, s."""
        node = np.repeat(np.arange(len(lengths)), lengths)
        times = np.sort(self.counts.pipelines_s(node))
        slowest = float(times[-1]) + self._exposed_s(node)
        return slowest, slowest + OTHERS * float(times[len(times) // 2 :].mean())

    def _exposed_s(self, node: IntArray) -> float:
        """Data-parallel time of the stage that exposes most, s."""
        most, stages = self.exposed.shape
        place = node * (int(self.group.max()) + 1) + self.group
        members = np.bincount(place)[place]
        least = np.full(stages, most)
        np.minimum.at(least, self.stage, members)
        return float(self.exposed[least - 1, np.arange(stages)].max())


class _Walk:
    """Orders of stretches.

    Parameters
    ----------
    told : _Told
    lengths : ndarray, shape (M,)
    seed : int
    """

    def __init__(self, told: _Told, lengths: IntArray, seed: int) -> None:
        self.told, self.size = told, told.counts.size
        ends = np.flatnonzero(np.cumsum(lengths) % self.size == 0)[:-1] + 1
        self.order = [tuple(one.tolist()) for one in np.split(lengths, ends)]
        self.rng = np.random.default_rng(seed)

    def better(self, bound: float, budget: Budget) -> IntArray | None:
        """Lengths of less time than the first ones; None for none found.

        Parameters
        ----------
        bound : float, s
            Time of the slowest replica that cannot be beaten.
        budget : Budget
        """
        first, led = self.told.seconds(self._lengths(self.order))
        gap, least, best = first - bound, first, None
        if len(set(self.order)) == 1 or gap <= 0:
            return None
        changes = min(MOST, RANKS // int(self._lengths(self.order).sum()))
        for heat in cooling(*HEAT, changes, budget, LOOKED_AT):
            order = self._changed()
            if order is None:
                continue
            lengths = self._lengths(order)
            seconds, new_led = self.told.seconds(lengths)
            if accepts(new_led - led, gap * heat, self.rng.random):
                self.order, led = order, new_led
                if seconds < least:
                    least, best = seconds, lengths
        return best

    def _lengths(self, order: list[tuple[int, ...]]) -> IntArray:
        return np.array([length for stretch in order for length in stretch])

    def _changed(self) -> list[tuple[int, ...]] | None:
        """The order when a stretch moves, or changes places with as many groups."""
        one, begin = self.rng.integers(len(self.order), size=2).tolist()
        if self.rng.random() < MOVED:
            order = [*self.order[:one], *self.order[one + 1 :]]
            order.insert(begin, self.order[one])
            return order
        sizes = [sum(stretch) for stretch in self.order]
        found = exchanged(self.order, sizes, one, begin)
        return None if found is None or found[1] == [self.order[one]] else found[0]
