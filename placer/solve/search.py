"""The search: baselines, nestings, stitching and enumeration, with a bound.

The best placement so far is kept outside every method, starting from the best baseline
that obeys the job's rules, so a result is never worse than those and never lost to a
limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.errors import InfeasibleError
from placer.placement.baselines import BASELINES, baseline
from placer.placement.placement import Placement
from placer.solve.bounds.certificate import lower_bound
from placer.solve.chains import stitched_chains
from placer.solve.cuts.placements import cut_placements
from placer.solve.enumerate import Enumeration
from placer.solve.exact.engine import Limits
from placer.solve.exact.run import exact
from placer.solve.feasibility import feasible_parts, forced_block, infeasible
from placer.solve.fills import nested_fills, uneven_fills
from placer.solve.objective import (
    HopCostObjective,
    Objective,
    TimeObjective,
    objective_of,
)
from placer.solve.parts import (
    Parts,
    check_requirements,
    node_capacity,
    parts_of,
)
from placer.solve.polish.polish import Known, polished
from placer.solve.robust.conflict import broken_rules
from placer.solve.robust.search import Tools, search_under_rules
from placer.solve.rules import obeys
from placer.solve.solution import EXACT, Progress, Solution, incumbent_of
from placer.solve.ties import TieBreak

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.terms import Terms
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]
Candidate = tuple[str, IntArray]

# Nestings that are priced in full: pricing takes time in proportion to the ranks.
NESTINGS_AT_MOST = 64
RANKS_PRICED = 2_000_000
# Placements that are enumerated, and units of a job for which that is tried.
ENUMERATED_AT_MOST = {"time": 20_000, "hop-cost": 100_000}
SMALL_JOB_UNITS = 8
STEPS_A_PLACEMENT = 2
EXACT_WORK = 2.0  # CP-SAT's deterministic seconds
TRIED_AT_MOST = 2_000  # of more placements than can be tried


def solve(
    topology: Topology,
    job: Job,
    *,
    objective: str | None = None,
    seed: int = 0,
    time_limit: float = 60.0,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Solution:
    """The best placement found within the limit, with a lower bound.

    Parameters
    ----------
    topology : Topology
        Its nodes in launch order.
    job : Job
    objective : str, optional
        ``time`` or ``hop-cost``; by default time where the job says what time is.
    seed : int
    time_limit : float, s
    progress : Progress, optional
        Told every better placement.
    stop : callable
        Asked between steps; True ends the search with the best so far.

    Raises
    ------
    InfeasibleError
        If no placement satisfies the hard requirements.
    InputError
        If a requirement names a tier the machine lacks, or the objective lacks its
        inputs.
    """
    check_requirements(topology, job)
    if job.rules:
        return _solve_under_rules(
            topology, job, objective, seed, time_limit, progress, stop
        )
    goal = objective_of(topology, job, objective)
    choices = feasible_parts(topology, job)
    search = _Search(topology, job, goal, seed, time_limit, progress, stop)
    return search.run(choices)


def _solve_under_rules(
    topology: Topology,
    job: Job,
    objective: str | None,
    seed: int,
    time_limit: float,
    progress: Progress | None,
    stop: Callable[[], bool],
) -> Solution:
    """The best placement found that keeps the job's rules."""

    def search(
        machine: Topology, part: Job, terms: Terms, seconds: float, tell: Progress
    ) -> Solution | None:
        goal = objective_of(machine, part, objective)
        run = _Search(machine, part, goal, seed, seconds, tell, stop, terms)
        try:
            return run.run(feasible_parts(machine, part))
        except InfeasibleError:
            return None

    tools = Tools(search, objective, time_limit, progress, stop)
    found = search_under_rules(topology, job, tools)
    if found is None:
        raise broken_rules(topology, job, tools)
    return found


