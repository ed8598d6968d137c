"""A lower bound on the hop cost of any placement, from the least cut of every tier.

``J >= d_0 W + sum_t (d_{t+1} - d_t) C_t`` with ``C_t = 1/2 min sum_i floor(s_i)`` over
the sizes s_i that the domains of tier t may hold;

* `graphs`: the job's graph as sums of products, of ranks or of sets kept whole;
* `isoperimetric`: the least boundary ``floor(s)`` of any s ranks;
* `tier_cut`: the least sum of it over domains that together hold all ranks. Prices on
  the ends of pipelines, up to the weight of an edge, either way; what all domains pay
  in prices is a constant, and is taken back;
* `lines`: what domains hold of rings and cliques must add up to whole ones, on one tier
  and on two together.

By hand: a ring of six on two nodes of three, 1 apart inside and 3 outside. Two edges or
more leave any three ranks, so ``C = (2 + 2) / 2`` and ``J >= 1 x 6 + (3 - 1) x 2``.

Distances that fall outwards are first lowered to the least from there on. Cuts are
multiples of the greatest common divisor of the weights, so bounds are rounded up to
one, after allowing for rounding errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.base.errors import InfeasibleError
from placer.job.edges import hop_edges
from placer.job.model import Job
from placer.placement.hop_bound import TierPrices
from placer.solve.bounds import Proof
from placer.solve.bounds.hops.graphs import (
    common_divisor,
    contracted,
    graph_of,
    kept_whole,
)
from placer.solve.bounds.hops.lines import contents_of
from placer.solve.bounds.hops.tier_cut import AT_ROOT, TierCut, rounded_up
from placer.solve.count import EngineLimits
from placer.solve.problem.compiled import Problem
from placer.solve.problem.params import Params
from placer.solve.run.budget import ENDLESS, Budget
from placer.solve.run.solution import EXACT
from placer.topology.machine import Machine

ARGUMENT = (
    "least cut of every tier: edge-isoperimetric floors of rank sets, sizes by a "
    "knapsack over the domains' capacities, prices on pipeline stages, parts that add "
    "up to whole rings"
)


def least_hop_cost(
    problem: Problem, _block: int, incumbent: float, _budget: Budget = ENDLESS
) -> Proof | None:
    """The bound on the hop cost, however ranks are launched; None for step time."""
    if problem.goal.name == "time":
        return None
    cuts = problem.once(HopCuts.of_problem)
    value = cuts.together(incumbent)
    return Proof(value, ARGUMENT, cuts.prices(value))


def counted_hop_cost(problem: Problem, incumbent: float, budget: Budget) -> Proof:
    """The bound with programs on parts that were too large for `least_hop_cost`."""
    cuts = problem.once(HopCuts.of_problem)
    return Proof(cuts.together(incumbent, budget), ARGUMENT)


@dataclass(frozen=True, eq=False)
class HopCuts:
    """The cuts of all tiers of a job on a machine."""

    topology: Machine
    params: Params
    inside: float  # what all edges cost at the nearest distance
    # (T - 1,): of the distance at each tier, where it may not fall outwards.
    rises: FloatArray
    # Of the graph of ranks, and of that of sets where there is one.
    of_tier: Mapping[int, list[TierCut]]
    of_axes: bool  # whether rules keep together groups of axes alone

    @classmethod
    def of_problem(cls, problem: Problem) -> HopCuts:
        """The cuts of a problem, which its bounds share (`Problem.once`)."""
        return cls.of(problem.machine, problem.job, problem.params)

    @classmethod
    def of(cls, topology: Machine, job: Job, params: Params) -> HopCuts:
        """The cuts for every launch.

        Raises `InfeasibleError` if the job has more ranks than the machine has GPUs.
        """
        if job.world_size > topology.num_gpus:
            sizes = f"{job.world_size} ranks, the machine {topology.num_gpus} GPUs"
            raise InfeasibleError(f"the job has {sizes}")
        distance = np.array([tier.distance for tier in topology.tiers])
        rises = np.diff(np.minimum.accumulate(distance[::-1])[::-1])
        edges, whole, cuts = hop_edges(job), graph_of(job), {}
        inside = distance.min() * sum(axis.weight * len(axis.edges) for axis in edges)
        for tier in np.flatnonzero(rises if edges else []).tolist():
            gpus = np.bincount(topology.domain_of_gpu[tier])
            if gpus.max() >= job.world_size:
                continue  # no edge need cross where one domain holds all ranks
            cuts[tier] = [TierCut(whole, gpus, params)]
            for label, sets in kept_whole(topology, job, tier):
                graph = contracted(job, label)
                if graph and sets.sum() >= graph.vertices:
                    cuts[tier].append(TierCut(graph, sets, params))
        of_axes = job.require.keys() <= job.parallelism.ranks_of_group.keys()
        return cls(topology, params, float(inside), rises, cuts, of_axes)

    def least(self, tier: int) -> float:
        """Least weight of edges between domains of a tier, as far as is known."""
        return max((cut.value for cut in self.of_tier.get(tier, ())), default=0.0)

    def value(self, without: Iterable[int] = ()) -> float:
        """The bound by what is known of each tier, some of them left out."""
        tiers = self.of_tier.keys() - set(without)
        return self.inside + sum(float(self.rises[t]) * self.least(t) for t in tiers)

    def prices(self, value: float) -> tuple[TierPrices, ...]:
        """Prices that prove a value; none where it rests on more."""
        best = {
            tier: max(enumerate(cuts[: 1 + self.of_axes]), key=lambda c: c[1].priced)
            for tier, cuts in self.of_tier.items()
        }
        priced = (self.rises[tier] * cut.priced for tier, (_, cut) in best.items())
        if self.inside + float(sum(priced)) < value * (1 - EXACT):
            return ()
        return tuple(
            TierPrices(tier, *cut.prices, of_sets=bool(which))
            for tier, (which, cut) in best.items()
        )

    def raised(self, incumbent: float) -> float:
        """The bound once parts add up on every tier, or the incumbent is reached."""
        for cuts in self.of_tier.values():
            if self.value() < incumbent:
                cuts[-1].add_up()  # sets that are kept whole say more than ranks
        return self.value()

    def together(self, incumbent: float, again: Budget | None = None) -> float:
        """The sum with parts of lines on two tiers.

        With a budget it is a second try, of programs that were too large for the first.
        """
        best = self.value() if again else self.raised(incumbent)
        tiers = sorted(self.of_tier)[:2]
        if best >= incumbent or len(tiers) < 2:
            return best
        cuts = [self.of_tier[tier][-1] for tier in tiers]
        if cuts[0].world != cuts[1].world:
            return best
        few, many = self.params.part_columns, self.params.counted_columns
        columns = range(few + 1, many + 1) if again else range(few + 1)
        rises = [float(self.rises[tier]) for tier in tiers]
        quantum = cuts[0].quantum * common_divisor(rises)
        outer, rest = self._outer(*tiers), self.value(without=tiers)
        lines = (cut.lines(rise) for cut, rise in zip(cuts, rises, strict=True))
        for both in zip(*lines, strict=True):
            if again and again.is_over():
                break
            contents, more = contents_of(both, outer)
            if contents.columns in columns:
                limits, needed = AT_ROOT, best - rest - more
                if again:
                    nodes = self.params.parted_nodes
                    limits = EngineLimits(nodes, again.seconds_left, engine="highs")
                least = contents.least(limits, needed) + more
                best = max(best, rounded_up(least, quantum) + rest)
        return best

    def _outer(self, tier: int, other: int) -> IntArray:
        """Domain of an outer tier that holds each of an inner one."""
        domain = self.topology.domain_of_gpu
        outer = np.zeros(int(domain[tier].max()) + 1, dtype=np.int64)
        outer[domain[tier]] = domain[other]
        return outer
