"""The moves of local search: random changes to where units are.

A move leaves no domain too full, and returns one changed placement. The search counts
by the function's name how often each was tried and how often it helped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from placer.arrays import BoolArray, IntArray

# Shares of the exchanges that move a unit by itself, and that send nothing back.
ALONE_SHARE, ONE_WAY_SHARE = 0.4, 0.4


class Units(NamedTuple):
    """What moves, and where it may be.

    Attributes
    ----------
    coordinate : ndarray, shape (A, U)
        Of each unit along every axis in which units differ.
    room : ndarray, shape (D,)
        Units that each domain can hold.
    """

    coordinate: IntArray
    room: IntArray


# A move: the domain of each unit after a random change that leaves no domain too full;
# the same array where there is nothing to change.
Move = Callable[[Units, IntArray, np.random.Generator], IntArray]


def exchange(units: Units, home: IntArray, rng: np.random.Generator) -> IntArray:
    """The placement after two domains exchange units, or one gives some away.

    What goes and what comes is alike along some of the axes: a stage of all replicas
    there, a replica, the whole domain, or one unit by itself.
    """
    unit = int(rng.integers(len(home)))
    here, there = home[unit], int(rng.integers(len(units.room)))
    if here == there:
        return home
    tied = rng.random(len(units.coordinate)) < 0.5
    going = _like(units, rng, unit, tied, np.flatnonzero(home == here))
    coming = np.flatnonzero(home == there)
    if len(coming) and rng.random() >= ONE_WAY_SHARE:
        coming = _like(units, rng, int(rng.choice(coming)), tied, coming)
    else:
        coming = coming[:0]
    free = units.room - np.bincount(home, minlength=len(units.room))
    going = going[: free[there] + len(coming)]
    coming = coming[: free[here] + len(going)]
    changed = home.copy()
    changed[going], changed[coming] = there, here
    return changed


def _like(
    units: Units, rng: np.random.Generator, unit: int, tied: BoolArray, among: IntArray
) -> IntArray:
    """The unit by itself, or those with its coordinates along the tied axes."""
    if rng.random() < ALONE_SHARE:
        return np.array([unit])
    rows = units.coordinate[tied]
    alike: IntArray = among[(rows[:, among] == rows[:, [unit]]).all(axis=0)]
    return alike


MOVES: tuple[Move, ...] = (exchange,)