class _Search:
    """One search: the incumbent, the bound and the clock."""

    def __init__(
        self,
        topology: Topology,
        job: Job,
        goal: Objective,
        seed: int,
        time_limit: float,
        progress: Progress | None,
        stop: Callable[[], bool],
        terms: Terms | None = None,
    ) -> None:
        self.topology, self.job, self.goal, self.seed = topology, job, goal, seed
        self.terms = terms
        self.start = monotonic()
        self.time_limit = time_limit
        self.progress = progress
        self.stop = stop
        self.best: IntArray | None = None
        self.value = np.inf
        self.known = Known()
        self.ties = TieBreak(topology, goal)
        self.method = ""
        self.bound, self.argument = 0.0, "none"
        self.launch_bound = 0.0
        self.stop_reason = ""
        self.cut_short = False

    def run(self, choices: list[Parts]) -> Solution:
        """Run the methods in turn until one proves the incumbent optimal."""
        if self.job.world_size > self.topology.num_gpus:
            raise infeasible(self.topology, self.job)
        for name, gpu_of_rank in self._baselines():
            self._offer(name, gpu_of_rank)
        if choices:
            self._prove()
            for method in (
                self._nestings,
                self._stitched,
                self._cut_alike,
                self._enumerated,
                self._exact,
                self._polished,
            ):
                if self.best is None or not self._over():
                    method(choices[0])
        elif self.job.launcher != "free":
            self._uneven()
            if self.best is None or not self._over():
                self._enumerated(parts_of(self.topology, self.job, 1))
            if self.best is not None:
                self._prove()
        if self.best is None:
            raise infeasible(self.topology, self.job)
        return self._solution()

    def _prove(self) -> None:
        """Find the lower bound, unless enumeration has found a better one."""
        block = forced_block(self.topology, self.job)
        if self.terms is not None:
            bound, argument = self.terms.bound(float(self.value))
        else:
            bound, argument = lower_bound(
                self.topology, self.job, self.goal, block, float(self.value)
            )
        if self.terms is None and (block == 1 or self.goal.name == "hop-cost"):
            self.launch_bound = bound
        if bound > self.bound:
            self.bound, self.argument = bound, argument
            if self.best is not None:
                self._tell(self.best)

    def _baselines(self) -> Iterator[Candidate]:
        for name in BASELINES:
            if name != "random":
                placement = baseline(name, self.topology, self.job, self.seed)
                yield name, placement.gpu_of_rank
        if self.terms is not None:
            yield from self.terms.known

    def _nestings(self, parts: Parts) -> None:
        """Axes inside axes, filled into the tree in whole units."""
        most = max(1, min(NESTINGS_AT_MOST, RANKS_PRICED // self.job.world_size))
        capacity = node_capacity(self.topology, parts.block)
        filled = nested_fills(
            self.topology, self.job, parts, capacity, self.goal.weights
        )
        self._offer_all(islice(filled, most))
        if parts.block < int(self.topology.gpus_of_node.max()):
            self._uneven()

    def _uneven(self) -> None:
        """Nodes that hold as many consecutive ranks as they can."""
        if self.job.launcher != "free":
            self._offer_all(uneven_fills(self.topology, self.job))

    def _stitched(self, parts: Parts) -> None:
        """Chains stitched out of what fragmented domains hold."""
        remaining = self.time_limit - (monotonic() - self.start)
        stitched = stitched_chains(
            self.topology, self.job, parts, self.goal, remaining, self.seed, self.stop
        )
        for name, gpu_of_rank, in_time in stitched:
            self.cut_short |= not in_time
            self._offer(name, gpu_of_rank)

    def _cut_alike(self, parts: Parts) -> None:
        """Pipelines cut alike so that gradient groups share domains."""
        if not isinstance(self.goal, TimeObjective):
            return
        found = cut_placements(
            self.goal.model, parts, float(self.value), self.seed, self._seconds_left
        )
        for name, gpu_of_rank in found:
            self._offer(name, gpu_of_rank)

    def _seconds_left(self) -> float:
        """Seconds until the search must end; 0 when it is over."""
        left = self.time_limit - (monotonic() - self.start)
        return 0.0 if self.best is not None and self._over() else left

    def _polished(self, parts: Parts) -> None:
        """Better placements near the best few, when hops are the cost."""
        if not isinstance(self.goal, HopCostObjective):
            return
        found = polished(
            self.topology,
            self.job,
            parts,
            self.goal.hops,
            self.known.placements(),
            self.seed,
            self._over,
        )
        start = self.method
        for gpu_of_rank in found:
            self._offer(f"annealed, from {start}", gpu_of_rank)
            if self._over():
                return

    def _enumerated(self, parts: Parts) -> None:
        """Every placement of a small job; complete, it is a proof."""
        is_free = self.job.launcher == "free"
        largest = 1 if is_free else int(self.topology.gpus_of_node.max())
        if self.job.world_size > SMALL_JOB_UNITS * largest:
            return
        walk = self._walk(parts_of(self.topology, self.job, 1))
        found = self._met(walk.units() if is_free else walk.runs())
        complete = walk.complete and len(found) < ENUMERATED_AT_MOST[self.goal.name]
        if not (complete or is_free) and parts.block > 1:
            # Too many ways to give nodes different numbers of ranks: equal ones only.
            found = self._met(self._walk(parts).units())
        for node_of_rank in found if complete else found[:TRIED_AT_MOST]:
            if self.best is not None and self._over():
                return
            placement = Placement.on_nodes(self.topology, node_of_rank)
            self._offer("enumeration", placement.gpu_of_rank)
        if complete and (self.terms is None or self.terms.exact):
            self.bound = max(self.bound, float(self.value))
            self.argument = (
                f"all {len(found):,} ways to place {self.job.world_size} ranks, equal "
                "domains counted once"
            )

    def _exact(self, parts: Parts) -> None:
        """One model of all homes of a small job's units; complete, it is a proof."""
        if self.best is None:
            return
        remaining = self.time_limit - (monotonic() - self.start)
        limits = Limits(EXACT_WORK, remaining, self.seed, self.stop)
        found = exact(self.topology, self.job, parts, self.goal, self.best, limits)
        if found is None:
            return
        self.cut_short |= not found.in_time
        if found.gpu_of_rank is not None:
            self._offer("exact model", found.gpu_of_rank)
        # Where nodes may hold other blocks, or one rank at a time, others are legal.
        blocks = 1, forced_block(self.topology, self.job)
        proves = self.terms is None or self.terms.exact
        if proves and parts.block in blocks and found.bound > self.bound:
            self.bound, self.argument = found.bound, found.argument

    def _walk(self, parts: Parts) -> Enumeration:
        capacity = node_capacity(self.topology, parts.block)
        steps = ENUMERATED_AT_MOST[self.goal.name] * STEPS_A_PLACEMENT
        return Enumeration(self.topology, parts, capacity, steps, self._over)

    def _met(self, nodes_of_rank: Iterator[IntArray]) -> list[IntArray]:
        return list(islice(nodes_of_rank, ENUMERATED_AT_MOST[self.goal.name]))

    def _offer_all(self, candidates: Iterable[Candidate]) -> None:
        for name, gpu_of_rank in candidates:
            if self.best is not None and self._over():
                return
            self._offer(name, gpu_of_rank)

    def _offer(self, method: str, gpu_of_rank: IntArray) -> None:
        """Keep a placement if it obeys the rules and beats the incumbent."""
        if self.best is not None and np.array_equal(gpu_of_rank, self.best):
            return
        legal = self._legal(gpu_of_rank)
        if legal is None:
            return
        gpu_of_rank = legal
        value = self.goal.value(gpu_of_rank)
        self.known.add(value, gpu_of_rank)
        improves = self.best is None or value < self.value * (1 - EXACT)
        if not improves and not self.ties.takes(
            value, gpu_of_rank, self.value, self.best
        ):
            return
        self.best, self.value, self.method = gpu_of_rank, value, method
        if improves:
            self._tell(gpu_of_rank)

    def _tell(self, best: IntArray) -> None:
        """Let the user know, and keep, what has been found so far."""
        if self.progress is not None:
            solution = self._state(best, "interrupted")
            self.progress(incumbent_of(solution, self.job.parallelism.order))

    def _legal(self, gpu_of_rank: IntArray) -> IntArray | None:
        """The placement as it may be kept, None when it breaks a rule."""
        if self.terms is not None:
            return self.terms.mend(gpu_of_rank)
        return gpu_of_rank if obeys(self.topology, self.job, gpu_of_rank) else None

    def _over(self) -> bool:
        """Whether to end: proved, out of time or asked to."""
        if self.best is not None and self.value - self.bound <= EXACT * self.value:
            self.stop_reason = "proved"
        elif self.stop():
            self.stop_reason = "interrupted"
        elif monotonic() - self.start > self.time_limit:
            self.stop_reason = "time-limit"
        return bool(self.stop_reason)

    def _solution(self) -> Solution:
        if self.best is None:
            raise infeasible(self.topology, self.job)
        self._over()
        ended = self.stop_reason or ("time-limit" if self.cut_short else "searched")
        return self._state(self.best, ended)

    def _state(self, best: IntArray, ended: str) -> Solution:
        """The incumbent with what is proved about it."""
        return Solution(
            placement=Placement(best),
            objective=self.goal.name,
            value=float(self.value),
            lower_bound=float(min(self.bound, self.value)),
            argument=self.argument,
            method=self.method,
            stop_reason=ended,
            wall_s=monotonic() - self.start,
            deterministic=ended in ("proved", "searched"),
            launch_bound=self.launch_bound,
        )
