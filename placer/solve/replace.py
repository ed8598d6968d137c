"""Placing again after failures: the plan mended, then walks at a price a move.

A point is a placement by its moves and its cost. A walk pays a price for each rank that
moves: at a high one it finds the fewest moves, at none the least cost, and at the slope
between two points one between them, if there is any. So the hull of all points is found
end by end (Eisner and Severance 1976, Journal of the ACM 23(4)).

No one placement is best: each number of moves has its cheapest. So the incumbent keeps
all that no other beats in both (a Pareto front), and one is chosen at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from math import inf
from operator import itemgetter
from typing import NamedTuple

from placer.base.arrays import IntArray
from placer.base.errors import InfeasibleError, StoppedError
from placer.base.rounding import EXACT
from placer.job.even import is_even
from placer.placement.previous import PreviousPlan
from placer.solve.bounds import Proof
from placer.solve.bounds.certificate import lower_bound
from placer.solve.orders import solve_orders
from placer.solve.problem.compiled import Problem
from placer.solve.rearrange.failure import Failure, Fewest, mended
from placer.solve.rearrange.homeward import Homeward
from placer.solve.rules.even import in_parts, no_equal_parts
from placer.solve.run.budget import Budget, InTime, LeftBehind, Patience
from placer.solve.run.incumbent import Incumbent
from placer.solve.run.solution import Progress, Solution

FEW = 4  # units that pay at the first price, and how many times more each time


class Point(NamedTuple):
    """A placement on the front."""

    moves: int  # ranks that are elsewhere than before
    value: float  # cost, in the unit of the objective
    method: str
    gpu_of_rank: IntArray  # (R,)


class Front(Incumbent):
    """The cheapest legal placement known for every number of moves.

    ``budget``: the clock does not end it: whoever looks for placements asks the clock.
    ``moved``: how many ranks a placement moves. ``points``: ever more moves at ever
    less cost.
    """

    def __init__(
        self, problem: Problem, budget: Budget, moved: Callable[[IntArray], int]
    ) -> None:
        super().__init__(problem, budget.anew(inf))
        self._moved = moved
        self.points: list[Point] = []

    def choose(self, cost: float, max_moves: int | None) -> Point | None:
        """Make the placement of fewest moves that costs no more the one to return.

        Where that takes more than ``max_moves``, the cheapest within those; None where
        there is none.
        """
        allowed = [
            point
            for point in self.points
            if max_moves is None or point.moves <= max_moves
        ]
        cheap = [point for point in allowed if point.value <= cost * (1 + EXACT)]
        chosen = next(iter([*cheap, *allowed[::-1]]), None)
        if chosen is not None:
            _, self.value, self.method, self.gpu_of_rank = chosen
        return chosen

    def keep_fewest_avoided(self) -> None:
        """Keep only placements that use the fewest of the hosts to avoid."""
        used = [self._problem.avoided(point.gpu_of_rank) for point in self.points]
        self.points = [
            point
            for point, count in zip(self.points, used, strict=True)
            if count == min(used)
        ]

    def _keep(self, method: str, legal: IntArray, value: float) -> None:
        """Keep a legal placement if no other is as good in moves and in cost."""
        new = Point(self._moved(legal), value, method, legal)
        if not any(_covers(known, new) for known in self.points):
            kept = [known for known in self.points if not _covers(new, known)]
            self.points = sorted([*kept, new], key=lambda point: point.moves)


def _covers(known: Point, other: Point) -> bool:
    """Whether ``other`` is no better than ``known`` in moves and in cost."""
    return known.moves <= other.moves and (known.value <= other.value * (1 + EXACT))


@dataclass(frozen=True, eq=False)
class Required:
    """What is required of a new placement."""

    # Share by which it may cost more than before the failure, or than the cheapest that
    # is known where none costs as little.
    within: float
    max_moves: int | None = None  # ranks that may move at most
    before: float | None = None  # cost before the failure; None when it is not known


@dataclass(frozen=True, eq=False)
class Replaced:
    """A placement after failures."""

    solution: Solution
    # Placements of ever more moves at ever less cost, the chosen one among them.
    points: tuple[Point, ...]
    chosen: Point
    lost: int  # ranks on lost nodes
    # How many ranks move at least in any placement that costs no more than allowed.
    fewest: Fewest
    budget: float  # the cost allowed
    # What ``budget`` is measured from: ``before``, or ``lower-bound`` where that is
    # higher; where no repair comes near either, ``before`` or ``best-known``.
    reference: str


def replaced(
    problem: Problem,
    previous: PreviousPlan,
    terms: Required,
    budget: Budget,
    progress: Progress | None = None,
) -> Replaced:
    """The placement of few moves and little cost on what is left of a machine.

    ``problem``: the machine without the nodes that failed; the job's ranks numbered as
    in the plan. ``previous``: where the ranks are, on the same machine. ``budget``:
    walks end by it, and the fresh placement, where one is needed. ``progress``: gets
    every better fresh placement. Raises `InfeasibleError` if no placement satisfies the
    hard requirements; a `TooFewMovesError` if none is known that moves as few ranks as
    required. Raises `StoppedError` if the budget was stopped before there was any
    placement.
    """
    if not any(map(is_even, problem.job.require)):
        return _Search(problem, previous, terms, budget).run(progress)
    errors = []
    for tried in in_parts(problem):
        try:
            return _Search(tried, previous, terms, budget).run(progress)
        except TooFewMovesError:
            raise
        except InfeasibleError as error:
            errors.append(error)
    raise errors[-1] if errors else no_equal_parts(problem)


class TooFewMovesError(InfeasibleError):
    """There are placements, but none is known that moves as few ranks as required."""


class _Search:
    """The repairs and the fresh placement of one failure."""

    def __init__(
        self,
        problem: Problem,
        previous: PreviousPlan,
        terms: Required,
        budget: Budget,
    ) -> None:
        self._problem, self._previous, self._terms = problem, previous, terms
        self._budget = budget
        self._before = previous.seats(problem.job)
        self._failure = Failure(problem, self._before)
        self._front = Front(problem, budget, self._before.moved)
        self._mended: IntArray | None = None

    def run(self, progress: Progress | None) -> Replaced:
        """Repairs first; a fresh placement where they are not as cheap as required."""
        if self._before.is_lost.any():
            self._repair()
        else:
            self._front.offer("nothing failed", self._before.gpu_of_rank)
        self._front.keep_fewest_avoided()
        reference = self._least()
        if not self._is_cheap(reference[1]):
            self._place(progress)
            self._front.keep_fewest_avoided()
            reference = self._before_or_best()
        return self._result(*reference)

    def _repair(self) -> None:
        """Mend the plan, and walk from there where that is not as cheap as before."""
        self._mended = mended(self._failure)
        if self._mended is not None:
            self._front.offer("mended", self._mended)
            self._walk(self._terms.before or 0.0)

    def _walk(self, least: float) -> None:
        """Offer placements of ever other prices a move, towards what may be paid."""
        front, problem = self._front, self._problem
        if not front.points or self._is_cheap(least):
            return
        walks, seeds = self._homeward, count(problem.seed + 1)
        if walks is None:
            return

        def walk_from(start: Point, price: float) -> Point:
            """The best point at a price, after a walk from another."""
            found = walks.walk(start.gpu_of_rank, price, seeds, self._budget)
            front.offer("walked", found)
            front.cut_short |= self._budget.is_over()
            return min(front.points, key=lambda one: one.value + price * one.moves)

        few = cheap = walk_from(front.points[0], front.points[0].value)
        allowed = self._allowed(least)
        # What each move must save where a few units are enough; then ever more of them.
        enough, in_vain = walks.unit_size, False
        for number in range(problem.params.homeward_walks):
            is_bracketed = cheap.value <= allowed
            if self._budget.is_over() or few.value <= allowed:
                return
            enough *= FEW
            price = (few.value - allowed) / enough
            if is_bracketed:
                if cheap.moves <= few.moves:  # nothing lies between
                    return
                price = (few.value - cheap.value) / (cheap.moves - few.moves)
            found = walk_from(few if number % 2 else cheap, price)
            was_in_vain = in_vain
            in_vain = is_bracketed and found in (few, cheap)
            if in_vain and was_in_vain:  # from either end
                return
            if found.value <= allowed or not is_bracketed:
                cheap = found
            else:
                few = found

    @cached_property
    def _homeward(self) -> Homeward | None:
        """Walks from the plan, mended where it can be; None where nothing can walk."""
        seats = self._before.gpu_of_rank if self._mended is None else self._mended
        return Homeward.on(self._problem, self._before, seats)

    def _least(self) -> tuple[str, float]:
        """What repairs are measured against: the cost before, if it can be had."""
        if self._front.points:
            self._bound(self._front.points[-1].value)
        before, bound = self._terms.before or 0.0, self._front.bound
        return max(("before", before), ("lower-bound", bound), key=itemgetter(1))

    def _bound(self, value: float) -> None:
        """Prove a lower bound, or what was proved until the search is stopped.

        A program of a bound may take seconds once it runs, so it is left behind.
        """
        problem = self._problem

        def proved(_: object, within: Budget) -> Proof:
            # Past the time limit it is worth the wait.
            budget = within.anew(inf)
            return lower_bound(problem, problem.forced_block, value, budget)

        if self._budget.is_stopped:
            return
        with suppress(StoppedError):
            found = InTime(proved, self._budget, patience=Patience(0.0)).run()
            if isinstance(found, Proof):
                self._front.prove(found.value, found.argument)

    def _is_cheap(self, least: float) -> bool:
        """Whether some repair costs as little as required; or nothing failed."""
        if not self._front.points:
            return False
        nothing_failed = not self._before.is_lost.any()
        return nothing_failed or self._front.points[-1].value <= self._allowed(least)

    def _before_or_best(self) -> tuple[str, float]:
        """What all placements are measured against: the cost before, if one has it."""
        best = min(point.value for point in self._front.points)
        before = self._terms.before or 0.0
        if best <= self._allowed(before):
            return "before", before
        return "best-known", best

    def _allowed(self, least: float) -> float:
        return least * (1 + self._terms.within) * (1 + EXACT)

    def _place(self, progress: Progress | None) -> None:
        """Offer a fresh placement that keeps to the plan where it costs nothing."""
        front = self._front
        if front.points and self._budget.is_stopped:
            return

        def search(tell: Progress, within: Budget) -> Solution:
            return solve_orders(self._problem, within, tell, self._previous)[1]

        try:
            found = InTime(search, self._budget, progress).run()
        except (InfeasibleError, StoppedError):
            if not front.points:
                raise
            return
        fresh = found.solution if isinstance(found, LeftBehind) else found
        front.include(fresh)
        front.prove(fresh.lower_bound, fresh.argument)
        front.offer("placed afresh", fresh.placement.gpu_of_rank)
        self._walk(min(point.value for point in front.points))

    def _result(self, reference: str, least: float) -> Replaced:
        front = self._front
        cost = least * (1 + self._terms.within)
        chosen = front.choose(cost, self._terms.max_moves)
        if chosen is None:
            raise self._too_few()
        return Replaced(
            front.solution(),
            tuple(front.points),
            chosen,
            int(self._before.is_lost.sum()),
            self._fewest(),
            cost,
            reference,
        )

    def _fewest(self) -> Fewest:
        if not self._before.is_lost.any():
            return Fewest(0, "nothing failed")
        return self._failure.fewest_moves()

    def _too_few(self) -> TooFewMovesError:
        least = self._front.points[0].moves
        bound = self._fewest().moves
        must = "that many" if bound == least else f"{bound:,}"
        return TooFewMovesError(
            f"no placement is known that moves at most {self._terms.max_moves:,} "
            f"ranks: the fewest found are {least:,}, and at least {must} must"
            f"\n  hint: allow {least:,} moves"
        )
