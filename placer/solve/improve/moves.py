"""The moves of local search: random changes to where units are.

A table prices changes by the thousand, so a move proposes many small ones at once. The
search counts by the function's name how often each was tried and how often it helped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import IntArray

if TYPE_CHECKING:
    from placer.solve.improve.hop_state import HopState

# Share of the swaps that go anywhere, not to a neighbour.
FAR_SHARE = 0.1


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


BATCH_MOVES: tuple[BatchMove, ...] = (swap_units, move_unit)
