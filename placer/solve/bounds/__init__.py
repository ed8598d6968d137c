"""Lower bounds: what no placement can beat, with the argument."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from placer.cost.least_cases import CaseClaim

# Array elements that one table of a bound may touch. What needs more is left out or
# bounded more simply.
WORK = 5_000_000


class Proof(NamedTuple):
    """A lower bound."""

    value: float  # no placement that meets the requirements costs less
    argument: str  # what that rests on, in one sentence
    # What proves it by itself (`priced_step`); empty where it rests on more.
    cases: tuple[CaseClaim, ...] = ()
