"""The best placement of a search so far, and what is proved about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from math import inf
from typing import Any, NamedTuple

import numpy as np

from placer.base.arrays import IntArray
from placer.base.rounding import EXACT
from placer.placement.placement import Placement
from placer.placement.previous import Previous
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.solution import (
    Progress,
    Solution,
    checked_bound,
    improvement_of,
    is_reached,
)
from placer.solve.tree.domains import Rest

Candidate = tuple[str, IntArray]
Key = tuple[float, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms of a search that is part of another one."""

    # Whether a placement may be kept; called with the GPU of every rank, shape (R,).
    allows: Callable[[IntArray], bool]
    # (lower bound, what it rests on), given the value of a known placement.
    bound: Callable[[float], tuple[float, str]]


class MoveCounts:
    """How often each move of a local search was tried, and how often it helped."""

    def __init__(self) -> None:
        self._tried: Counter[str] = Counter()
        self._helped: Counter[str] = Counter()

    def count(self, move: str, helped: int, tried: int = 1) -> None:
        """Add so many tries, of which so many led to a cheaper placement."""
        self._tried[move] += tried
        self._helped[move] += helped

    @property
    def tried(self) -> int:
        """How many moves were tried in all."""
        return self._tried.total()

    def add(self, other: MoveCounts) -> None:
        """Add the counts of another search."""
        self._tried += other._tried
        self._helped += other._helped

    def as_dict(self) -> Mapping[str, Mapping[str, int]]:
        """``{move: {"tried": number, "helped": number}}``."""
        return {
            move: {"tried": tried, "helped": self._helped[move]}
            for move, tried in sorted(self._tried.items())
        }


class Kept(NamedTuple):
    """What an incumbent has kept."""

    best: tuple[IntArray, float, str]  # the best placement, its value and its method
    proof: tuple[float, str]  # the best bound, and what it rests on
    # Values and placements of the elite pool, the best first.
    pool: tuple[tuple[float, IntArray], ...]
    moves: MoveCounts


class TieBreak:
    """The rule for placements of equal value.

    The value of a step is its worst replica and its worst groups. Where these are
    equal, less traffic in sum wins; then the fewest domains that hold ranks, at the
    outermost tier first; then the most ranks left where a previous plan has them; then
    the most useful rest (`Rest`).
    """

    def __init__(self, problem: Problem, previous: Previous | None = None) -> None:
        self._machine, self._goal = problem.machine, problem.goal
        self._previous, self._rest = previous, Rest(problem.machine)
        self._known: list[tuple[IntArray, Key]] = []

    def takes(
        self, value: float, new: IntArray, known: float, old: IntArray | None
    ) -> bool:
        """Whether ``new`` is as good as ``old``, whose value is known, and better."""
        if old is None or value > known * (1 + EXACT):
            return False
        return self.prefers(new, old)

    def prefers(self, new: IntArray, old: IntArray) -> bool:
        """Whether ``new`` is better than ``old``, given as GPU of every rank."""
        # The old one first, which is then among the last two.
        (less, old_counts), (more, new_counts) = self._key(old), self._key(new)
        if abs(more - less) > EXACT * max(more, less):
            return more < less
        return new_counts < old_counts

    def _key(self, gpu_of_rank: IntArray) -> Key:
        """Traffic; then domains used, outermost first, ranks kept and the rest."""
        found = [key for known, key in self._known if known is gpu_of_rank]
        key = found[0] if found else self._worked_out(gpu_of_rank)
        others = [one for one in self._known if one[0] is not gpu_of_rank]
        self._known = [*others[-1:], (gpu_of_rank, key)]
        return key

    def _worked_out(self, gpu_of_rank: IntArray) -> Key:
        return self._goal.traffic_s(gpu_of_rank), self._counts(gpu_of_rank)

    def _counts(self, gpu_of_rank: IntArray) -> tuple[int, ...]:
        node = np.unique(self._machine.node_of_gpu[gpu_of_rank])
        used = [
            len(np.unique(row[node])) for row in self._machine.domain_of_node[-2::-1]
        ]
        kept = self._previous.kept(gpu_of_rank) if self._previous else 0
        is_used = np.zeros(self._machine.num_nodes, dtype=bool)
        is_used[node] = True
        return (*used, -kept, *(-worth for worth in self._rest.left(is_used)))


