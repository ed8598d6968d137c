"""The search under rules: machines and jobs for which any placement keeps them.

A rule is kept by leaving out nodes where that is all it takes. Nodes to avoid are left
out, and come back one by one only when nothing fits. Spare nodes are withheld from
their domains. Where a domain may hold ``k`` replicas it offers room for ``k``, and
replicas are kept whole. Each such machine is searched as any other. What is left of the
rules is checked, or mended, placement by placement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain, combinations
from math import comb
from operator import attrgetter

import numpy as np

from placer.base.arrays import BoolArray, IntArray
from placer.job.rules import Rules
from placer.solve.bounds import Proof
from placer.solve.bounds.certificate import NONE, lower_bound
from placer.solve.construct.fills.fills import fullest_fills
from placer.solve.count.engine import Limits as EngineLimits
from placer.solve.exact.enumeration import enumerated_under_rules
from placer.solve.exact.seats import MOST_CHOICES, is_small, seat
from placer.solve.problem.compiled import Problem
from placer.solve.problem.launch import launch_blocks, launched
from placer.solve.problem.starts import starts
from placer.solve.problem.submachine import Submachine
from placer.solve.rules.attempts import (
    Attempt,
    attempts,
    loses_nothing,
    mender,
    unit_of,
    without_spares,
)
from placer.solve.rules.limited_fill import even_cuts, limited_fills
from placer.solve.rules.readmit import READMIT_WORK, readmitted
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent, Terms
from placer.solve.run.solution import Progress, Solution, is_reached

AVOIDED_SETS = 24  # of hosts to avoid that are searched when some must be used

# The plain search on one machine under terms; None where nothing fits.
PlainSearch = Callable[[Problem, Budget, "Progress | None", Terms], "Solution | None"]
# The lower bound of the whole machine, given the value of a known placement.
Prover = Callable[[float], Proof]


@dataclass(frozen=True, eq=False)
class Tools:
    """What a search under rules works with.

    Attributes
    ----------
    search : callable
        The plain search.
    wants_bound : bool
        False where it only matters whether there is a placement.
    """

    search: PlainSearch
    budget: Budget
    progress: Progress | None = None
    wants_bound: bool = True


def search_under_rules(problem: Problem, tools: Tools) -> Solution | None:
    """The best placement found that keeps the job's rules, None without any."""
    search = _RuledSearch(problem, tools)
    search.run()
    return search.incumbent.solution() if search.has_placement else None


