"""What is wrong with the options that several library calls have."""

from __future__ import annotations

from collections.abc import Iterator
from sys import float_info
from typing import Literal

from placer.base.errors import InputError, Problem
from placer.base.units import parse_duration
from placer.job.model import Job
from placer.placement.plan import OBJECTIVES
from placer.solve.problem.params import EFFORTS, Effort, is_effort

ObjectiveName = Literal["time", "hop-cost"]
# Seconds that scores, verdict and check take at the end of the time, and more a rank:
# where steps are priced, and where only edges are.
_ANSWER_S, _RANK_S, _RANK_OF_EDGES_S = 0.3, 6e-5, 1e-5


def seconds_of(duration: float | str, key: str = "time_limit") -> float:
    """Seconds of an argument: a number, or a text such as ``"5m"``.

    Raises `InputError` if the text is no duration.
    """
    if not isinstance(duration, str):
        return duration
    try:
        return parse_duration(duration)
    except ValueError as error:
        raise InputError(str(error), key=key) from None


def search_seconds(time_limit: float, job: Job) -> float:
    """Seconds of a time limit that are for the search; at least half of them, s."""
    each_s = _RANK_S if job.has_time else _RANK_OF_EDGES_S
    answer_s = _ANSWER_S + each_s * job.world_size
    return time_limit - min(answer_s, time_limit / 2)


_ANY = float_info.max
# What numbers must be: in words, their least and their most.
_NUMBERS = {
    "time_limit": ("seconds, at least 0", 0, _ANY),
    "seed": ("0 to 2^31 - 1", 0, 2**31 - 1),
    "workers": ("at least 1", 1, _ANY),
    "top": ("at least 1", 1, _ANY),
    "max_moves": ("at least 0", 0, _ANY),
    "within": ("a share from 0 to 1", 0, 1),
    "slack": ("a share from 0", 0, _ANY),
    "move_price": ("a number of at least 0", 0, _ANY),
    "tolerance": ("a number of at least 0", 0, _ANY),
}


def number_problems(**given: float | None) -> Iterator[Problem]:
    """Problems of numbers by name; None of one that is not given."""
    for key, number in given.items():
        words, least, most = _NUMBERS[key]
        if number is not None and not least <= number <= most:
            yield Problem(f"expected {words}, got {number}", key=key)


def objective_problems(objective: str | None) -> Iterator[Problem]:
    """Problems of the name of an objective."""
    if objective not in (None, *OBJECTIVES):
        hint = f"known: {', '.join(OBJECTIVES)}"
        message = f'there is no objective "{objective}"'
        yield Problem(message, key="objective", hint=hint)


def effort_problems(effort: Effort) -> Iterator[Problem]:
    """Problems of an effort."""
    if not is_effort(effort):
        message = f"there is no effort {effort!r}"
        hint = f"known: {', '.join(EFFORTS)}, or how many generations, such as 20"
        yield Problem(message, key="effort", hint=hint)
