"""Walks that race: a few at several heats first, then the best, longer and cooler.

Before them comes one shorter walk: a search that is cut short has its result, and a
large job begins there. How long walks are depends on the number of units alone, and
each has its own random numbers: threads change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, islice
from math import inf
from operator import attrgetter

from placer.base.arrays import IntArray
from placer.base.threads import in_order
from placer.solve.annealing.starts import best_starts
from placer.solve.annealing.units import Units
from placer.solve.annealing.walks import Walk, Walks, walk_in_pool
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent

# How hot the walks of a race are, and the first of all: a sum has no plateaus, and of
# many units hot walks find their way back too late.
SCALES = {
    "time": (1.0, 2.0, 0.3, 4.0),
    "time, long": (0.3, 0.03),
    "hop-cost": (0.01, 1.0, 0.001, 0.1),
    "flows": (0.3, 1.0, 0.1, 0.03),  # of the user's own groups, too
}
COOLER, LONGER = 0.5, 4  # each round, as many fewer walks
SMALL = 1e-4  # a gap that no model of a step can tell
BY_SCORER = 500  # times dearer is a move whose step the scorer prices
ANNEALED = "annealed"  # what placements found here are called


@dataclass(eq=False)
class Race:
    """Walks of units from starts of different sorts."""

    incumbent: Incumbent
    pool: list[Walks]  # one for each thread
    starts: list[IntArray]  # slots of units, (U,) each
    numbers: Iterator[int]  # seeds of walks
    cost: float = inf  # of the first start, or what a first walk found

    @classmethod
    def begun(cls, units: Units, incumbent: Incumbent) -> Race:
        """One whose first walk is made where nothing is annealed yet."""
        walks = units.walks()
        starts = best_starts(walks, incumbent.elite, incumbent.budget)
        race = cls(incumbent, [walks], starts, seeds(units.problem))
        if starts and incumbent.method.startswith(ANNEALED):
            race.cost = walks.load(starts[0])
        elif starts:
            first = Walk(next(race.numbers), race._scales[0], starts[0])
            most = units.problem.params.walk_moves[1] // LONGER
            found = walks.walk(first, min(race._moves, most), incumbent.budget)
            _offer(walks, found.slots, incumbent)
            race.cost = found.cost
        return race

    @classmethod
    def of_best(cls, units: Units, incumbent: Incumbent) -> Race:
        """One from the best placement known, as parts of several units made it."""
        race = cls(incumbent, [units.walks()], [], seeds(units.problem))
        race._begin_with_best()
        return race

    @property
    def _of_flows(self) -> bool:
        return self.pool[0].units.partners is not None

    @property
    def _is_long(self) -> bool:
        """Whether walks have few moves for each unit: they are far from their ends."""
        units = self.pool[0].units
        each, most = units.problem.params.walk_moves
        return each * len(units.slots.ranks) > most

    @property
    def _scales(self) -> tuple[float, ...]:
        if self._of_flows:
            return SCALES["flows"]
        goal = self.pool[0].units.problem.goal.name
        return SCALES.get(f"{goal}, long" if self._is_long else goal, SCALES[goal])

    @property
    def _moves(self) -> int:
        """Moves of a walk of the first round."""
        walks = self.pool[0]
        each, most = walks.units.problem.params.walk_moves
        moves = min(most, each * len(walks.units.slots.ranks))
        calls_scorer = getattr(walks.evaluator.kernel, "calls_scorer", False)
        return moves // BY_SCORER if calls_scorer else moves

    def run(self, budget: Budget) -> None:
        """Race as often as the effort says, while there is something to gain."""
        incumbent, units, moves = self.incumbent, self.pool[0].units, self._moves
        threads = min(budget.workers, len(self._scales))
        self.pool += [units.walks() for _ in range(1, threads)]
        goes_on = self._is_long or self._of_flows
        for _ in range(units.problem.params.races):
            if goes_on:
                self._begin_with_best()
            # None where time is up.
            if not self.starts or not _is_worth(incumbent):
                break
            self._one_race(moves, budget)
            self.starts = self.starts[1:] + self.starts[:1]
            if goes_on:
                moves *= LONGER // 2
        incumbent.cut_short |= budget.is_over()

    def _begin_with_best(self) -> None:
        """Begin with what is best now, where there is any and rules allow it."""
        units = self.pool[0].units
        for known in islice(self.incumbent.elite, 1):
            best = units.slot_of_unit(known)
            if units.problem.allows(units.gpu_of_rank(best)):
                self.starts = [best]

    def _one_race(self, moves: int, budget: Budget) -> None:
        """Walk from starts in turn, each at its heat; the best walks go on, longer."""
        starts, numbers = self.starts, self.numbers
        racing = [
            Walk(next(numbers), scale, starts[turn % len(starts)])
            for turn, scale in enumerate(self._scales)
        ]
        while not budget.is_over():
            walker = partial(walk_in_pool, self.pool, moves, budget)
            racing = in_order(walker, racing, budget.workers)
            _count(self.pool, self.incumbent)
            racing.sort(key=attrgetter("cost"))
            _offer(self.pool[0], racing[0].slots, self.incumbent)
            if len(racing) == 1:
                break
            moves *= LONGER
            racing = [
                walk._replace(seed=next(numbers), scale=walk.scale * COOLER)
                for walk in racing[: max(len(racing) // LONGER, 1)]
            ]


def _is_worth(incumbent: Incumbent) -> bool:
    """Whether a walk may gain what a model of a step can tell."""
    return incumbent.is_worth_searching and not incumbent.is_within(SMALL)


def seeds(problem: Problem) -> Iterator[int]:
    """Seeds of walks, of which no two searches have the same."""
    return count(problem.seed << 32)


def _offer(walks: Walks, slots: IntArray, incumbent: Incumbent) -> None:
    method = incumbent.method
    name = method if method.startswith(ANNEALED) else f"{ANNEALED}, from {method}"
    incumbent.offer(name, walks.units.gpu_of_rank(slots))


def _count(pool: list[Walks], incumbent: Incumbent) -> None:
    for move, helped, tried in chain.from_iterable(one.counted() for one in pool):
        incumbent.moves.count(move, helped, tried)