# Gives the incumbent placements, and bounds where it has a proof.
Method = Callable[[Problem, "Incumbent", Budget], None]


def later(
    module: str, name: str, is_for: Callable[[Problem], object] = lambda _: True
) -> Callable[..., Any]:
    """A method whose module is loaded when it runs: most searches need few of them.

    ``module``: below `placer.solve`. ``is_for``: whether it may do anything for a
    problem; else the module is not loaded, and nothing is returned.
    """

    def method(problem: Problem, *others: Any) -> Any:
        if not is_for(problem):
            return None
        return getattr(import_module(method.__module__), name)(problem, *others)

    method.__name__, method.__module__ = name, f"placer.solve.{module}"
    return method


class Incumbent:
    """Keeps the best legal placement that methods offer, and the best bound.

    ``tell``: gets every better placement. ``terms``: of a search that is part of
    another one. ``budget``: of the methods: it ends when the placement is proved, too.
    ``gpu_of_rank`` ((R,)): None while no legal placement is known. ``value``: its cost;
    infinite without one. ``bound``: the best lower bound, 0 without one. ``method``:
    what found the placement. ``elite``: the best few placements, (R,), of different
    values, the best first. ``launch_bound``: a lower bound for every launcher and every
    rank order with the same groups; 0 without one. ``cut_short``: whether the clock
    ended some method. ``is_enough``: whether the search ends with what it has.
    ``moves``: of the local searches. ``closer``: works out what is dear of the bound.
    """

    def __init__(
        self,
        problem: Problem,
        budget: Budget,
        tell: Progress | None = None,
        terms: Terms | None = None,
    ) -> None:
        self.gpu_of_rank: IntArray | None = None
        self.value, self.method, self.bound = inf, "", 0.0
        self.launch_bound = 0.0
        self.moves = MoveCounts()
        self.cut_short = self.is_enough = False
        self.budget = budget.until(self._is_near)
        self.terms = terms
        self._problem, self._own, self._tell = problem, budget, tell
        self._ties = TieBreak(problem)
        self._pool: list[tuple[float, IntArray]] = []
        self._argument = "none"
        self.closer: Callable[[], None] | None = None

    @classmethod
    def resumed(
        cls, problem: Problem, solution: Solution, previous: Previous | None = None
    ) -> Incumbent:
        """The end of a search, to be compared with more placements.

        Of equal ones, that which keeps more ranks where ``previous`` has them wins.
        """
        found = cls(problem, Budget(inf))
        found._ties = TieBreak(problem, previous)
        found.gpu_of_rank = solution.placement.gpu_of_rank
        found.value, found.method = solution.value, solution.method
        found.prove(solution.lower_bound, solution.argument)
        return found

    @classmethod
    def holding(
        cls, problem: Problem, budget: Budget, kept: Kept, terms: Terms | None = None
    ) -> Incumbent:
        """One that begins with what another has kept; it is not reported."""
        own = cls(problem, budget, terms=terms)
        own.gpu_of_rank, own.value, own.method = kept.best
        own.bound, own._argument = kept.proof
        own._pool = [*kept.pool]
        return own

    @property
    def kept(self) -> Kept:
        """What others may begin with."""
        return Kept(
            (self.best, self.value, self.method),
            (self.bound, self._argument),
            tuple(self._pool),
            self.moves,
        )

    def join(self, kept: Kept) -> None:
        """Take over what another search has kept."""
        self.moves.add(kept.moves)
        for value, gpu_of_rank in kept.pool:
            self._pool_in(value, gpu_of_rank)
        gpu_of_rank, value, method = kept.best
        self._keep(method, gpu_of_rank, value)

    @property
    def best(self) -> IntArray:
        """The best placement; there must be one."""
        if self.gpu_of_rank is None:
            raise ValueError("no placement was found")
        return self.gpu_of_rank

    @property
    def elite(self) -> list[IntArray]:
        """The best few placements."""
        return [gpu_of_rank for _, gpu_of_rank in self._pool]

    @property
    def is_whole(self) -> bool:
        """Whether the best of all placements offered here is the best there is."""
        return self.terms is None

    def offer(self, method: str, gpu_of_rank: IntArray) -> float:
        """Keep a placement if it is legal, and better than the best or preferred.

        Returns its cost; infinite if it is not legal.
        """
        if self.gpu_of_rank is not None and np.array_equal(
            gpu_of_rank, self.gpu_of_rank
        ):
            return self.value
        if not self.allows(gpu_of_rank):
            return inf
        value = float(self._problem.goal.value(gpu_of_rank))
        self._keep(method, gpu_of_rank, value)
        return value

    def allows(self, gpu_of_rank: IntArray) -> bool:
        """Whether a placement (R,) may be kept."""
        return (self.terms or self._problem).allows(gpu_of_rank)

    def _keep(self, method: str, legal: IntArray, value: float) -> None:
        """Keep a legal placement of a value if it is better or preferred."""
        self._pool_in(value, legal)
        improves = value < self.value * (1 - EXACT)
        if not improves and not self._ties.takes(
            value, legal, self.value, self.gpu_of_rank
        ):
            return
        self.gpu_of_rank, self.value, self.method = legal, value, method
        if improves:
            self._report()

    def offer_all(self, candidates: Iterable[Candidate]) -> None:
        """Offer (name, GPU of every rank) one by one, until the search is over."""
        for name, gpu_of_rank in candidates:
            if self.ends():
                return
            self.offer(name, gpu_of_rank)

    def prove(self, bound: float, argument: str) -> None:
        """Keep a lower bound if it is better than the one before."""
        if bound > self.bound:
            self.bound, self._argument = bound, argument
            if self.gpu_of_rank is not None:
                self._report()

    def prove_closer(self) -> None:
        """Work out once what is dear of the bound."""
        closer, self.closer = self.closer, None
        if closer is not None and not self.ends():
            closer()

    def include(self, part: Solution) -> None:
        """Count what a search that is part of this one did, and how it ended."""
        self.cut_short |= part.is_cut_short
        self.launch_bound = max(self.launch_bound, part.launch_bound)
        for move, counts in part.moves.items():
            self.moves.count(move, counts["helped"], counts["tried"])

    def ends(self) -> bool:
        """Whether there is a placement, and it is proved, or time or patience is up.

        Or it is proved that there is none, or under rules none was found in time.
        """
        if self.gpu_of_rank is not None:
            return self.budget.is_over()
        is_late = self.terms is not None and self._own.is_past()
        return self.bound == inf or is_late

    def is_within(self, gap: float) -> bool:
        """Whether no more can be gained than such a share of the value."""
        return bool(self.value * (1 - gap) <= self.bound)

    @property
    def is_worth_searching(self) -> bool:
        """Whether more than constructions is wanted, and they left enough to gain."""
        params = self._problem.params
        return params.local_search and not self.is_within(params.search_gap)

    def solution(self) -> Solution:
        """The best placement as the result, with the reason why the search ended.

        There must be one.
        """
        return self._state(self._ended())

    def _ended(self) -> str:
        if self._is_proved():
            return "proved"
        if self._own.is_stopped:
            return "interrupted"
        if self._own.is_over() or self.cut_short:
            return "time-limit"
        return "searched"

    def _is_proved(self) -> bool:
        return self.value < inf and is_reached(self.value, self.bound)

    def _is_near(self) -> bool:
        """Whether there is nothing to gain, or no more than what is not worth it."""
        params, left = self._problem.params, self.value - self.bound
        return (
            self.is_enough
            or self._is_proved()
            or left <= params.enough_gap * self.value
            or inf > self.value <= params.enough_value * (1 + EXACT)
        )

    def _pool_in(self, value: float, gpu_of_rank: IntArray) -> None:
        """Put a placement into the elite pool if it belongs there."""
        if all(value != known for known, _ in self._pool):
            self._pool.append((value, gpu_of_rank))
            self._pool.sort(key=lambda entry: entry[0])
            del self._pool[self._problem.params.elite :]

    def _report(self) -> None:
        """Let the user know, and keep, what has been found so far."""
        if self._tell is not None:
            order = self._problem.job.parallelism.order
            self._tell(improvement_of(self._state("interrupted"), order))

    def _state(self, ended: str) -> Solution:
        value = float(self.value)
        bound, argument = checked_bound(value, float(self.bound), self._argument)
        return Solution(
            placement=Placement(self.best),
            objective=self._problem.goal.name,
            value=value,
            lower_bound=bound,
            argument=argument,
            method=self.method,
            stop_reason=ended,
            wall_s=self._own.elapsed_s,
            deterministic=ended in ("proved", "searched") and not self.cut_short,
            launch_bound=self.launch_bound,
            moves=self.moves.as_dict(),
        )
