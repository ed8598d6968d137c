"""Placements offered after failures: repairs, and the way back from a fresh placement.

Repairs are carried out, priced and kept, as few as it takes. From a fresh placement
ranks are led back to their old seats (path relinking; Glover, Laguna and Marti 2000,
Control and Cybernetics 29(3)): one cell after the other, the one that costs the least
first; who sits there takes the seats that the cell leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray, grouped
from placer.solve.problem.rules import obeys

if TYPE_CHECKING:
    from placer.solve.replace.repair import Repairs
    from placer.solve.replace.state import RepairState
    from placer.solve.run.budget import Budget
    from placer.solve.run.front import Front

# Ranks priced on the way back from a fresh placement: ranks x cells away from home,
# squared.
RELINK_WORK = 4_000_000


class OfferedRepairs:
    """Repairs of one sort, carried out as far as they are asked for.

    Parameters
    ----------
    front : Front
        Offered every repair that is carried out, until its budget is over.
    """

    def __init__(self, repairs: Repairs, front: Front) -> None:
        self._repairs, self._front = repairs, front
        self._choices = repairs.choices(front.budget)
        self._value: dict[int, float] = {}

    @property
    def is_any(self) -> bool:
        """Whether any repair that was carried out is a placement."""
        return any(value < inf for value in self._value.values())

    def spread(self, count: int) -> None:
        """Offer the first and the last choice, and some between."""
        last = len(self._choices) - 1
        for place in np.unique(np.linspace(0, last, count).astype(int)).tolist():
            if place >= 0 and not self._front.budget.is_over():
                self._offer(place)

    def close_in(self, cost: float) -> None:
        """Offer choices around the first that costs no more than ``cost``."""
        high = [place for place, value in self._value.items() if value > cost]
        low = [place for place, value in self._value.items() if value <= cost]
        if not (high and low):
            return
        first, last = max(high), min(low)
        while first + 1 < last and not self._front.budget.is_over():
            middle = (first + last) // 2
            if self._offer(middle) <= cost:
                last = middle
            else:
                first = middle

    def _offer(self, place: int) -> float:
        if place not in self._value:
            found = self._repairs.placement(self._choices[place])
            self._value[place] = (
                inf if found is None else self._front.offer("repair", found)
            )
        return self._value[place]


def led_back(
    state: RepairState, gpu_of_rank: IntArray, budget: Budget
) -> Iterator[IntArray]:
    """Placements of ever fewer moves, from ``gpu_of_rank`` on; shape (R,) each.

    None when too many ranks are away from home for that.
    """
    problem, now = state.problem, gpu_of_rank
    away = _away(state, now)
    if len(away) ** 2 * len(now) > RELINK_WORK:
        return
    while away and not budget.is_over():
        tried = [
            led for cell in away if (led := _led_home(state, now, cell)) is not None
        ]
        tried = [led for led in tried if obeys(problem.machine, problem.job, led)]
        if not tried:
            return
        now = min(tried, key=problem.goal.value)
        yield now
        away = _away(state, now)


def _away(state: RepairState, now: IntArray) -> list[IntArray]:
    """Ranks of each cell that could return to its old seats."""
    home = state.before.gpu_of_rank
    ranks = np.flatnonzero((home >= 0) & (home != now))
    return grouped(ranks, state.cell[ranks])


def _led_home(state: RepairState, now: IntArray, ranks: IntArray) -> IntArray | None:
    """The placement with ``ranks`` on their old seats; None if that helps nobody."""
    home = state.before.gpu_of_rank
    rank_of_gpu = np.full(state.topology.num_gpus, -1, dtype=np.int64)
    rank_of_gpu[now] = np.arange(len(now))
    sitting = rank_of_gpu[home[ranks]]
    others = sitting[(sitting >= 0) & ~np.isin(sitting, ranks)]
    if (home[others] == now[others]).any():
        return None
    found = now.copy()
    found[ranks] = home[ranks]
    left = np.setdiff1d(now[ranks], home[ranks])
    found[others] = left[: len(others)]
    return found
