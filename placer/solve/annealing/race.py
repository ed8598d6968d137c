"""Walks that race: many short ones first, then the best quarter, longer and cooler.

Before them comes one walk, as long as one or two of these: a search that is cut short
has its result, and a large job begins there. How long walks are depends on the number
of units alone, and each has its own random numbers: threads change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
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

# How hot the walks of the first round are, in turn: a sum has no plateaus.
SCALES = {
    "time": (0.3, 0.1, 1.0, 2.0),
    "hop-cost": (0.01, 1.0, 0.001, 0.1),
    "flows": (1.0, 0.1, 0.3, 0.03),  # of the user's own groups, too
}
WALKS = 8  # of the first round of a race
FEW_WALKS = 4  # where a large job goes on, and of flows, whose races become longer
COOLER, LONGER = 0.5, 4  # each round, as many fewer walks
MOVES_A_UNIT, MOST_MOVES = 100, 100_000  # of a walk of the first round, and at most
# Of the first walk of all, which is cooler where it moves units seldom.
BRIEF_MOVES_A_UNIT, MOST_BRIEF_MOVES, SELDOM = 200, 100_000, 100
BRIEF_SCALES, COOL = {"time": 1.0, "hop-cost": 0.01, "flows": 0.3}, 0.3
MOVES_A_UNIT_OF_FLOWS = 400  # most leave a maximum of many ports alone
FINE_MOVES, FINE_SCALES = 3, (0.03, 0.1, 0.3)  # of single ranks after parts, longer
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
    cost: float = inf  # that the first walk found
    known: float = inf  # the least value then

    @classmethod
    def begun(cls, units: Units, incumbent: Incumbent) -> Race:
        """One whose first walk is made."""
        walks = units.walks()
        starts = best_starts(walks, incumbent.elite, incumbent.budget)
        race = cls(incumbent, [walks], starts, seeds(units.problem))
        if starts:
            race._walk_briefly()
        race.known = incumbent.value
        return race

    @property
    def _of_flows(self) -> bool:
        return self.pool[0].units.partners is not None

    @property
    def _sort(self) -> str:
        """What is priced, by which walks are more or less hot."""
        problem = self.pool[0].units.problem
        return "flows" if self._of_flows else problem.goal.name

    @property
    def _is_long(self) -> bool:
        """Whether walks have few moves for each unit, and so are far from their ends.

        They go on from the best.
        """
        return _moves(self.pool[0]) == MOST_MOVES and not self._of_flows

    def _walk_briefly(self) -> None:
        """Make the first walk: as long as one or two others, less for many units."""
        walks, start = self.pool[0], self.starts[0]
        moves = _moves(walks, BRIEF_MOVES_A_UNIT, MOST_BRIEF_MOVES)
        scale = BRIEF_SCALES[self._sort]
        if moves < SELDOM * len(start):
            scale = min(COOL, scale)
        cost = walks.load(start)
        first = Walk(next(self.numbers), scale, start)
        found = walks.walk(first, moves, self.incumbent.budget)
        _offer(walks, found.slots, self.incumbent)
        self.cost = found.cost
        if self._is_long and found.cost < cost * (1 - SMALL):
            self.starts = [found.slots]

    def run(self, budget: Budget) -> None:
        """Race as often as the effort says, while there is something to gain."""
        incumbent, units = self.incumbent, self.pool[0].units
        moves = _moves(self.pool[0])
        most = FEW_WALKS if self._of_flows else WALKS
        self.pool += [units.walks() for _ in range(1, min(budget.workers, most))]
        if incumbent.value < self.known:  # others have found better ones
            self._begin_again(budget)
        for race in range(units.problem.params.races):
            # None where time is up.
            if not self.starts or not _is_worth(incumbent):
                break
            self._one_race(moves, budget)
            self.starts = self.starts[2:] + self.starts[:2]
            if self._of_flows:  # from the best, or the next best, and longer
                moves *= LONGER // 2
                self._begin_again(budget)
                self.starts = self.starts[race % 2 :] or self.starts
            elif self._is_long:
                self._begin_again(budget)
        incumbent.cut_short |= budget.is_over()

    def _begin_again(self, budget: Budget) -> None:
        """Begin with what is best now."""
        walks, known = self.pool[0], self.incumbent.elite
        if not self._is_long:
            self.starts = best_starts(walks, known, budget)
        elif known:  # under rules nothing may be known yet
            best = walks.units.slot_of_unit(known[0])
            if walks.units.problem.allows(walks.units.gpu_of_rank(best)):
                self.starts = [best]

    def _one_race(self, moves: int, budget: Budget) -> None:
        """Walk from starts at several heats; the best walks go on, longer."""
        heat, starts, numbers = SCALES[self._sort], self.starts, self.numbers
        goes_on = moves == MOST_MOVES and len(starts) == 1
        walks = FEW_WALKS if self._of_flows or goes_on else WALKS
        racing = [
            Walk(
                next(numbers),
                heat[number % len(heat)],
                starts[number // len(heat) % len(starts)],
            )
            for number in range(walks)
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


def walk_finely(units: Units, incumbent: Incumbent, budget: Budget) -> None:
    """Walk on from the best placement that parts of several units made, longer."""
    if not incumbent.elite:  # under rules nothing may be known yet
        return
    walks = units.walks()
    slots = walks.units.slot_of_unit(incumbent.elite[0])
    for seed, scale in zip(seeds(units.problem), FINE_SCALES, strict=False):
        walk = Walk(seed, scale, slots)
        slots = walks.walk(walk, _moves(walks) * FINE_MOVES, budget).slots
        _count([walks], incumbent)
        _offer(walks, slots, incumbent)
    incumbent.cut_short |= budget.is_over()


def _is_worth(incumbent: Incumbent) -> bool:
    """Whether a walk may gain what a model of a step can tell."""
    return incumbent.is_worth_searching and not incumbent.is_within(SMALL)


def seeds(problem: Problem) -> Iterator[int]:
    """Seeds of walks, of which no two searches have the same."""
    return count(problem.seed << 32)


def _moves(walks: Walks, each: int = MOVES_A_UNIT, most: int = MOST_MOVES) -> int:
    if walks.units.partners is not None:
        each = MOVES_A_UNIT_OF_FLOWS
    moves = min(most, each * len(walks.evaluator.slots.ranks))
    calls_scorer = getattr(walks.evaluator.kernel, "calls_scorer", False)
    return moves // BY_SCORER if calls_scorer else moves


def _offer(walks: Walks, slots: IntArray, incumbent: Incumbent) -> None:
    method = incumbent.method
    name = method if method.startswith(ANNEALED) else f"{ANNEALED}, from {method}"
    incumbent.offer(name, walks.units.gpu_of_rank(slots))


def _count(pool: list[Walks], incumbent: Incumbent) -> None:
    for move, helped, tried in chain.from_iterable(one.counted() for one in pool):
        incumbent.moves.count(move, helped, tried)
