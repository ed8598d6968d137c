"""Choices in line for the next question, the least lower bound first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heapify, heappop, heappush
from math import inf
from typing import NamedTuple

from placer.tune.choice import Choice
from placer.tune.evaluate import Answer, Wanted, is_searched


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

    @classmethod
    def placed(cls, choice: Choice, answer: Answer) -> Entry:
        """What is known of a choice that was placed."""
        if is_searched(choice, answer):
            return cls(answer.step_time_s, Known.PLACED, choice)
        return cls(answer.lower_bound_s, Known.SKETCHED, choice)


def every(_entry: Entry) -> bool:
    """Whether an entry is wanted, where all are."""
    return True


@dataclass
class Waiting:
    """The line.

    What was constructed and not yet searched for waits apart, with the step that it
    has: it is looked at again once nothing else may be better.
    """

    _heap: list[Entry] = field(default_factory=list)
    _sketched: list[tuple[Entry, float]] = field(default_factory=list)
    _wanted: Callable[[Entry], bool] = field(default=every)
    _set_aside: list[Entry] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def least_s(self) -> float:
        """The least bound of a choice without a placement; infinite without any."""
        unknown = (e.bound_s for e in self._heap if e.known is not Known.PLACED)
        return min(unknown, default=inf)

    def add(self, entries: Iterable[Entry]) -> None:
        """Put some in line."""
        for entry in entries:
            heappush(self._heap, entry)

    def add_sketched(self, entry: Entry, step_s: float) -> None:
        """Put one apart that may gain from a search; s of its step as constructed."""
        self._sketched.append((entry, step_s))

    def end_searches(self) -> None:
        """Take what waits for a search for placed."""
        for entry, step_s in self._sketched:
            heappush(self._heap, Entry(step_s, Known.PLACED, entry.choice))
        self._sketched = []

    @contextmanager
    def only(self, wanted: Callable[[Entry], bool]) -> Iterator[None]:
        """Take only some; the others keep their places."""
        self._wanted = wanted
        yield
        self._wanted = every
        self._heap += self._set_aside
        self._set_aside = []
        heapify(self._heap)

    def of(self, *choices: Choice) -> list[Entry]:
        """Those of some choices, in line still."""
        return [entry for entry in self._heap if entry.choice in choices]

    def least(self, known: Known) -> Entry | None:
        """The first that is wanted of which so much is known, in line still."""
        alike = (e for e in self._heap if e.known is known and self._wanted(e))
        return min(alike, default=None)

    def take(self, entry: Entry) -> None:
        """Out of line with one."""
        self._heap.remove(entry)
        heapify(self._heap)

    def pop(self) -> Entry | None:
        """The first that is wanted, out of line; others before it are set aside."""
        while self._heap:
            entry = heappop(self._heap)
            if self._wanted(entry):
                return entry
            self._set_aside.append(entry)
        return None

    def next(self) -> Entry | None:
        """The first in line, or what waits for a search where none may be better."""
        entry = self.pop()
        sketched = [one for one in self._sketched if self._wanted(one[0])]
        if not sketched:
            return entry
        least = min(sketched)
        if entry is not None:
            is_beaten = entry.known is Known.PLACED and least[0].bound_s < entry.bound_s
            if not is_beaten and entry.bound_s < min(step_s for _, step_s in sketched):
                return entry
            self.add([entry])
        self._sketched.remove(least)
        return least[0]
