"""The search: method after method, until one proves the best placement optimal.

The best placement so far is kept outside every method, starting from the best baseline
that obeys the job's rules, so a result is never worse than those and never lost to a
limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.errors import InfeasibleError
from placer.placement.baselines import BASELINES, baseline
from placer.placement.placement import Placement
from placer.solve.best import Best
from placer.solve.bounds.certificate import lower_bound
from placer.solve.cut_alike.placements import cut_placements
from placer.solve.exact.engine import Limits
from placer.solve.exact.every import every_placement
from placer.solve.exact.run import exact
from placer.solve.feasibility import feasible_parts, forced_block, infeasible
from placer.solve.nestings.fills import nested_fills, uneven_fills
from placer.solve.objective import (
    HopCostObjective,
    Objective,
    TimeObjective,
    objective_of,
)
from placer.solve.parts import Parts, check_requirements, node_capacity, parts_of
from placer.solve.polish.polish import polished
from placer.solve.polish.time_search import exchanged
from placer.solve.robust.conflict import broken_rules
from placer.solve.robust.search import Tools, search_under_rules
from placer.solve.stitching.chains import stitched_chains

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.solution import Progress, Solution
    from placer.solve.terms import Terms
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]
Candidate = tuple[str, IntArray]

# Nestings that are priced in full: pricing takes time in proportion to the ranks.
NESTINGS_AT_MOST = 64
RANKS_PRICED = 2_000_000
EXACT_WORK = 2.0  # CP-SAT's deterministic seconds


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
    """One search: its methods, and the best they have found."""

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
        self.best = Best(topology, job, goal, time_limit, progress, stop, terms)

    @property
    def is_whole(self) -> bool:
        """Whether the best of all placements met here is the best there is."""
        return self.terms is None or self.terms.exact

    def run(self, choices: list[Parts]) -> Solution:
        """Run the methods in turn until one proves the best placement optimal."""
        if self.job.world_size > self.topology.num_gpus:
            raise infeasible(self.topology, self.job)
        for name, gpu_of_rank in self._baselines():
            self.best.offer(name, gpu_of_rank)
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
                if not self.best.ends():
                    method(choices[0])
        elif self.job.launcher != "free":
            self._uneven()
            if not self.best.ends():
                self._enumerated(parts_of(self.topology, self.job, 1))
            if self.best.gpu_of_rank is not None:
                self._prove()
        if self.best.gpu_of_rank is None:
            raise infeasible(self.topology, self.job)
        return self.best.solution(self.best.gpu_of_rank)

    def _prove(self) -> None:
        """Find the lower bound, unless enumeration has found a better one."""
        if self.terms is not None:
            bound, argument = self.terms.bound(float(self.best.value))
        else:
            block = forced_block(self.topology, self.job)
            value = float(self.best.value)
            bound, argument = lower_bound(
                self.topology, self.job, self.goal, block, value
            )
            if block == 1 or self.goal.name == "hop-cost":
                self.best.launch_bound = bound
        self.best.prove(bound, argument)

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
        self.best.offer_all(islice(filled, most))
        if parts.block < int(self.topology.gpus_of_node.max()):
            self._uneven()

    def _uneven(self) -> None:
        """Nodes that hold as many consecutive ranks as they can."""
        if self.job.launcher != "free":
            self.best.offer_all(uneven_fills(self.topology, self.job))

    def _stitched(self, parts: Parts) -> None:
        """Chains stitched out of what fragmented domains hold."""
        stitched = stitched_chains(
            self.topology,
            self.job,
            parts,
            self.goal,
            self.best.seconds_left(),
            self.seed,
            self.best.is_stopped,
        )
        for name, gpu_of_rank, in_time in stitched:
            self.best.cut_short |= not in_time
            self.best.offer(name, gpu_of_rank)

    def _cut_alike(self, parts: Parts) -> None:
        """Pipelines cut alike so that gradient groups share domains."""
        if isinstance(self.goal, TimeObjective):
            found = cut_placements(
                self.goal.model,
                parts,
                float(self.best.value),
                self.seed,
                lambda: 0.0 if self.best.ends() else self.best.seconds_left(),
            )
            for name, gpu_of_rank in found:
                self.best.offer(name, gpu_of_rank)

    def _enumerated(self, parts: Parts) -> None:
        """Every placement of a small job; complete, it is a proof."""
        every = every_placement(
            self.topology, self.job, parts, self.goal.name, self.best.is_over
        )
        for node_of_rank in every.nodes_of_rank:
            if self.best.ends():
                return
            placement = Placement.on_nodes(self.topology, node_of_rank)
            self.best.offer("enumeration", placement.gpu_of_rank)
        if every.complete and self.is_whole:
            text = (
                f"all {len(every.nodes_of_rank):,} ways to place "
                f"{self.job.world_size} ranks, equal domains counted once"
            )
            self.best.prove(float(self.best.value), text)

    def _exact(self, parts: Parts) -> None:
        """One model of all homes of a small job's units; complete, it is a proof."""
        start = self.best.gpu_of_rank
        if start is None:
            return
        seconds = self.best.seconds_left()
        limits = Limits(EXACT_WORK, seconds, self.seed, self.best.is_stopped)
        found = exact(self.topology, self.job, parts, self.goal, start, limits)
        if found is None:
            return
        self.best.cut_short |= not found.in_time
        if found.gpu_of_rank is not None:
            self.best.offer("exact model", found.gpu_of_rank)
        # Where nodes may hold other blocks, or one rank at a time, others are legal.
        blocks = 1, forced_block(self.topology, self.job)
        if self.is_whole and parts.block in blocks:
            self.best.prove(found.bound, found.argument)

    def _polished(self, parts: Parts) -> None:
        """Better placements near the best few."""
        start = self.best.method
        if isinstance(self.goal, HopCostObjective):
            name = "annealed"
            found = polished(
                self.topology,
                self.job,
                parts,
                self.goal.hops,
                self.best.known.placements(),
                self.seed,
                self.best.is_over,
            )
        elif isinstance(self.goal, TimeObjective):
            name = "units exchanged"
            found = exchanged(
                self.goal.model,
                parts,
                self.best.known.placements(),
                self.best.bound,
                self.seed,
                self.best.is_over,
            )
        else:
            return
        for gpu_of_rank in found:
            self.best.offer(f"{name}, from {start}", gpu_of_rank)
            if self.best.is_over():
                return
