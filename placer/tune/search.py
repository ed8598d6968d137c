"""The best choices, proved: best bound first, each question only where it matters.

Every choice has a lower bound on its step time, which grows as more is asked about it:
its slowest stage alone, its pipeline, with the traffic of its layers, whether it fits
into memory, its step on the best links imaginable, the bound over all placements, a
placement. The choice with the least bound is asked next. Once a choice whose placement
is known has the least value of all, no other choice can be better: what was not asked
has a bound above it.

Placements are constructed; those of few ranks are searched for afterwards, where no
other choice can be better than what the search may find. Questions about placements are
asked a few at a time, always the same few, so that the answer does not depend on how
many of them are worked out at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf

from placer.cost.footprint.stages import restart_bytes
from placer.job.work import experts_again, flops_again, layers_again
from placer.tune.choice import Choice
from placer.tune.evaluate import Answer, Question, Room, is_enough, needed
from placer.tune.found import Found, Row, State, best_of_kind, by_gpus, by_memory
from placer.tune.kinds import classes, told_apart
from placer.tune.least import Least
from placer.tune.space import Legal
from placer.tune.waiting import NEXT, Entry, Known, Waiting, every
from placer.workers.engine import Run

# Questions about placements that are asked at a time.
AT_A_TIME = 4
# Rounds of questions, twice as many and so on, after which a choice is placed in any
# case: a search that is cut short has a good answer.
ROUNDS = 8
# Choices that are placed at most for a row that differs from those before it.
PLACED_FOR_A_ROW = 8
# Sizes that are tried at first, so that one that is cut very short has any.
EARLY = 64


@dataclass
class Search:
    """Best-first search over choices.

    ``memory_limit`` (bytes): of a GPU; 0 when unknown. ``run``: answers questions.
    ``stop``: whether time is up. ``is_hurried``: whether time is up and there is no
    answer: one is placed without a search. ``tell``: told the state from time to time.
    ``room``: what choices need of the memory.
    """

    legal: Legal
    least: Least
    memory_limit: float
    run: Run
    stop: Callable[[], bool] = lambda: False
    tell: Callable[[State], None] = lambda _state: None
    _waiting: Waiting = field(default_factory=Waiting)
    _answers: dict[Choice, Answer] = field(default_factory=dict)
    _spares: bool = True
    _spared: dict[Choice, Entry] = field(default_factory=dict)
    _considered: int = 0
    _too_large: int = 0
    _refused: dict[Choice, Answer] = field(default_factory=dict)
    _least_out_s: float = inf  # of what is neither in line nor proved not to fit
    _rounds: int = 0
    is_hurried: bool = False

    def __post_init__(self) -> None:
        self.room = Room(self.legal.job, self.memory_limit)

    def best(
        self,
        count: int,
        *,
        is_by_gpus: bool = False,
        slack: float = 0.0,
        own: Choice | None = None,
    ) -> Found:
        """The best choice, and the ``count - 1`` next that were placed.

        Once the best is proved, others are placed in the order of their bounds until
        there are ``count``.

        ``is_by_gpus``: also find the best with fewer GPUs. ``slack``: also find the
        best with less memory, as far as its step is not longer by more than this share.
        ``own``: is placed first, if it is one of those to choose from: a search that is
        cut short then has an answer.
        """
        self._collect(own)
        self._place_early(own, self.stop)
        if not self._answers and self.stop():
            self.is_hurried = True
            self._place_early(own, lambda: False)
            self.is_hurried = False
        best = self._first()
        # What is looked at from here on, for more rows, counts as beaten.
        lost, known = (self._too_large, len(self._refused)), len(self._answers)
        kin = best_of_kind(self._first, own) if own and best else None
        fewer = by_gpus(self._first, best) if is_by_gpus else []
        # What is spared comes in line now; it is no better than what it is alike.
        proved_s = self._floor_s()
        lighter = self._by_memory(best, slack)
        is_cut = self.stop()
        self._place_more(count)
        self._search_for(count)
        placed = self._placed()
        shown, alike, place = told_apart(placed, count, kin)
        # The least of what is out is 0 where not all were listed.
        is_open = not self._least_out_s or self._waiting.least_s < inf
        return Found(
            shown,
            placed,
            fewer,
            lighter,
            self._considered,
            *lost,
            self._considered - known - sum(lost),
            max(proved_s, self._floor_s()),
            is_cut,
            is_short=len(shown) < count and is_open and self.stop(),
            alike=alike,
            of_kind=place,
        )

    def _floor_s(self) -> float:
        """No choice that was not placed has a shorter step."""
        return min(self._waiting.least_s, self._least_out_s)

    def _placed(self) -> list[Row]:
        """All choices that were placed, best first.

        What only a front asks about comes behind its equals.
        """

        def rank(row: Row) -> tuple[float, bool, Choice]:
            return row.answer.step_time_s, row.choice in self._spared, row.choice

        return sorted((self.row(*item) for item in self._answers.items()), key=rank)

    def ask(self, choice: Choice) -> Answer | None:
        """The answer about a choice that need not be legal; None when interrupted."""
        answer = self._answers.get(choice) or self._refused.get(choice)
        if answer is None:
            answer = dict(self.run([Question(choice, "placement")])).get(0)
        if answer is None or answer.refusal or is_enough(choice, answer):
            return answer
        more = dict(self.run([Question(choice, "search")])).get(0)
        return answer if more is None else more.after(answer)

    def row(self, choice: Choice, answer: Answer) -> Row:
        """A choice that was placed, as a row."""
        job = choice.applied(self.legal.job)
        return Row(choice, answer, needed(job), restart_bytes(job))

    @property
    def refusals(self) -> Counter[str]:
        """Why no placement of a choice obeys the rules, and of how many."""
        return Counter(answer.refusal for answer in self._refused.values())

    def _collect(self, own: Choice | None) -> None:
        """Put every choice of sizes in line, and count the choices.

        Where time does not suffice for all, the job's own is among those there are.
        """
        found = []
        for shape in self.legal.shapes():
            found.append(self._sizes(shape))
            self.tell(State(self._considered, 0, inf, 0.0))
            if self.stop():
                self._least_out_s = 0.0
                found += self._own_sizes(own, {entry.choice for entry in found})
                break
        self._waiting.add(found)

    def _own_sizes(self, own: Choice | None, there: set[Choice]) -> Iterator[Entry]:
        if own is not None and own.sizes not in there:
            for shape in self.legal.only(own).shapes():
                if shape == own.sizes:
                    yield self._sizes(shape)

    def _sizes(self, shape: Choice) -> Entry:
        self._considered += self.legal.count(shape)
        return Entry(self.least.busy_s(shape), Known.STAGES, shape)

    def _place_early(self, own: Choice | None, stop: Callable[[], bool]) -> None:
        """Place one choice: the job's own, or else the first that fits into memory."""
        order = self._early()
        if own is not None:
            mine = self._waiting.of(own.sizes, own)
            order = [*mine, *(entry for entry in order if entry not in mine)]
        for entry in order:
            if self._answers or stop():
                break
            self._waiting.take(entry)
            fitting = [entry]
            while fitting and fitting[0].known > Known.FITS:
                fitting = [*self._next(fitting[0])]
            if fitting:
                first = next((e for e in fitting if e.choice == own), min(fitting))
                fitting.remove(first)
                self._ask([first._replace(known=Known.BOUND)])
            self._waiting.add(fitting)

    def _early(self) -> list[Entry]:
        """The first sizes, in line still."""
        found: list[Entry] = []
        while len(found) < EARLY and (entry := self._waiting.pop()):
            if entry.known is Known.STAGES:
                self._waiting.add(self._next(entry))
            else:
                found.append(entry)
        self._waiting.add(found)
        return found

    def _by_memory(self, best: Row | None, slack: float) -> list[Row]:
        """The best choice, then the best with less memory, and so on."""
        if best is None or not slack:
            return []
        longest = best.answer.step_time_s * (1 + slack)
        self._waiting.add(self._spared.values())
        self._spares = False
        return by_memory(self._first, best, longest, self.room.needs)

    def _first(self, wanted: Callable[[Entry], bool] = every) -> Row | None:
        """The choice with the shortest step of those wanted; None without, or in time.

        Proved: it is first in line, with a value, and all others have bounds.
        """
        found = None
        with self._waiting.only(wanted):
            while not self.stop() and (entry := self._waiting.next()):
                if entry.known is Known.PLACED:
                    self._waiting.add([entry])
                    found = self.row(entry.choice, self._answers[entry.choice])
                    break
                self._look_at(entry)
        return found

    def _place_more(self, count: int) -> None:
        """Place choices in the order of their bounds, until so many differ.

        Of those that were placed out of order, to have an answer early, only the ones
        that no bound is below any more count.
        """
        early = set(self._answers)
        self._waiting.end_searches()
        counted: set[Choice] = set()
        rows: list[Row] = []
        differ = 0
        while differ < count and len(rows) < PLACED_FOR_A_ROW * count:
            if self.stop() or not (entry := self._waiting.pop()):
                return
            if entry.known is Known.PLACED:
                counted.add(entry.choice)
            else:
                self._look_at(entry)
                counted |= self._answers.keys() - early
            if len(counted) > len(rows):
                rows = [row for row in self._placed() if row.choice in counted]
                differ = len(classes(rows))

    def _search_for(self, count: int) -> None:
        """Search for the placements of the first rows, until all of them were."""
        while not self.stop():
            rows = [one[0] for one in classes(self._placed())[:count]]
            some = [r.choice for r in rows if not is_enough(r.choice, r.answer)]
            if not some:
                return
            self._ask([Entry(0.0, Known.SKETCHED, choice) for choice in some])

    def _look_at(self, entry: Entry) -> None:
        """Find out more about a choice that was taken off the heap."""
        if entry.known >= Known.TRAFFIC:
            self._waiting.add(self._next(entry))
        elif entry.known is Known.SKETCHED:
            self._ask([entry])
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
            entry = self._waiting.least(known)
            if entry is not None and entry.bound_s < best_s:
                self._waiting.take(entry)
                self._ask([entry])
                return

    def _next(self, entry: Entry) -> Iterator[Entry]:
        """What is known of a choice, or of its variants, once it is looked at."""
        choice = entry.choice
        if entry.known >= Known.SIZES:
            is_sized = entry.known is Known.SIZES
            least = self.least.step_s if is_sized else self.least.work_s
            bound = max(entry.bound_s, least(choice))
            yield Entry(bound, Known(entry.known - 1), choice)
            return
        # Of modes that compute nothing more again, the first that fits is enough to
        # find the best; the others only need less memory.
        fits: set[tuple[float, float, float, str, int]] = set()
        for variant in self.legal.variants(choice):
            if self.room.is_hopeless(variant) or not self.room.holds(
                variant, job := variant.applied(self.legal.job)
            ):
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
        while taken < AT_A_TIME and (entry := self._waiting.pop()):
            if entry.known in NEXT:
                taken += 1
                yield entry
            elif entry.known is Known.PLACED:
                self._waiting.add([entry])
                return
            else:
                self._waiting.add(self._next(entry))

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
                self._put_back(entry)
            elif answer.refusal:
                self._refused[entry.choice] = answer
                if answer.lower_bound_s < inf:  # there may be one all the same
                    self._least_out_s = min(self._least_out_s, entry.bound_s)
            elif question.wanted in ("links", "bound"):
                bound = max(entry.bound_s, answer.lower_bound_s)
                self._put_back(Entry(bound, Known(entry.known - 1), entry.choice))
            else:
                answer = answer.after(self._answers.get(entry.choice, answer))
                self._answers[entry.choice] = answer
                self._put_back(Entry.placed(entry.choice, answer))

    def _put_back(self, entry: Entry) -> None:
        if entry.known is Known.SKETCHED:
            step_s = self._answers[entry.choice].step_time_s
            self._waiting.add_sketched(entry, step_s)
        else:
            self._waiting.add([entry])
