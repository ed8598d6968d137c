"""The best choices of some sort, each proved by the search: of fewer GPUs, and others.

``first`` is the search for the best of those that are wanted (`placer.degrees.search`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from placer.degrees.kinds import methods
from placer.degrees.waiting import Entry, Known

if TYPE_CHECKING:
    from placer.degrees.choice import Choice
    from placer.degrees.found import Row

First = Callable[[Callable[[Entry], bool]], "Row | None"]


def by_gpus(first: First, best: Row | None) -> list[Row]:
    """The best choice, then the best with fewer GPUs, and so on."""
    front = []
    while best is not None:
        front.append(best)
        most = best.choice.gpus

        def is_fewer(entry: Entry, most: int = most) -> bool:
            return entry.choice.gpus < most

        best = first(is_fewer)
    return front


def by_memory(
    first: First, best: Row | None, longest: float, needs: Callable[[Choice], float]
) -> list[Row]:
    """The best choice, then the best with less memory, and so on.

    ``longest`` (s): steps that are longer are not wanted. ``needs``: bytes of a choice.
    """
    front: list[Row] = []
    while best is not None:
        if front and best.answer.step_time_s <= front[-1].answer.step_time_s:
            front.pop()  # as fast, with less
        front.append(best)
        most = best.memory

        def is_less(entry: Entry, most: float = most) -> bool:
            known = entry.known < Known.TRAFFIC
            need = needs(entry.choice) if known else 0.0
            return entry.bound_s <= longest and need < most

        best = first(is_less)
    return front


def of_kind(first: First, own: Choice) -> Row | None:
    """The best choice of the same methods as the job's own."""

    def is_wanted(entry: Entry) -> bool:
        choice = entry.choice
        if entry.known >= Known.TRAFFIC:  # how it shards is still open
            choice = choice._replace(sharding=own.sharding)
        return methods(choice) == methods(own)

    return first(is_wanted)
