"""The best choices, proved: best bound first, each question only where it matters.

Every choice has a lower bound on its step time, which grows as more is asked about it:
its work alone, with the traffic of its layers, whether it fits into memory, the bound
over all placements, a placement. The choice with the least bound is asked next. Once a
choice whose placement is known has the least value of all, no other choice can be
better: what was not asked has a bound above it.

Questions about placements are asked a few at a time, always the same few, so that the
answer does not depend on how many of them are worked out at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from placer.degrees.evaluate import Answer, Question
from placer.footprint.stages import footprint
from placer.job.recompute import experts_again, flops_again, layers_again

if TYPE_CHECKING:
    from placer.degrees.choice import Choice
    from placer.degrees.least import Least
    from placer.degrees.space import Legal
    from placer.engines.engine import Run
    from placer.job.model import Job

# Questions about placements that are asked at a time.
AT_A_TIME = 4


class Known(IntEnum):
    """What the bound of a choice rests on; of equal bounds, the best known first."""

    PLACED = 0
    BOUND = 1
    FITS = 2
    TRAFFIC = 3
    SIZES = 4


class Entry(NamedTuple):
    """A choice with its bound, s; entries are asked in their order."""

    bound_s: float
    known: Known
    choice: Choice


class Row(NamedTuple):
    """A choice that was placed."""

    choice: Choice
    answer: Answer
    memory: float


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes
    ----------
    rows : list of Row
        Best first. Nothing comes before the first unless ``ended``; the others are the
        best of those that were placed.
    placed : list of Row
        All that were placed, best first.
    considered : int
        Legal choices.
    too_large : int
        Of them, those that were asked about and do not fit into memory.
    infeasible : int
        Those that no placement allows.
    least_s : float, s
        No choice that was not placed has a shorter step.
    ended : bool
        Whether time was up before the first row was proved.
    """

    rows: list[Row]
    placed: list[Row]
    considered: int
    too_large: int
    infeasible: int
    least_s: float
    ended: bool


class State(NamedTuple):
    """How far a search is: for progress."""

    placed: int
    best_s: float
    least_s: float


@dataclass
class Search:
    """Best-first search over choices.

    Attributes
    ----------
    legal : Legal
    least : Least
    memory_limit : float, bytes
        Of a GPU; 0 when unknown.
    run : Run
        Answers questions.
    stop : callable
        Whether time is up.
    tell : callable
        Told the state from time to time.
    """

    legal: Legal
    least: Least
    memory_limit: float
    run: Run
    stop: Callable[[], bool] = lambda: False
    tell: Callable[[State], None] = lambda _state: None
    _heap: list[Entry] = field(default_factory=list)
    _answers: dict[Choice, Answer] = field(default_factory=dict)
    _too_large: int = 0
    _infeasible: int = 0

    def best(self, count: int) -> Found:
        """The best choice, and the ``count - 1`` next that were placed.

        Once the best is proved, others are placed in the order of their bounds until
        there are ``count``.
        """
        considered = 0
        for shape in self.legal.shapes():
            considered += self.legal.count(shape)
            bound = self.least.work_s(shape)
            self._heap.append(Entry(bound, Known.SIZES, shape))
        heapify(self._heap)
        is_proved = False
        while self._heap and not self.stop():
            entry = heappop(self._heap)
            if entry.known is Known.PLACED:
                is_proved = True
            elif entry.known >= Known.TRAFFIC:
                self._push(self._next(entry))
            else:
                self._ask([entry, *self._others()])
            if is_proved and len(self._answers) >= count:
                break
        placed = sorted(map(self._row, self._answers), key=_by_value)
        unknown = (e.bound_s for e in self._heap if e.known is not Known.PLACED)
        return Found(
            placed[:count],
            placed,
            considered,
            self._too_large,
            self._infeasible,
            min(unknown, default=inf),
            not is_proved and bool(self._heap),
        )

    def _next(self, entry: Entry) -> Iterator[Entry]:
        """What is known of a choice, or of its variants, once it is looked at."""
        choice = entry.choice
        if entry.known is Known.SIZES:
            bound = max(entry.bound_s, self.least.step_s(choice))
            yield Entry(bound, Known.TRAFFIC, choice)
            return
        # Of modes that compute nothing more again, the first that fits is enough.
        fits: set[tuple[float, float, float, str, int]] = set()
        for variant in self.legal.variants(choice):
            job = variant.applied(self.legal.job)
            again = flops_again(job), layers_again(job), experts_again(job)
            alike = (*again, variant.sharding, variant.shard_size)
            if not self._fits(job):
                self._too_large += 1
            elif alike not in fits:
                fits.add(alike)
                bound = max(entry.bound_s, self.least.step_s(variant))
                yield Entry(bound, Known.FITS, variant)

    def _fits(self, job: Job) -> bool:
        needs = footprint(job)
        return (
            not self.memory_limit or needs is None or (needs.total <= self.memory_limit)
        )

    def _others(self) -> Iterator[Entry]:
        """More choices to ask about at once: the next in order."""
        taken = 1
        while taken < AT_A_TIME and self._heap:
            entry = heappop(self._heap)
            if entry.known in (Known.BOUND, Known.FITS):
                taken += 1
                yield entry
            elif entry.known is Known.PLACED:
                heappush(self._heap, entry)
                return
            else:
                self._push(self._next(entry))

    def _ask(self, entries: list[Entry]) -> None:
        """Put the questions of some choices, and back what they say."""
        questions = [Question(e.choice, e.known is Known.BOUND) for e in entries]
        answered = dict(self.run(questions))
        for index, (entry, question) in enumerate(zip(entries, questions, strict=True)):
            answer = answered.get(index)
            if answer is None:  # interrupted
                heappush(self._heap, entry)
                continue
            if not question.placed:
                bound = max(entry.bound_s, answer.lower_bound_s)
                heappush(self._heap, Entry(bound, Known.BOUND, entry.choice))
            elif answer.refusal:
                self._infeasible += 1
            else:
                self._answers[entry.choice] = answer
                placed = Entry(answer.step_time_s, Known.PLACED, entry.choice)
                heappush(self._heap, placed)
        best = min((a.step_time_s for a in self._answers.values()), default=inf)
        least = self._heap[0].bound_s if self._heap else best
        self.tell(State(len(self._answers), best, least))

    def _push(self, entries: Iterator[Entry]) -> None:
        for entry in entries:
            heappush(self._heap, entry)

    def _row(self, choice: Choice) -> Row:
        needs = footprint(choice.applied(self.legal.job))
        return Row(choice, self._answers[choice], needs.total if needs else 0.0)


def _by_value(row: Row) -> tuple[float, Choice]:
    return row.answer.step_time_s, row.choice
