"""Local search on step time: exchanges between domains, each priced in full.

The step time is a maximum over replicas and groups, so a change has no effect that can
be had from its neighbourhood; small jobs are priced afresh after every change. The
better half of the placements goes on after each round.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import BoolArray, FloatArray, IntArray
from placer.solve.improve.moves import MOVES, Move, Units
from placer.solve.improve.region import by_value
from placer.solve.problem.rules import obeys
from placer.solve.run.solution import EXACT, is_reached

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from placer.solve.improve.region import MoveRegion
    from placer.solve.problem.compiled import Problem

NOBODY = np.zeros(0, dtype=np.int64)


class _Price(NamedTuple):
    """Step time and traffic of a placement, s."""

    step_s: float
    traffic_s: float


class _Change(NamedTuple):
    """One changed placement, or none: arrays of one entry, or empty."""

    home: IntArray
    move: IntArray
    copy: IntArray


class TimeSearch:
    """Placements of one move region, the fastest of which are annealed.

    Parameters
    ----------
    elite : sequence of ndarray, each shape (R,)
        Good placements, the best first.
    bound : float, s
        Step time that cannot be beaten.

    Attributes
    ----------
    least : float, s
        Step time to beat, and the least met so far.
    best : ndarray, shape (U,), or None
        Domain of each unit in the placement that has it, if it beats the elite.
    left : int
        Placements that may still be priced.
    """

    def __init__(
        self,
        problem: Problem,
        region: MoveRegion,
        elite: Sequence[IntArray],
        bound: float,
    ) -> None:
        self.problem, self.region, self.bound = problem, region, bound
        self.rng = np.random.default_rng(problem.seed)
        self.units = Units(region.coordinate, region.capacity // region.size)
        params, ranks = problem.params, problem.job.world_size
        most = params.exchange_ranks_priced // ranks
        self.left = min(params.exchange_scores, most)
        self.least = problem.goal.value(elite[0])
        self.best: IntArray | None = None
        self._priced: dict[bytes, _Price] = {}
        along = {home.tobytes(): home for home in region.along_the_tree(by_value)}
        self._starts = [*region.homes(elite), *along.values()]

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to gain, or to spend."""
        return self.left <= 0 or is_reached(self.least, self.bound)

    def walks(self) -> Iterator[TimeState]:
        """Each placement in turn; the better half of what they end with, again."""
        pool = self._best_of(self._starts)
        for rounds in range(self.problem.params.exchange_rounds, 0, -1):
            scores = self.left // (rounds * max(1, len(pool)))
            self._ended: list[IntArray] = []
            for home in pool:
                if self.is_done:
                    return
                yield TimeState(self, home, scores)
            pool = self._best_of(self._ended)[: (len(self._ended) + 1) // 2]

    def take(self, state: TimeState) -> None:
        """Take over the best placement of a walk."""
        self._ended.append(state.best)

    def price(self, home: IntArray) -> _Price:
        """Step time and traffic, infinite where a rule is broken or work is used up."""
        key = home.tobytes()
        if key in self._priced:
            return self._priced[key]
        price = _Price(inf, inf)
        gpu_of_rank = self.region.gpu_of_rank(home)
        problem = self.problem
        if self.left > 0 and obeys(problem.machine, problem.job, gpu_of_rank):
            self.left -= 1
            step = problem.model.step(gpu_of_rank)
            price = _Price(step.step_time_s, step.traffic_s)
        self._priced[key] = price
        if price.step_s < self.least * (1 - EXACT):
            self.least, self.best = price.step_s, home
        return price

    def _best_of(self, homes: Sequence[IntArray]) -> list[IntArray]:
        """Those that are legal, the fastest first, not more than are worth a round."""
        prices = [self.price(home) for home in homes]
        order = sorted(range(len(homes)), key=lambda i: prices[i])
        legal = [homes[i] for i in order if prices[i].step_s < inf]
        return legal[: self.problem.params.exchange_starts]


class TimeState:
    """One placement under annealing.

    Parameters
    ----------
    home : ndarray, shape (U,)
        Domain of each unit.
    scores : int
        Placements to price.

    Attributes
    ----------
    best : ndarray, shape (U,)
        The best placement met.
    """

    def __init__(self, search: TimeSearch, home: IntArray, scores: int) -> None:
        params = search.problem.params
        self.search, self.home, self.best = search, home, home
        gap = max(search.least - search.bound, EXACT * search.least)
        hot, cold = params.exchange_heat
        self.hot, self.cold = np.array([gap * hot]), np.array([gap * cold])
        price = search.price(home)
        # What a second of traffic is worth, so that walks go on where the step is even.
        self._worth = params.exchange_traffic * gap / max(price.traffic_s, EXACT)
        self._energy = self._lowest = self._cost(price)
        self._tries, self._scores = params.exchange_tries * scores, scores
        self._end = search.left - scores

    @property
    def moves(self) -> tuple[Move, ...]:
        """What proposes changes."""
        return MOVES

    @property
    def progress(self) -> float:
        """Share of the way from hot to cold, by placements priced."""
        return 1 - (self.search.left - self._end) / self._scores

    @property
    def is_done(self) -> bool:
        """Whether all that may be is tried or priced, or nothing is left to gain."""
        is_spent = self._tries <= 0 or self.search.left <= self._end
        return is_spent or self.search.is_done

    def draw(self, count: int) -> FloatArray:
        """Random numbers from 0, below 1."""
        return self.search.rng.random(count)

    def propose(self) -> _Change:
        """A changed placement; none where it breaks a rule."""
        number = -self._tries % len(MOVES)
        self._tries -= 1
        home = MOVES[number](self.search.units, self.home, self.search.rng)
        if self.search.price(home).step_s == inf:
            return _Change(home, NOBODY, NOBODY)
        return _Change(home, np.array([number]), np.array([0]))

    def delta(self, change: _Change) -> FloatArray:
        """What the change adds to the step time, and a little to the traffic, s."""
        cost = self._cost(self.search.price(change.home))
        return np.full(len(change.move), cost - self._energy)

    def apply(self, change: _Change, accepted: BoolArray) -> None:
        """Make the change if it is accepted."""
        if not accepted.any():
            return
        self.home, self._energy = (
            change.home,
            self._cost(self.search.price(change.home)),
        )
        if self._energy < self._lowest:
            self.best, self._lowest = self.home, self._energy

    def _cost(self, price: _Price) -> float:
        return price.step_s + self._worth * price.traffic_s
