"""What a bound gives: a number that no placement beats, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from placer.solve.problem.compiled import Problem


class Proof(NamedTuple):
    """A lower bound.

    Attributes
    ----------
    value : float
        No placement that meets the requirements costs less.
    argument : str
        What that rests on, in one sentence.
    """

    value: float
    argument: str


# A bound: of a problem whose nodes hold blocks of so many consecutive ranks (1 bounds
# every launch), given the value of a known placement, which need not be exceeded. None
# where it does not apply.
Bound = Callable[[Problem, int, float], Proof | None]
