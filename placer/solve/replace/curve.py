"""Placements by their moves and their cost, and which of them to take."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.solve.problem.rules import avoided
from placer.solve.run.solution import EXACT

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.replace.before import Before

IntArray = npt.NDArray[np.int64]


class Point(NamedTuple):
    """A placement on the curve.

    Attributes
    ----------
    moves : int
        Ranks that are elsewhere than before.
    value : float
        Cost, in the unit of the objective.
    method : str
    gpu_of_rank : ndarray, shape (R,)
    """

    moves: int
    value: float
    method: str
    gpu_of_rank: IntArray


class Curve:
    """The cheapest legal placement known for every number of moves.

    Attributes
    ----------
    points : list of Point
        Ever more moves at ever less cost.
    """

    def __init__(self, problem: Problem, before: Before) -> None:
        self._problem, self._before = problem, before
        self.points: list[Point] = []

    def offer(self, method: str, gpu_of_rank: IntArray) -> float:
        """Keep a placement if it is legal and no other is as good in both.

        Returns its cost; infinite if it is not legal.
        """
        if not self._problem.allows(gpu_of_rank):
            return inf
        moves = self._before.moved(gpu_of_rank)
        value = float(self._problem.goal.value(gpu_of_rank))
        new = Point(moves, value, method, gpu_of_rank)
        if not any(_covers(known, new) for known in self.points):
            kept = [known for known in self.points if not _covers(new, known)]
            self.points = sorted([*kept, new], key=lambda point: point.moves)
        return value

    def chosen(self, budget: float, max_moves: int | None) -> Point | None:
        """The fewest moves that cost no more than ``budget``.

        Where that takes more than ``max_moves``, the cheapest within those; None where
        there is none.
        """
        allowed = [
            point
            for point in self.points
            if max_moves is None or point.moves <= max_moves
        ]
        cheap = [point for point in allowed if point.value <= budget * (1 + EXACT)]
        return next(iter([*cheap, *allowed[::-1]]), None)

    def fewest_avoided(self) -> None:
        """Keep only placements that use the fewest of the hosts to avoid."""
        machine, job = self._problem.machine, self._problem.job
        if job.rules.avoid:
            used = [avoided(machine, job, point.gpu_of_rank) for point in self.points]
            self.points = [
                point
                for point, count in zip(self.points, used, strict=True)
                if count == min(used)
            ]


def _covers(known: Point, other: Point) -> bool:
    """Whether ``other`` is no better than ``known`` in moves and in cost."""
    return known.moves <= other.moves and (known.value <= other.value * (1 + EXACT))
