"""How long a search may go on, and one that ends in time whatever its methods do.

Methods ask the budget between two steps, but a step can be long: a program that an
engine solves, the bound of a large job. So a search runs in a thread of its own, and
who waits for it leaves with the best placement reported so far when no answer comes.
A thread left behind goes on until its step ends and then stops; it holds up the end of
the process for a few seconds at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from math import inf
from threading import Event, Lock
from time import monotonic
from typing import Generic, NamedTuple, TypeVar

from placer.base.errors import StoppedError
from placer.base.rounding import EXACT
from placer.base.threads import start
from placer.solve.run.solution import Improvement, Progress, Solution

Answer = TypeVar("Answer")

SEARCH_THREAD = "placer-search"


@dataclass
class Pulse:
    """Written by the search as it goes on; no result depends on it."""

    phase: str = ""  # the method at work, for people
    # The best so far, in the unit of the objective; 0 while none is known.
    lower_bound: float = 0.0


class Budget:
    """Time that is left, read between two steps of a method, and cores to use it on.

    ``seconds`` (s): by the clock, from now on. ``*ends``: each called as well; True
    ends the search. ``workers``: threads that may work at a time. No result may depend
    on it. ``pulse``: where the search says what it is at; budgets that are a part share
    it. ``grace_s`` (s): how long past its end a search without any placement may go on;
    shared out as the time is.
    """

    def __init__(
        self,
        seconds: float,
        *ends: Callable[[], bool],
        workers: int = 1,
        pulse: Pulse | None = None,
        grace_s: float = 0.5,
    ) -> None:
        self._start, self.seconds = monotonic(), seconds
        self._ends, self.workers, self.pulse = ends, workers, pulse or Pulse()
        self._grace_s, self._past = grace_s, self._start + seconds + grace_s

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return monotonic() - self._start

    @property
    def is_stopped(self) -> bool:
        """Whether somebody, not the clock, asks for the end."""
        return any(end() for end in self._ends)

    @property
    def seconds_left(self) -> float:
        """Seconds left by the clock, at least 0."""
        return max(0.0, self.seconds - self.elapsed_s)

    def is_over(self) -> bool:
        """Whether it is time to end."""
        return self.is_stopped or self.seconds_left <= 0

    @property
    def longest_left(self) -> float:
        """Seconds left for a first placement, at least 0: the limit and a little."""
        return max(0.0, self._past - monotonic())

    def is_past(self) -> bool:
        """Whether it is time to end without any placement."""
        return self.longest_left <= 0

    def anew(self, seconds: float, grace_s: float | None = None) -> Budget:
        """So many seconds from now on, which the same may end before."""
        part = self._part(seconds)
        part._grace_s = self._grace_s if grace_s is None else grace_s
        part._past = part._start + seconds + part._grace_s
        return part

    def share(self, count: int) -> Budget:
        """An equal part of what is left, for the first of ``count`` searches."""
        part = self._part(self.seconds_left / count)
        part._past = monotonic() + self.longest_left / count
        return part

    def restarted(self) -> Budget:
        """As many seconds as this one had, from now on."""
        return self._part(self.seconds)

    def until(self, end: Callable[[], bool]) -> Budget:
        """What is left, which ``end`` may end too."""
        return self._part(self.seconds_left, end)

    def _part(self, seconds: float, *ends: Callable[[], bool]) -> Budget:
        part = copy(self)
        part._start, part.seconds = monotonic(), seconds
        part._ends = *self._ends, *ends
        return part


# For who waits as long as it takes.
ENDLESS = Budget(inf)


@dataclass(frozen=True)
class Patience:
    """How long a search is waited for that should have ended."""

    # interrupted and time_limit, s: what it gets to end by itself when it is stopped,
    # and past its limit.
    interrupted: float = 0.5
    time_limit: float = 1.0
    look_after: float = 0.05  # s: between two looks at it
    # Whether one without a placement is waited for even when it is stopped.
    for_any: bool = False


class LeftBehind(NamedTuple):
    """The best placement of a search that did not end, and its rank order."""

    solution: Solution
    order: tuple[str, ...]


class InTime(Generic[Answer]):
    """A search in a thread, and the best placement it has reported.

    ``search``: called with what it is to tell of better placements, and with its
    budget. ``progress``: gets every better placement, in the thread of the search.
    """

    def __init__(
        self,
        search: Callable[[Progress, Budget], Answer],
        budget: Budget,
        progress: Progress | None = None,
        patience: Patience = Patience(),
    ) -> None:
        self._search, self._budget, self._progress = search, budget, progress
        self._patience = patience
        self._left = Event()
        self._done = Event()
        self._concludes = False
        self._lock = Lock()
        self._best: Improvement | None = None
        self._answers: list[Answer] = []
        self._errors: list[BaseException] = []

    @contextmanager
    def concluding(self) -> Iterator[None]:
        """A context in which is done what whoever leaves would have to do as well.

        Nobody leaves meanwhile. Raises `StoppedError` if somebody has.
        """
        if self._left.is_set():
            raise StoppedError("left behind")
        self._concludes = True
        yield
        self._concludes = False

    def run(self) -> Answer | LeftBehind:
        """What the search returns or raises; the best it reported when it does not end.

        Past the time limit a search without any placement is waited for.

        Raises `StoppedError` if it was stopped before it had a placement, and is
        not waited for.
        """
        start(self._run, SEARCH_THREAD)
        try:
            best = self._wait()
        finally:
            self._left.set()
        if best is not None:
            return best
        if self._errors:
            raise self._errors[0]
        return self._answers[0]

    def _run(self) -> None:
        try:
            within = self._budget.until(self._left.is_set)
            self._answers.append(self._search(self._tell, within))
        except BaseException as error:
            self._errors.append(error)
        finally:
            self._done.set()

    def _tell(self, incumbent: Improvement) -> None:
        """Keep what is better or better proved; pass on what is better."""
        if self._left.is_set() or incumbent.solution is None:
            return
        with self._lock:
            before = self._best
            if before and incumbent.value > before.value * (1 + EXACT):
                return
            self._best = incumbent
            self._budget.pulse.lower_bound = incumbent.lower_bound
        is_better = before is None or incumbent.value < before.value
        if is_better and self._progress is not None:
            self._progress(replace(incumbent, pulse=self._budget.pulse))

    def _wait(self) -> LeftBehind | None:
        """The best placement when the search is left behind, None when it has ended."""
        stopped_at: float | None = None
        while not self._done.wait(self._patience.look_after):
            if self._concludes:
                continue
            now = monotonic()
            late = self._budget.elapsed_s - self._budget.seconds
            if stopped_at is None and self._budget.is_stopped:
                stopped_at = now
            has_any = self._best is not None
            is_deaf = (
                stopped_at is not None and now - stopped_at > self._patience.interrupted
            )
            if is_deaf and (has_any or not self._patience.for_any):
                return self._leave("interrupted")
            if has_any and late > self._patience.time_limit:
                return self._leave("time-limit")
        return None

    def _leave(self, reason: str) -> LeftBehind:
        with self._lock:
            best = self._best
        if best is None or best.solution is None:
            raise StoppedError("stopped before any placement was found")
        solution = replace(best.solution, wall_s=self._budget.elapsed_s)
        if solution.stop_reason == "interrupted":  # as of the middle of a search
            solution = replace(solution, stop_reason=reason)
        return LeftBehind(solution, best.order)
