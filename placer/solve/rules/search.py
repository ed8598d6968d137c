"""The search under rules: walks that break ever less of them, then none.

Constructions know no rules. Where none keeps them by itself, walks of the annealer
begin with what they made: a change may break no more than was broken. Where that ends
outside, too, one program of logic seats the ranks, or proves that nobody can. Nodes to
avoid are used only when nothing fits without: in large jobs as few as counts say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

import numpy as np

from placer.base.arrays import BoolArray, IntArray
from placer.job.model import Job
from placer.job.rules import Rules
from placer.solve.annealing.annealed import again, annealed, spaces
from placer.solve.annealing.in_full import InFull
from placer.solve.annealing.race import seeds
from placer.solve.annealing.starts import best_starts
from placer.solve.annealing.walks import PricedInFull, Walk, Walks
from placer.solve.bounds.certificate import NONE, lower_bound
from placer.solve.construct.enumeration import every_placement, offered
from placer.solve.count import EngineLimits, Term, solve
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.compiled import Problem
from placer.solve.problem.launch import Packing, launch_blocks, launched
from placer.solve.problem.rules import Limits
from placer.solve.rules.counts import is_packed_never
from placer.solve.rules.seats import seat
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent, Terms
from placer.solve.run.solution import Progress, Solution
from placer.solve.tree.domains import node_capacity
from placer.topology.submachine import Submachine

REPAIRED = "repaired"  # what placements found here are called

# The plain search on one machine under terms; None where nothing fits.
PlainSearch = Callable[[Problem, Budget, "Progress | None", Terms], "Solution | None"]


def search_under_rules(
    problem: Problem,
    plain: PlainSearch,
    budget: Budget,
    progress: Progress | None = None,
) -> Solution | None:
    """The best placement found that keeps the job's rules, None without any."""
    search = _RuledSearch(problem, plain, budget, progress)
    search.run()
    return search.incumbent.solution() if search.has_placement else None


def fits_under_rules(
    problem: Problem, plain: PlainSearch, budget: Budget
) -> bool | None:
    """Whether some placement keeps the job's rules; None where time was short."""
    search = _RuledSearch(problem.with_params(enough_value=inf), plain, budget)
    search.run()
    if search.has_placement:
        return True
    return None if search.lacked_time or budget.is_past() else False


class _RuledSearch:
    """One search, its incumbent in the whole machine."""

    def __init__(
        self,
        problem: Problem,
        plain: PlainSearch,
        budget: Budget,
        progress: Progress | None = None,
    ) -> None:
        self.problem, self.limits = problem, problem.limits
        self.plain, self.budget, self.progress = plain, budget, progress
        self._proofs: dict[bool, tuple[float, str]] = {}
        self.ruled = problem.avoiding(0)
        self.incumbent = Incumbent(self.ruled, budget, progress)
        # Whether constructions made nothing in their share of the time.
        self.lacked_time = False

    def _begin(self, most_avoided: int | None) -> None:
        """Go on with so many hosts to avoid, and what was found where it keeps that."""
        known = self.incumbent
        self.ruled = self.problem.avoiding(most_avoided)
        self.incumbent = Incumbent(self.ruled, self.budget, self.progress)
        if known.gpu_of_rank is not None:
            self.incumbent.offer(known.method, known.gpu_of_rank)

    @property
    def has_placement(self) -> bool:
        return self.incumbent.gpu_of_rank is not None

    def _ends(self) -> bool:
        """Whether it is time to end, a little later while there is no placement."""
        within = self.incumbent.budget if self.has_placement else None
        return within.is_over() if within else self.budget.is_past()

    def run(self) -> None:
        """Search with as few nodes to avoid as can be."""
        is_large = self.problem.job.world_size > self.problem.machine.num_gpus
        if is_large or self._enumerated(self.problem.params.few_listed):
            return
        self._construct(~self.limits.avoided)
        if not self.has_placement:
            self._use_avoided()
        if self.has_placement:
            self._prove()
        if not self.has_placement or self._ends():
            self.incumbent.cut_short |= self.budget.is_over()
            return
        annealed(self.ruled, self.incumbent, self.incumbent.budget)
        again(self.ruled, self.incumbent, self.incumbent.budget)
        if not self.incumbent.ends():
            self._enumerated(self.problem.params.listed[self.problem.goal.name])

    def _enumerated(self, most: int) -> bool:
        """Try every placement where these are few; whether that is the end of it."""
        problem = self.problem
        every = every_placement(problem, self.budget, most)
        if every is None or not problem.nodes_decide:
            return False
        legal = []
        for gpu_of_rank in map(problem.machine.gpus_on, every):
            if self.budget.is_over():
                return False
            if problem.allows(gpu_of_rank):
                legal.append(gpu_of_rank)
        self._begin(min(map(problem.avoided, legal), default=0))
        is_end = offered(self.ruled, self.incumbent, legal)
        self.incumbent.cut_short |= self.budget.is_over() and not is_end
        return is_end

    def _construct(self, offered: BoolArray) -> None:
        """Offer what is made of some nodes without rules, else what walks repair."""
        inner = Submachine.of(self.problem.machine, offered)
        plain = self.problem.without_rules
        is_small = inner.topology.num_gpus < plain.job.world_size
        if is_small or is_packed_never(inner.topology, plain.job):
            return
        incumbent, budget = self.incumbent, self.budget.share(2)
        problem = plain.on(inner.topology, plain.job)
        near: dict[bytes, IntArray] = {}

        def allows(gpu_of_rank: IntArray) -> bool:
            gpus = inner.gpu_in_whole(gpu_of_rank)
            is_legal = incumbent.allows(gpus)
            if not is_legal and len(near) < problem.fills_priced:
                near.setdefault(gpus.tobytes(), gpus)
            return is_legal

        def keep(found: Solution | None) -> None:
            if found is not None:
                gpus = inner.gpu_in_whole(found.placement.gpu_of_rank)
                incumbent.offer(found.method, gpus)

        found = self.plain(
            problem.with_params(local_search=False),
            budget,
            lambda better: keep(better.solution),
            Terms(allows, self._bound),
        )
        keep(found)
        self.lacked_time |= found is None and budget.is_past()
        incumbent.cut_short |= found is not None and found.is_cut_short
        if near and not self.has_placement and not self._ends():
            left = self.budget.anew(self.budget.longest_left, grace_s=0.0)
            repair(self.ruled, [*near.values()], incumbent, left.until(self._ends))
            self.lacked_time |= not self.has_placement and left.is_over()

    def _use_avoided(self) -> None:
        """Seat ranks by logic, or use hosts to avoid.

        Constructions go first on those that are used: as few as logic says, or for
        large jobs counts, or else however many.
        """
        avoided, host = self.limits.avoided, self.problem.machine.host_of_node
        seating = seat(self.limits, self.budget)
        self.incumbent.cut_short |= not seating.proved and self.budget.is_over()
        seats, hosts = seating.node_of_rank, None
        if seats is not None:
            hosts = np.unique(host[seats[avoided[seats]]])
        elif seating.proved:
            self.lacked_time = False
            return
        elif avoided.any() and not self._ends():
            effort = EngineLimits(seconds=self.budget.longest_left)
            hosts = readmitted(self.limits, self.problem.without_rules.job, effort)
        if hosts is not None:
            self._begin(len(hosts))
            if len(hosts):
                self._construct(~avoided | np.isin(host, hosts))
        if seats is not None:
            machine, job = self.problem.machine, self.problem.job
            self.incumbent.offer("exact seating", launched(machine, job, seats))
        elif avoided.any() and not self.has_placement:
            self._begin(None)
            self._construct(np.ones_like(avoided))
            if self.has_placement:
                self._begin(self.problem.avoided(self.incumbent.best))

    def _prove(self) -> None:
        self.incumbent.prove(*self._bound(self.incumbent.value))

    def _bound(self, known: float) -> tuple[float, str]:
        """The lower bound on a machine in which every legal placement has its like.

        Without nodes to avoid, unless some may be used.
        """
        everywhere = self.ruled.limits.most_avoided != 0
        if known <= self.problem.params.enough_value:
            return NONE[:2]
        if everywhere not in self._proofs:
            plain = self.problem.without_rules
            kept = ~self.limits.avoided | everywhere
            machine = Submachine.of(plain.machine, kept).topology
            rules = Rules(at_most=self.problem.job.rules.at_most)
            problem = plain.on(machine, replace(plain.job, rules=rules))
            block, budget = problem.forced_block, self.budget
            proof = lower_bound(problem, block, known, budget)
            self._proofs[everywhere] = proof[:2]
        return self._proofs[everywhere]


