"""What is known of a choice in the search over choices."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from placer.degrees.evaluate import is_searched

if TYPE_CHECKING:
    from placer.degrees.choice import Choice
    from placer.degrees.evaluate import Answer, Wanted


class Known(IntEnum):
    """What the bound of a choice rests on; of equal bounds, the best known first."""

    PLACED = 0
    SKETCHED = 1
    BOUND = 2
    LINKS = 3
    FITS = 4
    TRAFFIC = 5
    SIZES = 6
    STAGES = 7


# What to ask about a choice of which so much is known.
NEXT: dict[Known, Wanted] = {
    Known.FITS: "links",
    Known.LINKS: "bound",
    Known.BOUND: "placement",
    Known.SKETCHED: "search",
}


class Entry(NamedTuple):
    """A choice with its bound, s; entries are asked in their order."""

    bound_s: float
    known: Known
    choice: Choice


def entry_of(choice: Choice, answer: Answer) -> Entry:
    """What is known of a choice that was placed."""
    if is_searched(choice, answer):
        return Entry(answer.step_time_s, Known.PLACED, choice)
    return Entry(answer.lower_bound_s, Known.SKETCHED, choice)


def sizes_of(choice: Choice) -> Choice:
    """The sizes of a choice alone, as `Legal.shapes` has them."""
    return choice._replace(recompute="none", sharding="ddp", shard_size=0)