class _RuledSearch:
    """One search, its incumbent in the whole machine."""

    def __init__(self, problem: Problem, tools: Tools) -> None:
        self.problem, self.tools, self.limits = problem, tools, problem.limits
        self.incumbent = Incumbent(problem, tools.budget, tools.progress)

    @property
    def has_placement(self) -> bool:
        return self.incumbent.gpu_of_rank is not None

    def _ends(self, part: Budget | None = None) -> bool:
        """Whether time is up, a little later while there is no placement."""
        budget = part or self.tools.budget
        return budget.is_over() if self.has_placement else budget.is_past()

    def run(self) -> None:
        """Search with as few nodes to avoid as can be."""
        if self._fits() and self._enumerated():
            return
        least = np.zeros(0, dtype=np.int64)
        if is_small(self.limits):
            self._offer_at_once()
        seating = None
        if not self.has_placement:
            seating = seat(self.limits, budget=self.tools.budget)
        if seating is not None and seating.node_of_rank is not None:
            used = np.unique(seating.node_of_rank)
            least = self._hosts(used[self.limits.avoided[used]])
            self._offer_nodes("exact seating", seating.node_of_rank, len(least))
        elif seating is not None and seating.proved:
            return
        if seating is not None and not seating.proved:
            self.incumbent.cut_short |= self.tools.budget.is_over()
        is_least = seating is not None and seating.proved
        self._search(self._choices(least), covers=is_least)
        is_stuck = not self.has_placement and not self._ends()
        if is_stuck and self.limits.avoided.any():
            more = readmitted(
                self.limits,
                self.problem.without_rules.job,
                EngineLimits(READMIT_WORK, seconds=self.tools.budget.longest_left),
            )
            if more is not None and len(more):
                self._search([self._hosts(more)], covers=False)
        if not self.has_placement:
            self._with_any_hosts()

    def _enumerated(self) -> bool:
        """Try every placement where these are few; whether that is the end of it."""
        incumbent = self.incumbent
        proof = enumerated_under_rules(self.problem, incumbent, self.tools.budget)
        if proof is None or incumbent.gpu_of_rank is None:
            return proof is not None
        everywhere = self.problem.avoided(incumbent.gpu_of_rank) > 0
        incumbent.prove(*self._prover(everywhere)(incumbent.value))
        if not is_reached(incumbent.value, incumbent.bound):
            incumbent.prove(incumbent.value, proof)
        return True

    def _offer_at_once(self) -> None:
        """Offer placements that need no search and no host to avoid.

        With one there is no need to seat ranks, which may take a few seconds.
        """
        offered = ~self.limits.avoided
        for attempt in attempts(self.problem, offered):
            inner = attempt.inner
            if inner.topology.num_gpus < attempt.job.world_size:
                continue
            problem = self.problem.without_rules.on(inner.topology, attempt.job)
            mend = mender(self.problem, attempt, problem, offered, self._ends)
            for name, found in chain(starts(problem), fullest_fills(problem)):
                mended = mend(found)
                if mended is not None:
                    self._offer(name, inner.gpu_in_whole(mended), 0)

    def _with_any_hosts(self) -> None:
        """Offer placements however many hosts to avoid they take, the fewest first."""
        known = list(starts(self.problem)) if self._fits() else []
        known.sort(key=lambda start: self.problem.avoided(start[1]))
        for name, gpu_of_rank in known:
            self.incumbent.offer(name, gpu_of_rank)
            if self.has_placement:
                self.incumbent.prove(*self._prover(True)(self.incumbent.value))
                return
        for block in launch_blocks(self.problem.machine, self.problem.job):
            if self._ends():
                return
            seating = seat(self.limits, None, block, MOST_CHOICES, self.tools.budget)
            if seating is not None and seating.node_of_rank is not None:
                self._offer_nodes("seating", seating.node_of_rank, seating.avoided)
                self.incumbent.prove(*self._prover(True)(self.incumbent.value))
                return

    def _choices(self, least: IntArray) -> list[IntArray]:
        """Sets of hosts to avoid that are used all the same, as many as are needed."""
        avoided = self._hosts(np.flatnonzero(self.limits.avoided))
        if comb(len(avoided), len(least)) > AVOIDED_SETS:
            return [least]
        return [
            np.array(chosen, dtype=np.int64)
            for chosen in combinations(avoided.tolist(), len(least))
        ]

    def _hosts(self, nodes: IntArray) -> IntArray:
        return np.unique(self.problem.machine.host_of_node[nodes])

    def _search(self, choices: list[IntArray], covers: bool) -> None:
        """Search the machine with each set of hosts to avoid; keep what is proved.

        ``covers`` says that no placement uses fewer of these hosts.
        """
        needed = len(choices[0])
        if self._fits():
            for name, gpu_of_rank in starts(self.problem):
                self._offer(name, gpu_of_rank, needed)
        avoided = self._hosts(np.flatnonzero(self.limits.avoided))
        covers &= len(choices) == comb(len(avoided), needed)
        prove = self._prover(everywhere=needed > 0)
        proofs = []
        for chosen in choices:
            if self._ends():
                self.incumbent.cut_short = True
                covers = False
                break
            offered = ~self.limits.avoided | np.isin(
                self.problem.machine.host_of_node, chosen
            )
            if len(choices) == 1 or self._may_hold(offered):
                proofs.append(self._attempts(offered, prove))
        if proofs and (covers or not needed):
            self.incumbent.prove(*min(proofs, key=attrgetter("value")))
        elif self.has_placement:
            # The best of some sets only says nothing about the others.
            self.incumbent.prove(*prove(self.incumbent.value))

    def _fits(self) -> bool:
        return self.problem.job.world_size <= self.problem.machine.num_gpus

    def _may_hold(self, offered: BoolArray) -> bool:
        """Whether some legal placement may use only the nodes ``offered``."""
        budget = self.tools.budget
        seating = seat(self.limits, ~offered, budget=budget, waits=False)
        return seating is None or not seating.proved or seating.node_of_rank is not None

    def _attempts(self, offered: BoolArray, prove: Prover) -> Proof:
        """Make all attempts with the nodes ``offered``; what they prove."""
        incumbent, budget, proof = self.incumbent, self.tools.budget, NONE
        planned = list(attempts(self.problem, offered))
        for i, attempt in enumerate(planned):
            if self._ends():
                incumbent.cut_short = True
                break
            if attempt.inner.topology.num_gpus < attempt.job.world_size:
                continue
            share = budget.share(len(planned) - i)
            solution = self._attempt(attempt, offered, prove, share)
            if solution is None:
                continue
            incumbent.include(solution)
            if attempt.exact and solution.lower_bound >= proof.value:
                proof = Proof(solution.lower_bound, solution.argument)
            bound = max(proof.value, prove(incumbent.value).value)
            if self.has_placement and is_reached(incumbent.value, bound):
                break
        if not self.has_placement:
            return proof
        return max(prove(incumbent.value), proof, key=attrgetter("value"))

    def _attempt(
        self, attempt: Attempt, offered: BoolArray, prove: Prover, budget: Budget
    ) -> Solution | None:
        """Search one part of the machine and keep what is better."""
        inner, incumbent = attempt.inner, self.incumbent
        problem = self.problem.without_rules.on(inner.topology, attempt.job)
        known = []
        if incumbent.gpu_of_rank is not None:
            inside = inner.inside(incumbent.gpu_of_rank)
            known += [(incumbent.method, inside)] if inside is not None else []
        if problem.choices:
            known += limited_fills(problem, self.limits.at_most)
            known += even_cuts(problem, self.limits.at_most)
        mend = mender(
            self.problem, attempt, problem, offered, lambda: self._ends(budget)
        )
        # Pinned ranks come home by exchanges of islands that a launch tells apart.
        turns = bool(self.limits.job.rules.pin) and problem.machine.node_tier > 0
        exact = attempt.exact and not turns
        terms = Terms(mend, prove, exact, tuple(known))

        def keep(found: Solution | None) -> None:
            if found is not None:
                gpus = inner.gpu_in_whole(found.placement.gpu_of_rank)
                incumbent.offer(found.method, gpus)

        solution = self.tools.search(
            problem, budget, lambda told: keep(told.solution), terms
        )
        keep(solution)
        return solution

    def _prover(self, everywhere: bool) -> Prover:
        """The lower bound on a machine in which every legal placement has its like.

        Without nodes to avoid, unless these may be used ``everywhere``.
        """
        unpinned = replace(self.limits, nodes_of_rank={})
        plain, kept = self.problem.without_rules, ~self.limits.avoided | everywhere
        if loses_nothing(unpinned, kept):
            kept = without_spares(unpinned, kept, unit_of(plain))
        machine = Submachine.of(plain.machine, kept).topology
        known: list[Proof] = []

        def prove(incumbent: float) -> Proof:
            if not self.tools.wants_bound:
                return NONE
            if not known:
                rules = Rules(at_most=self.problem.job.rules.at_most)
                problem = plain.on(machine, replace(plain.job, rules=rules))
                block, budget = problem.forced_block, self.tools.budget
                known.append(lower_bound(problem, block, incumbent, budget))
            return known[0]

        return prove

    def _offer_nodes(self, method: str, node_of_rank: IntArray, avoided: int) -> None:
        self._offer(method, launched(self.problem.machine, node_of_rank), avoided)

    def _offer(self, method: str, gpu_of_rank: IntArray, most_avoided: int) -> None:
        """Offer a placement of the whole machine if it avoids the nodes to avoid."""
        node_of_rank = self.problem.machine.node_of_gpu[gpu_of_rank]
        if self.limits.avoided_used(node_of_rank) <= most_avoided:
            self.incumbent.offer(method, gpu_of_rank)
