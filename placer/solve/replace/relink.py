"""Placements between a fresh one and the one before.

Ranks are led back to their old seats one cell after the other, the one that costs the
least first; who sits there takes the seats that the cell leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.problem.rules import obeys

if TYPE_CHECKING:
    from placer.solve.problem.objective import Objective
    from placer.solve.replace.ground import Ground

IntArray = npt.NDArray[np.int64]

# Ranks priced in all: ranks x cells away from home, squared.
MOST_WORK = 4_000_000


def led_back(
    ground: Ground,
    goal: Objective,
    gpu_of_rank: IntArray,
    over: Callable[[], bool],
) -> Iterator[IntArray]:
    """Placements of ever fewer moves, from ``gpu_of_rank`` on; shape (R,) each.

    None when too many ranks are away from home for that.
    """
    now = gpu_of_rank
    away = _away(ground, now)
    if len(away) ** 2 * len(now) > MOST_WORK:
        return
    while away and not over():
        tried = [
            led for cell in away if (led := _led_home(ground, now, cell)) is not None
        ]
        tried = [led for led in tried if obeys(ground.topology, ground.job, led)]
        if not tried:
            return
        now = min(tried, key=goal.value)
        yield now
        away = _away(ground, now)


def _away(ground: Ground, now: IntArray) -> list[IntArray]:
    """Ranks of each cell that could return to its old seats."""
    home = ground.before.gpu_of_rank
    ranks = np.flatnonzero((home >= 0) & (home != now))
    row = ranks[np.argsort(ground.cell[ranks], kind="stable")]
    groups = np.split(row, np.flatnonzero(np.diff(ground.cell[row])) + 1)
    return [group for group in groups if len(group)]


def _led_home(ground: Ground, now: IntArray, ranks: IntArray) -> IntArray | None:
    """The placement with ``ranks`` on their old seats; None if that helps nobody."""
    home = ground.before.gpu_of_rank
    rank_of_gpu = np.full(ground.topology.num_gpus, -1, dtype=np.int64)
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
