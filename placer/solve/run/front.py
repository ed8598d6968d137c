"""The incumbents of a search with two goals: few moves, and little cost.

No one placement is best: each number of moves has its cheapest. So this incumbent keeps
all that no other beats in both (a Pareto front), and one is chosen at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from placer.base.arrays import IntArray
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.solve.run.solution import EXACT


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
