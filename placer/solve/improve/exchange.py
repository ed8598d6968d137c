"""Local search on step time: exchanges between domains, each priced in full.

The step time is a maximum over replicas and groups, so a change has no effect that can
be had from its neighbourhood; small jobs are priced afresh after every change.
Simulated annealing (Kirkpatrick, Gelatt and Vecchi 1983) from several placements, of
which the better half goes on.
"""

from __future__ import annotations

from math import exp, inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.solve.improve.moves import MOVES, Units
from placer.solve.improve.time_layout import coordinates, laid_along, time_layout
from placer.solve.problem.objective import TimeObjective
from placer.solve.problem.rules import obeys
from placer.solve.run.solution import EXACT, is_reached

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from placer.solve.improve.layout import Layout
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent
    from placer.solve.run.move_counts import MoveCounts

IntArray = npt.NDArray[np.int64]

# Placements to begin with, and rounds after which the worse half of them is left out.
MOST_STARTS, ROUNDS = 8, 3
# Temperatures at the start and the end of a round, and what the traffic of a placement
# is worth, relative to the gap that is left.
HOT, COLD, TRAFFIC = 0.1, 0.003, 0.02
# Changes proposed for every placement priced; most others are known already.
TRIES_A_SCORE = 20


class _Price(NamedTuple):
    """Step time and traffic of a placement, s."""

    step_s: float
    traffic_s: float


def exchanged(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Exchange units between domains of the elite pool on step time."""
    if isinstance(problem.goal, TimeObjective):
        name = f"units exchanged, from {incumbent.method}"
        elite, bound = incumbent.elite, incumbent.bound
        for gpu_of_rank in faster(problem, elite, bound, budget, incumbent.moves):
            incumbent.offer(name, gpu_of_rank)
            if budget.is_over():
                return


def faster(
    problem: Problem,
    elite: Sequence[IntArray],
    bound: float,
    budget: Budget,
    counts: MoveCounts,
) -> Iterator[IntArray]:
    """GPU of every rank in placements, each faster than those before it.

    Parameters
    ----------
    problem : Problem
        To minimise step time.
    elite : sequence of ndarray
        GPU of every rank in good placements, the best first.
    bound : float, s
        Step time that cannot be beaten.
    budget : Budget
        Asked before each placement is priced.
    counts : MoveCounts
        Told of every move.
    """
    if not elite or problem.job.world_size > problem.params.exchange_ranks:
        return
    layout = time_layout(problem, elite[0])
    if layout is None:
        return
    search = _Exchanges(problem, layout, bound, budget, counts)
    homes = [layout.homes(gpu_of_rank) for gpu_of_rank in elite]
    starts = [home for home in homes if home is not None]
    starts += laid_along(layout, search.units.coordinate)
    search.least = problem.goal.value(elite[0])
    for home in search.improve(starts):
        yield layout.gpu_of_rank(home)


class _Exchanges:
    """Annealing of units over domains.

    Attributes
    ----------
    least : float, s
        Step time to beat, and the least met so far.
    best : ndarray, shape (U,), or None
        Domain of each unit in the placement that has it.
    """

    def __init__(
        self,
        problem: Problem,
        layout: Layout,
        bound: float,
        budget: Budget,
        counts: MoveCounts,
    ) -> None:
        self.model, self.layout, self.bound = problem.model, layout, bound
        room = layout.room // layout.size
        self.units = Units(coordinates(problem.job, layout), room)
        self.counts = counts
        self.rng = np.random.default_rng(problem.seed)
        params, ranks = problem.params, problem.job.world_size
        most = params.exchange_ranks_priced // ranks
        self.left = min(params.exchange_scores, most)
        self.priced: dict[bytes, _Price] = {}
        self.least = inf
        self.best: IntArray | None = None
        self._budget = budget

    def improve(self, starts: Sequence[IntArray]) -> Iterator[IntArray]:
        """Domain of each unit, for every placement faster than those before."""
        told = self.best
        pool = self._best_of(starts)
        for rounds in range(ROUNDS, 0, -1):
            slot = self.left // (rounds * max(1, len(pool)))
            ended = []
            for home in pool:
                ended.append(self._anneal(home, slot))
                if self.best is not None and self.best is not told:
                    told = self.best
                    yield told
                if self._is_over():
                    return
            pool = self._best_of(ended)[: (len(ended) + 1) // 2]

    def _best_of(self, homes: Sequence[IntArray]) -> list[IntArray]:
        """Those that are legal, the fastest first, not more than are worth a round."""
        prices = [self._price(home) for home in homes]
        order = sorted(range(len(homes)), key=lambda i: prices[i])
        return [homes[i] for i in order if prices[i].step_s < inf][:MOST_STARTS]

    def _anneal(self, home: IntArray, scores: int) -> IntArray:
        """The best placement met on a walk from ``home``."""
        gap = max(self.least - self.bound, EXACT * self.least)
        price = self._price(home)
        # What a second of traffic is worth, so that walks go on where the step is even.
        worth = TRAFFIC * gap / max(price.traffic_s, EXACT)
        best, energy = home, price.step_s + worth * price.traffic_s
        lowest, end = energy, self.left - scores
        for tried in range(TRIES_A_SCORE * scores):
            if self.left <= end or self._is_over():
                break
            move = MOVES[tried % len(MOVES)]
            changed = move(self.units, home, self.rng)
            price = self._price(changed)
            reached = price.step_s + worth * price.traffic_s
            self.counts.count(move.__name__, reached < energy)
            cooled = 1 - (self.left - end) / scores
            temperature = gap * HOT * (COLD / HOT) ** cooled
            rise = max(reached - energy, 0.0)
            if rise < inf and self.rng.random() < exp(-rise / temperature):
                home, energy = changed, reached
            if energy < lowest:
                best, lowest = home, energy
        return best

    def _price(self, home: IntArray) -> _Price:
        """Step time and traffic, infinite where a rule is broken or work is used up."""
        key = home.tobytes()
        if key in self.priced:
            return self.priced[key]
        price = _Price(inf, inf)
        gpu_of_rank = self.layout.gpu_of_rank(home)
        model = self.model
        if self.left > 0 and obeys(model.topology, model.job, gpu_of_rank):
            self.left -= 1
            step = model.step(gpu_of_rank)
            price = _Price(step.step_time_s, step.traffic_s)
        self.priced[key] = price
        if price.step_s < self.least * (1 - EXACT):
            self.least, self.best = price.step_s, home
        return price

    def _is_over(self) -> bool:
        """Whether nothing is left to gain, or to spend."""
        return (
            self.left <= 0
            or is_reached(self.least, self.bound)
            or self._budget.is_over()
        )
