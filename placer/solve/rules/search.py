"""The search under rules: machines and jobs for which any placement keeps them.

A rule is kept by leaving out nodes where that is all it takes. Nodes to avoid are left
out, and come back one by one only when nothing fits. Spare nodes are withheld from
their domains. Where a domain may hold ``k`` replicas it offers room for ``k``, and
replicas are kept whole. Each such machine is searched as any other. What is left of the
rules is checked, or mended, placement by placement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, inf, isfinite

import numpy as np
import numpy.typing as npt

from placer.job.rules import Rules
from placer.placement.baselines import BASELINES, baseline
from placer.placement.placement import Placement
from placer.solve.bounds.certificate import lower_bound
from placer.solve.exact.seats import MOST_CHOICES, seat
from placer.solve.problem.compiled import Problem
from placer.solve.problem.launch import launch_blocks
from placer.solve.problem.limits import MachinePart
from placer.solve.problem.rules import obeys
from placer.solve.rules.attempts import (
    Attempt,
    attempts,
    costs_the_same,
    mender,
    unit_of,
)
from placer.solve.rules.limited_fill import limited_fills
from placer.solve.rules.offer import loses_nothing, without_spares
from placer.solve.rules.readmit import readmitted
from placer.solve.run.budget import Budget
from placer.solve.run.solution import (
    EXACT,
    Improvement,
    Progress,
    Solution,
    held_bound,
    improvement_of,
    is_reached,
)
from placer.solve.run.terms import Terms
from placer.solve.run.ties import ROUNDING

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


# The plain search on one machine under terms; None where nothing fits.
PlainSearch = Callable[[Problem, Budget, "Progress | None", Terms], "Solution | None"]


@dataclass(frozen=True, eq=False)
class Tools:
    """What a search under rules works with.

    Attributes
    ----------
    search : callable
        The plain search.
    budget : Budget
    progress : Progress or None
    wants_bound : bool
        False where it only matters whether there is a placement.
    """

    search: PlainSearch
    budget: Budget
    progress: Progress | None = None
    wants_bound: bool = True


def search_under_rules(problem: Problem, tools: Tools) -> Solution | None:
    """The best placement found that keeps the job's rules, None without any.

    Parameters
    ----------
    problem : Problem
    tools : Tools
    """
    return _RuledSearch(problem, tools).run()


class _RuledSearch:
    """One search: the incumbent in the whole machine, and the bound."""

    def __init__(self, problem: Problem, tools: Tools) -> None:
        self.topology, self.tools = problem.machine, tools
        self.limits = problem.limits
        self.problem = problem.on(problem.machine, replace(problem.job, rules=Rules()))
        self.job, self.goal = self.problem.job, self.problem.goal
        self.is_hop_cost = self.goal.name == "hop-cost"
        self.best: IntArray | None = None
        self.value, self.method = inf, ""
        self.bound, self.argument = 0.0, "none"
        self.ends: list[str] = []
        self.launch_bound = 0.0

    def run(self) -> Solution | None:
        """Search with as few nodes to avoid as can be."""
        seating = seat(self.limits)
        if seating is not None and seating.proved and seating.node_of_rank is None:
            return None
        if seating is not None and seating.node_of_rank is not None:
            placement = Placement.on_nodes(self.topology, seating.node_of_rank)
            found: list[tuple[str, IntArray]] = [
                ("exact seating", placement.gpu_of_rank)
            ]
            used = np.unique(seating.node_of_rank)
            least = used[self.limits.avoided[used]]
        else:
            found, least = [], np.zeros(0, dtype=np.int64)
        self._search(self._choices(least), found, covers=seating is not None)
        if self.best is None and self.limits.avoided.any():
            more = readmitted(self.limits, self.job, self.problem.params.readmit_work)
            if more is not None and len(more):
                self._search([more], [], covers=False)
        if self.best is None:
            self._seat_blocks()
        return None if self.best is None else self._solution(self.best)

    def _seat_blocks(self) -> None:
        """Try to seat blocks of ranks, however many nodes to avoid that takes."""
        for block in launch_blocks(self.topology, self.job):
            seating = seat(self.limits, block=block, most_choices=MOST_CHOICES)
            if seating is not None and seating.node_of_rank is not None:
                placement = Placement.on_nodes(self.topology, seating.node_of_rank)
                self._consider("seating", placement.gpu_of_rank, seating.avoided)
                prove = self._prover(np.ones(self.topology.num_nodes, dtype=bool))
                self.bound, self.argument = prove(self.value)
                return

    def _choices(self, least: IntArray) -> list[IntArray]:
        """Sets of nodes to avoid that are used all the same, as many as are needed."""
        avoided = np.flatnonzero(self.limits.avoided)
        if comb(len(avoided), len(least)) > self.problem.params.avoided_sets:
            return [least]
        return [
            np.array(chosen, dtype=np.int64)
            for chosen in combinations(avoided.tolist(), len(least))
        ]

    def _search(
        self,
        choices: list[IntArray],
        found: list[tuple[str, IntArray]],
        covers: bool,
    ) -> None:
        """Search the machine with each set of nodes to avoid; keep what is proved."""
        needed = len(choices[0])
        for name, gpu_of_rank in [*found, *self._baselines()]:
            self._consider(name, gpu_of_rank, needed)
        covers &= len(choices) == comb(int(self.limits.avoided.sum()), needed)
        proved, bound = inf, 0.0
        for chosen in choices:
            offered = ~self.limits.avoided
            offered[chosen] = True
            if len(choices) > 1 and self._cannot_hold(offered):
                continue
            prove = self._prover(offered if not needed else np.ones_like(offered))
            proved = min(proved, self._attempts(offered, prove))
            bound = prove(self.value)[0] if self.best is not None else 0.0
        # The best of some sets only says nothing about the others.
        self.bound = proved if (covers or not needed) and isfinite(proved) else bound

    def _cannot_hold(self, offered: BoolArray) -> bool:
        """Whether no legal placement uses only the nodes ``offered``."""
        seating = seat(self.limits, ~offered)
        return seating is not None and seating.proved and seating.node_of_rank is None

    def _attempts(
        self, offered: BoolArray, prove: Callable[[float], tuple[float, str]]
    ) -> float:
        """Make all attempts with the nodes ``offered``; the bound they prove."""
        proved = 0.0
        planned = list(attempts(self.limits, self.job, offered, self.is_hop_cost))
        for i, attempt in enumerate(planned):
            budget = self.tools.budget
            if self.best is not None and budget.is_over():
                self.ends.append("interrupted" if budget.is_stopped else "time-limit")
                break
            share = budget.share(len(planned) - i)
            solution = self._attempt(attempt, offered, prove, share)
            if solution is None:
                continue
            self.ends.append(solution.stop_reason)
            self.launch_bound = max(self.launch_bound, solution.launch_bound)
            if attempt.exact and solution.lower_bound > proved:
                proved = solution.lower_bound
            if attempt.exact and proved >= self.bound:
                self.argument = solution.argument
            if self._is_proved(max(proved, prove(self.value)[0])):
                break
        if self.best is None:
            return proved
        bound, argument = prove(self.value)
        if bound >= proved:
            self.argument = argument
        return max(bound, proved)

    def _is_proved(self, bound: float) -> bool:
        return self.best is not None and is_reached(self.value, bound)

    def _attempt(
        self,
        attempt: Attempt,
        offered: BoolArray,
        prove: Callable[[float], tuple[float, str]],
        budget: Budget,
    ) -> Solution | None:
        """Search one part of the machine and keep what is better."""
        part = attempt.part
        mend = mender(self.limits, attempt, offered)
        known = [(self.method, part.inside(self.best))] if self.best is not None else []
        problem = self.problem.on(part.topology, attempt.job)
        if problem.choices:
            known += limited_fills(problem, self.limits.at_most)
        terms = Terms(
            mend,
            prove,
            attempt.exact,
            tuple((name, gpus) for name, gpus in known if gpus is not None),
        )
        solution = self.tools.search(problem, budget, self._listener(part), terms)
        if solution is not None:
            gpus = part.gpu_in_whole(solution.placement.gpu_of_rank)
            self._keep(solution.method, gpus, ends=True)
        return solution

    def _prover(self, kept: BoolArray) -> Callable[[float], tuple[float, str]]:
        """The lower bound on a machine in which every legal placement has its like."""
        unpinned = replace(self.limits, hosts_of_rank={})
        if loses_nothing(unpinned, kept):
            kept = without_spares(unpinned, kept, unit_of(self.topology, self.job))
        if not costs_the_same(self.topology, kept, self.is_hop_cost):
            kept = np.ones_like(kept)
        machine = MachinePart.of(self.topology, kept).topology
        known: list[tuple[float, str]] = []

        def prove(incumbent: float) -> tuple[float, str]:
            if not self.tools.wants_bound:
                return 0.0, "none"
            if not known:
                problem = self.problem.on(machine, self.job)
                known.append(lower_bound(problem, problem.forced_block, incumbent))
            return known[0]

        return prove

    def _baselines(self) -> Iterator[tuple[str, IntArray]]:
        for name in BASELINES:
            if name != "random" and self.job.world_size <= self.topology.num_gpus:
                yield name, baseline(name, self.topology, self.job).gpu_of_rank

    def _consider(self, method: str, gpu_of_rank: IntArray, most_avoided: int) -> None:
        """Keep a placement of the whole machine if it is legal and better."""
        node_of_rank = self.topology.node_of_gpu[gpu_of_rank]
        if (
            self.limits.avoided_used(node_of_rank) <= most_avoided
            and self.limits.pins_hold(node_of_rank)
            and self.limits.numbers_hold(node_of_rank)
            and obeys(self.topology, self.job, gpu_of_rank)
        ):
            self._keep(method, gpu_of_rank)

    def _keep(self, method: str, gpu_of_rank: IntArray, ends: bool = False) -> None:
        """Keep a legal placement of the whole machine if it is better, and tell.

        The placement with which an attempt ``ends`` is kept when it is as good: it has
        been preferred to others like it.
        """
        value = self.goal.value(gpu_of_rank)
        improves = self.best is None or value < self.value * (1 - EXACT)
        if improves or (ends and value <= self.value * (1 + ROUNDING)):
            self.best, self.value, self.method = gpu_of_rank, value, method
        if improves and self.tools.progress is not None:
            order = self.job.parallelism.order
            self.tools.progress(improvement_of(self._solution(gpu_of_rank), order))

    def _listener(self, part: MachinePart) -> Progress:
        """What keeps, and tells, the placements that an attempt finds."""

        def keep(incumbent: Improvement) -> None:
            if incumbent.solution is not None:
                found = incumbent.solution
                gpus = part.gpu_in_whole(found.placement.gpu_of_rank)
                self._keep(found.method, gpus)

        return keep

    def _solution(self, best: IntArray) -> Solution:
        value = float(self.value)
        bound, argument = held_bound(value, float(self.bound), self.argument)
        return Solution(
            placement=Placement(best),
            objective=self.goal.name,
            value=value,
            lower_bound=bound,
            argument=argument,
            method=self.method,
            stop_reason=self._stop_reason(),
            wall_s=self.tools.budget.elapsed_s,
            deterministic=self._stop_reason() in ("proved", "searched"),
            launch_bound=self.launch_bound,
        )

    def _stop_reason(self) -> str:
        if self._is_proved(self.bound):
            return "proved"
        for reason in ("interrupted", "time-limit"):
            if reason in self.ends:
                return reason
        return "searched"
