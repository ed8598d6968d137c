"""What Megatron refuses, told in one way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.base.errors import Problem
from placer.formats.jobs.findings import Findings, Place

if TYPE_CHECKING:
    from placer.formats.jobs.megatron.arguments import Arguments

_WORDS = "Megatron refuses this: "


def refuse(
    found: Findings, arguments: Arguments, name: str, message: str, hint: str = ""
) -> None:
    """Record that Megatron refuses an argument, and why.

    Nothing while a value is asked for, on which it may depend.
    """
    if found.unsure:
        return
    place = arguments.place(name) or Place(found.source)
    found.problems.append(Problem(_WORDS + message, *place, hint=hint))


def refuse_fact(found: Findings, key: str, message: str, hint: str = "") -> None:
    """Record that Megatron refuses the fact of a key, at its place, as `refuse`."""
    if not found.unsure:
        found.problem(key, _WORDS + message, hint)
