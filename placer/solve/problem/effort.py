"""How long a search goes on: until when, as people ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeGuard

from placer.cost import JITTER

QUICK: Final = "quick"
MEASURABLE: Final = "measurable"
NORMAL: Final = "normal"
FULL: Final = "full"
EFFORTS = (QUICK, MEASURABLE, NORMAL, FULL)
# More generations than any time limit has room for.
ENDLESS = 1_000_000
# What a generation must gain, relative to the cost, for another one.
WORTHWHILE = 1e-3

EffortName = Literal["quick", "measurable", "normal", "full"]
Effort = EffortName | int


def is_effort(effort: str | int) -> TypeGuard[Effort]:
    """Whether there is such an effort: a name, or a number of generations."""
    if isinstance(effort, str):
        return effort in EFFORTS
    return 0 <= effort <= ENDLESS


def params_of(effort: Effort, objective: str = "time") -> Mapping[str, Any]:
    """The `Params` of an effort.

    ``quick`` makes constructions only, ``normal`` goes on after all methods while that
    helps, ``full`` until the time is over; a number is one of generations.
    ``measurable`` is normal, and ends where no step could be shorter by what shows
    between two runs.
    """
    if effort == QUICK:
        return {"local_search": False}
    if effort in (NORMAL, MEASURABLE):
        is_enough = effort == MEASURABLE and objective == "time"
        ends = {"enough_gap": JITTER} if is_enough else {}
        return {"generations": ENDLESS, "generation_gain": WORTHWHILE, **ends}
    return {"generations": ENDLESS if effort == FULL else effort}
