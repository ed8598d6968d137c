"""How long a search goes on: until when, as people ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeGuard

QUICK: Final = "quick"
NORMAL: Final = "normal"
FULL: Final = "full"
EFFORTS = (QUICK, NORMAL, FULL)
# More generations than any time limit has room for.
ENDLESS = 1_000_000
# What a generation must gain, relative to the cost, for another one.
WORTHWHILE = 1e-3

EffortName = Literal["quick", "normal", "full"]
Effort = EffortName | int


def is_effort(effort: str | int) -> TypeGuard[Effort]:
    """Whether there is such an effort: a name, or a number of generations."""
    if isinstance(effort, str):
        return effort in EFFORTS
    return 0 <= effort <= ENDLESS


def params_of(effort: Effort) -> Mapping[str, Any]:
    """The `Params` of an effort.

    ``quick`` makes constructions only, ``normal`` goes on after all methods while that
    helps, ``full`` until the time is over; a number is one of generations.
    """
    if effort == QUICK:
        return {"local_search": False}
    if effort == NORMAL:
        return {"generations": ENDLESS, "generation_gain": WORTHWHILE}
    return {"generations": ENDLESS if effort == FULL else effort}