def repair(
    problem: Problem, near: list[IntArray], incumbent: Incumbent, budget: Budget
) -> None:
    """Offer what walks make of placements (R,) that break rules, and of simple starts.

    What a placement breaks is counted: the tiers between each pinned unit and its
    nearest host, sets that are torn, and in each box the replicas, ranks or hosts that
    are too many (`fence.hpp`). A walk makes changes that break no more than was broken,
    and late on its way any that mends, whatever it costs; its best is what breaks
    least, and the cheapest of that. Where the annealer was not built, or does not know
    the job, it is slow.
    """
    for units in spaces(problem, incumbent):
        walks: Walks | InFull
        try:
            walks = units.walks()
        except PricedInFull:
            walks = units.in_full()
        of_unit, most = problem.params.mending_moves
        moves = min(most, of_unit * len(walks.units.slots.ranks))
        seed = seeds(problem)
        for slots in best_starts(walks, near, budget, may_break=True):
            walk, before = Walk(next(seed), 1.0, slots), inf
            while not budget.is_over():
                walk = walks.walk(walk._replace(seed=next(seed)), moves, budget)
                if not 0 < walk.broken < before:
                    break
                before = walk.broken
            incumbent.offer(REPAIRED, walks.units.gpu_of_rank(walk.slots))


def readmitted(limits: Limits, job: Job, effort: EngineLimits) -> IntArray | None:
    """Hosts to avoid that must be used for the sets of ``job`` to fit, shape (any,).

    For machines too large for a variable a rank: every domain holds whole co-location
    sets, and a host is used or not. As few as can be where a domain's replicas are not
    limited; then pins and limits may still ask for more. None when the sets do not fit
    even so, or no answer was found in the effort allowed.
    """
    topology, host = limits.topology, limits.topology.host_of_node
    first = np.unique(host, return_index=True)[1]  # node of each host
    for block in launch_blocks(topology, job):
        packing = Packing(topology, colocation_of(topology, job, block))
        program = packing.program
        prices = limits.avoided[first].tolist()
        used = [program.column(most=1, price=int(price)) for price in prices]
        for node, room in enumerate(node_capacity(topology, block).tolist()):
            program.row(
                [*packing.ranks_on(node), Term(used[host[node]], -room)], most=0
            )
        packing.nest()
        for count in limits.counts:
            for box, most in enumerate([] if count.by_rank else count.most.tolist()):
                inside = np.flatnonzero(count.box[first] == box).tolist()
                program.row([Term(used[one]) for one in inside], most=most)
        counts = solve(program, effort).counts
        if counts is not None:
            return np.flatnonzero(limits.avoided[first] & (np.array(counts)[used] > 0))
    return None
