"""The moves of local search: random changes to where units are.

A move leaves no domain too full. Where a change is priced in full (step time), a move
returns one changed placement; where a table prices changes by the thousand (hop cost),
a batch move proposes many small ones at once. The search counts by the function's name
how often each was tried and how often it helped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import BoolArray, IntArray

if TYPE_CHECKING:
    from placer.solve.improve.hop_state import HopState

# Shares of the exchanges that move a unit by itself, and that send nothing back.
ALONE_SHARE, ONE_WAY_SHARE = 0.4, 0.4
# Share of the swaps that go anywhere, not to a neighbour.
FAR_SHARE = 0.1


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


class Pairs(NamedTuple):
    """Proposed changes, one a row: ``unit`` goes to ``domain``.

    ``partner`` goes the other way; it is the unit itself when nobody does. Domains of
    all copies are numbered through.
    """

    unit: IntArray
    partner: IntArray
    domain: IntArray


# So many proposals; those that would fill a domain too full are left out later.
BatchMove = Callable[["HopState", int], Pairs]


def swap_units(state: HopState, count: int) -> Pairs:
    """Units change places with one beside a neighbour, some with one anywhere."""
    rng = state.rng
    unit = rng.integers(0, len(state.home), count)
    domain = state.home[state.neighbour_of(unit)]
    far = rng.random(count) < FAR_SHARE
    anywhere = rng.integers(0, state.domains, count)
    domain = state.base[unit] + np.where(far, anywhere, domain)
    return Pairs(unit, state.member_of(domain, unit), domain)


def move_unit(state: HopState, count: int) -> Pairs:
    """Units move into free room where a neighbour is."""
    domain = state.roomy[state.rng.integers(0, len(state.roomy), count)]
    resident = state.member_of(domain, np.zeros(count, dtype=np.int64))
    unit = state.neighbour_of(resident)
    return Pairs(unit, unit, domain)


MOVES: tuple[Move, ...] = (exchange,)
BATCH_MOVES: tuple[BatchMove, ...] = (swap_units, move_unit)
