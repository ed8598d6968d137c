"""The best choices, proved: best bound first, each question only where it matters.

Every choice has a lower bound on its step time, which grows as more is asked about it:
its work alone, with the traffic of its layers, whether it fits into memory, its step on
the best links imaginable, the bound over all placements, a placement. The choice with
the least bound is asked next. Once a choice whose placement is known has the least
value of all, no other choice can be better: what was not asked has a bound above it.

Questions about placements are asked a few at a time, always the same few, so that the
answer does not depend on how many of them are worked out at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, nsmallest
from math import inf
from typing import TYPE_CHECKING

from placer.degrees.entries import NEXT, Entry, Known, sizes_of
from placer.degrees.evaluate import Answer, Question
from placer.degrees.found import Found, Row, State
from placer.degrees.room import Room, needed
from placer.footprint.stages import restart_bytes
from placer.job.recompute import experts_again, flops_again, layers_again

if TYPE_CHECKING:
    from placer.degrees.choice import Choice
    from placer.degrees.least import Least
    from placer.degrees.space import Legal
    from placer.engines.engine import Run

# Questions about placements that are asked at a time.
AT_A_TIME = 4
# Rounds of questions, twice as many and so on, after which a choice is placed in any
# case: a search that is cut short has a good answer.
ROUNDS = 32
# Sizes that are tried at first, so that one that is cut very short has any.
EARLY = 64


def _all(_entry: Entry) -> bool:
    return True


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
    interrupted : callable
        Whether even a first answer is not waited for.
    is_hurried : bool
        Whether time is up and there is no answer: one is placed without a search.
    tell : callable
        Told the state from time to time.
    room : Room
        What choices need of the memory.
    """

    legal: Legal
    least: Least
    memory_limit: float
    run: Run
    stop: Callable[[], bool] = lambda: False
    interrupted: Callable[[], bool] = lambda: False
    tell: Callable[[State], None] = lambda _state: None
    _heap: list[Entry] = field(default_factory=list)
    _answers: dict[Choice, Answer] = field(default_factory=dict)
    _wanted: Callable[[Entry], bool] = field(default=_all)
    _set_aside: list[Entry] = field(default_factory=list)
    _spares: bool = True
    _spared: dict[Choice, Entry] = field(default_factory=dict)
    _considered: int = 0
    _too_large: int = 0
    _infeasible: int = 0
    _refusals: Counter[str] = field(default_factory=Counter)
    _rounds: int = 0
    _is_listed: bool = True
    is_hurried: bool = False

    def __post_init__(self) -> None:
        self.room = Room(self.legal.job, self.memory_limit)

    def best(
        self,
        count: int,
        *,
        by_gpus: bool = False,
        slack: float = 0.0,
        own: Choice | None = None,
    ) -> Found:
        """The best choice, and the ``count - 1`` next that were placed.

        Once the best is proved, others are placed in the order of their bounds until
        there are ``count``.

        Parameters
        ----------
        count : int
        by_gpus : bool
            Also find the best with fewer GPUs.
        slack : float
            Also find the best with less memory, as far as its step is not longer by
            more than this share.
        own : Choice, optional
            Is placed first, if it is one of those to choose from: a search that is cut
            short then has an answer.
        """
        self._collect(own)
        self._place_early(own, self.stop)
        if not self._answers and self.stop():
            self.is_hurried = True
            self._place_early(own, self.interrupted)
            self.is_hurried = False
        best = self._first()
        fronts = self._by_gpus(best) if by_gpus else [], self._by_memory(best, slack)
        ended = best is None and (bool(self._heap) or self.stop())
        self._place_more(count)
        rows = (self.row(*item) for item in self._answers.items())
        placed = sorted(rows, key=self._rank)
        unknown = (e.bound_s for e in self._heap if e.known is not Known.PLACED)
        return Found(
            placed[:count],
            placed,
            *fronts,
            self._considered,
            self._too_large,
            self._infeasible,
            min(unknown, default=inf) if self._is_listed else 0.0,
            ended,
        )

    def ask(self, choice: Choice) -> Answer | None:
        """The answer about a choice that need not be legal; None when interrupted."""
        if choice not in self._answers:
            return dict(self.run([Question(choice, "placement")])).get(0)
        return self._answers[choice]

    def row(self, choice: Choice, answer: Answer) -> Row:
        """A choice that was placed, as a row."""
        job = choice.applied(self.legal.job)
        return Row(choice, answer, needed(job), restart_bytes(job))

    @property
    def refusals(self) -> Counter[str]:
        """Why no placement of a choice obeys the rules, and of how many."""
        return self._refusals

    def _collect(self, own: Choice | None) -> None:
        """Put every choice of sizes on the heap, and count the choices.

        Where time does not suffice for all, the job's own is among those there are.
        """
        for shape in self.legal.shapes():
            self._considered += self.legal.count(shape)
            bound = self.least.work_s(shape)
            self._heap.append(Entry(bound, Known.SIZES, shape))
            self.tell(State(self._considered, 0, inf, 0.0))
            if self.stop():
                self._collect_own(own)
                self._is_listed = False
                break
        heapify(self._heap)

    def _collect_own(self, own: Choice | None) -> None:
        there = {entry.choice for entry in self._heap}
        if own is None or sizes_of(own) in there:
            return
        for shape in self.legal.only(own).shapes():
            if shape == sizes_of(own):
                self._considered += self.legal.count(shape)
                bound = self.least.work_s(shape)
                self._heap.append(Entry(bound, Known.SIZES, shape))

    def _place_early(self, own: Choice | None, stop: Callable[[], bool]) -> None:
        """Place one choice: the job's own, or else the first that fits into memory."""
        order = nsmallest(EARLY, self._heap)
        if own is not None:
            mine = [entry for entry in self._heap if entry.choice == sizes_of(own)]
            order = [*mine, *(entry for entry in order if entry not in mine)]
        for entry in order:
            if self._answers or stop():
                break
            self._heap.remove(entry)
            heapify(self._heap)
            fitting = [entry]
            if entry.known is Known.SIZES:
                (traffic,) = self._next(entry)
                fitting = [*self._next(traffic)]
            if fitting:
                first = next((e for e in fitting if e.choice == own), min(fitting))
                fitting.remove(first)
                self._ask([first._replace(known=Known.BOUND)])
            self._push(fitting)

    def _by_gpus(self, best: Row | None) -> list[Row]:
        """The best choice, then the best with fewer GPUs, and so on."""
        front = []
        while best is not None:
            front.append(best)
            most = best.choice.gpus

            def is_fewer(entry: Entry, most: int = most) -> bool:
                return entry.choice.gpus < most

            best = self._first(is_fewer)
        return front

    def _by_memory(self, best: Row | None, slack: float) -> list[Row]:
        """The best choice, then the best with less memory, and so on."""
        if best is None or not slack:
            return []
        longest = best.answer.step_time_s * (1 + slack)
        self._push(self._spared.values())
        self._spares = False
        front: list[Row] = []
        while best is not None:
            if front and best.answer.step_time_s <= front[-1].answer.step_time_s:
                front.pop()  # as fast, with less
            front.append(best)
            most = best.memory

            def is_less(entry: Entry, most: float = most) -> bool:
                known = entry.known < Known.TRAFFIC
                needs = self.room.needs(entry.choice) if known else 0.0
                return entry.bound_s <= longest and needs < most

            best = self._first(is_less)
        return front

    def _first(self, wanted: Callable[[Entry], bool] = _all) -> Row | None:
        """The choice with the shortest step of those wanted; None without, or in time.

        Proved: it is first in the heap, with a value, and all others have bounds.
        """
        self._wanted = wanted
        found = None
        while not self.stop() and (entry := self._pop()):
            if entry.known is Known.PLACED:
                self._set_aside.append(entry)
                found = self.row(entry.choice, self._answers[entry.choice])
                break
            self._look_at(entry)
        self._heap += self._set_aside
        self._set_aside = []
        self._wanted = _all
        heapify(self._heap)
        return found

    def _place_more(self, count: int) -> None:
        """Place choices in the order of their bounds, until so many are.

        Of those that were placed out of order, to have an answer early, only the ones
        that no bound is below any more count.
        """
        early = set(self._answers)
        missing = count
        while missing > 0 and not self.stop() and (entry := self._pop()):
            if entry.known is not Known.PLACED:
                placed = len(self._answers)
                self._look_at(entry)
                missing -= len(self._answers) - placed
            elif entry.choice in early:
                missing -= 1

    def _pop(self) -> Entry | None:
        """The first wanted entry of the heap, off it; others are set aside."""
        while self._heap:
            entry = heappop(self._heap)
            if self._wanted(entry):
                return entry
            self._set_aside.append(entry)
        return None

    def _look_at(self, entry: Entry) -> None:
        """Find out more about a choice that was taken off the heap."""
        if entry.known >= Known.TRAFFIC:
            self._push(self._next(entry))
        else:
            is_due = self._rounds >= ROUNDS << len(self._answers)
            if is_due or (entry.known is Known.LINKS and not self._answers):
                self._place_one(is_due)
            self._ask([entry, *self._others()])
        placed = len(self._answers)
        self.tell(State(self._considered, placed, self._best_s(), entry.bound_s))

    def _best_s(self) -> float:
        """The shortest step that is known, s."""
        return min((a.step_time_s for a in self._answers.values()), default=inf)

    def _place_one(self, is_due: bool) -> None:
        """Place the choice of the least bound over placements, if there is one.

        The bounds of all others then need not be sharper than its step. If it is due
        the one with the best links gets such a bound first.
        """
        best_s = self._best_s()
        for known in (Known.BOUND, Known.LINKS)[: 1 + is_due]:
            alike = (e for e in self._heap if e.known is known and self._wanted(e))
            entry = min(alike, default=None)
            if entry is not None and entry.bound_s < best_s:
                self._heap.remove(entry)
                heapify(self._heap)
                self._ask([entry])
                return

    def _next(self, entry: Entry) -> Iterator[Entry]:
        """What is known of a choice, or of its variants, once it is looked at."""
        choice = entry.choice
        if entry.known is Known.SIZES:
            bound = max(entry.bound_s, self.least.step_s(choice))
            yield Entry(bound, Known.TRAFFIC, choice)
            return
        # Of modes that compute nothing more again, the first that fits is enough to
        # find the best; the others only need less memory.
        fits: set[tuple[float, float, float, str, int]] = set()
        for variant in self.legal.variants(choice):
            if self.room.is_hopeless(variant):
                self._too_large += 1
                continue
            job = variant.applied(self.legal.job)
            if not self.room.holds(variant, job):
                self._too_large += 1
                continue
            again = flops_again(job), layers_again(job), experts_again(job)
            alike = (*again, variant.sharding, variant.shard_size)
            step_s = self.least.step_s(variant) + self.least.sync.exposed_s(job)
            found = Entry(max(entry.bound_s, step_s), Known.FITS, variant)
            if alike in fits:
                self._spared[variant] = found
            if alike not in fits or not self._spares:
                yield found
            fits.add(alike)

    def _others(self) -> Iterator[Entry]:
        """More choices to ask about at once: the next in order."""
        taken = 1
        while taken < AT_A_TIME and (entry := self._pop()):
            if entry.known in NEXT:
                taken += 1
                yield entry
            elif entry.known is Known.PLACED:
                heappush(self._heap, entry)
                return
            else:
                self._push(self._next(entry))

    def _ask(self, entries: list[Entry]) -> None:
        """Put the questions of some choices, and back what they say."""
        self._rounds += 1
        # What cannot be better is not looked at again, unless rows are missing.
        enough = self._best_s()
        hurry = self.is_hurried
        questions = [Question(e.choice, NEXT[e.known], enough, hurry) for e in entries]
        answered = dict(self.run(questions))
        for index, (entry, question) in enumerate(zip(entries, questions, strict=True)):
            answer = answered.get(index)
            if answer is None:  # interrupted
                heappush(self._heap, entry)
                continue
            if answer.refusal:
                self._infeasible += 1
                self._refusals[answer.refusal] += 1
            elif question.wanted != "placement":
                bound = max(entry.bound_s, answer.lower_bound_s)
                known = Known(entry.known - 1)
                heappush(self._heap, Entry(bound, known, entry.choice))
            else:
                self._answers[entry.choice] = answer
                placed = Entry(answer.step_time_s, Known.PLACED, entry.choice)
                heappush(self._heap, placed)

    def _push(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            heappush(self._heap, entry)

    def _rank(self, row: Row) -> tuple[float, bool, Choice]:
        """By step time; what only a front asks about comes behind its equals."""
        return row.answer.step_time_s, row.choice in self._spared, row.choice
