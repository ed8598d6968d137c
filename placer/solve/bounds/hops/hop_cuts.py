"""A lower bound on the hop cost of any placement, from the least cut of every tier.

``J >= d_0 W + sum_t (d_{t+1} - d_t) C_t`` with ``C_t = 1/2 min sum_i floor(s_i)`` over
the sizes s_i that the domains of tier t may hold; see docs/method.md, section 9.1.

* `graphs`: the job's graph as sums of products, of ranks or of sets kept whole;
* `isoperimetric`: the least boundary ``floor(s)`` of any s ranks;
* `lagrange`: the least sum of it over domains that together hold all ranks;
* `tier_cut`: prices on pipeline stages, at first on the ends of the chain, at 0, 1/4,
  1/2, 3/4 and 1 times its weight, then on all stages, alike from both ends, by ascent.
  What all domains pay in prices is a constant, and is taken back;
* `parts`: what domains hold of rings and cliques must add up to whole ones;
* `parted_lines`, `parted_groups`: two tiers together, in whole numbers.

Distances that fall outwards are first lowered to the least from there on. Cuts are
multiples of the greatest common divisor of the weights, so bounds are rounded up to
one, after allowing for rounding errors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, product
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray
from placer.errors import InfeasibleError
from placer.job.edges import hop_edges
from placer.solve.bounds import Proof
from placer.solve.bounds.groups.across_sets import across_sets
from placer.solve.bounds.hops.graphs import contracted, graph_of, kept_whole
from placer.solve.bounds.hops.hop_runs import HopRuns
from placer.solve.bounds.hops.parted_groups import PartedGroups
from placer.solve.bounds.hops.parted_lines import PartedLines
from placer.solve.bounds.hops.tier_cut import TierCut
from placer.solve.count.engine import Limits
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.objective import HopCostObjective
from placer.solve.run.budget import ENDLESS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from placer.job.model import Job
    from placer.solve.problem.compiled import Problem
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget
    from placer.topology.machine import Machine

ARGUMENT = (
    "least cut of every tier: edge-isoperimetric floors of rank sets, sizes by a "
    "knapsack over the domains' capacities, prices on pipeline stages, parts that add "
    "up to whole rings"
)


RUNS = "edges that runs of ranks on hosts and islands cut at the least"


def least_hop_cost(
    problem: Problem, _block: int, incumbent: float, _budget: Budget = ENDLESS
) -> Proof | None:
    """The bound on the hop cost, however ranks are launched; None for step time."""
    if not isinstance(problem.goal, HopCostObjective):
        return None
    cuts = problem.once(HopCuts.of_problem)
    return Proof(cuts.together(incumbent), ARGUMENT)


def hop_cost_by_nodes(
    problem: Problem, block: int, incumbent: float, _budget: Budget = ENDLESS
) -> Proof | None:
    """The bound where nodes hold a run of ranks each; None where that cuts nothing."""
    if not isinstance(problem.goal, HopCostObjective) or block == 1:
        return None
    cuts = problem.once(HopCuts.of_problem)
    if cuts.runs is None:
        return None
    cuts.raised(incumbent)
    value = cuts.value(beside=cuts.runs.tiers) + cuts.runs.least
    return Proof(value, f"{RUNS}, and {ARGUMENT}")


def hop_runs(problem: Problem) -> HopRuns | None:
    """What a launch by nodes pays inside hosts; None where that is not counted."""
    return problem.once(HopCuts.of_problem).runs


def counted_hop_cost(
    problem: Problem, incumbent: float, limits: Limits, *, is_wide: bool
) -> Proof | None:
    """The same with more work on whole numbers of parts; None where none count.

    Parts of expert groups take the longest, and are left to wide gaps.
    """
    params = problem.params
    if not isinstance(problem.goal, HopCostObjective):
        return None
    most = params.counted_columns if is_wide else 0
    cuts = problem.once(HopCuts.of_problem)
    cuts = replace(cuts, params=replace(params, parted_columns=most))
    first, again = params.line_columns
    is_new = any(line.fits(again) and not line.fits(first) for line in cuts.lines())
    if not is_new and not cuts.groups():
        return None
    return Proof(cuts.together(incumbent, limits), ARGUMENT)


@dataclass(frozen=True, eq=False)
class HopCuts:
    """The cuts of all tiers of a job on a machine.

    Attributes
    ----------
    topology : Machine
    job : Job
    params : Params
    inside : float
        What all edges cost at the nearest distance.
    rises : ndarray, shape (T - 1,)
        Of the distance at each tier, where it may not fall outwards.
    of_tier : mapping of int to list of TierCut
        Of the graph of ranks, of that of sets where there is one, and beside edges that
        are cut for certain.
    """

    topology: Machine
    job: Job
    params: Params
    inside: float
    rises: FloatArray
    of_tier: Mapping[int, list[TierCut]]

    @classmethod
    def of_problem(cls, problem: Problem) -> HopCuts:
        """The cuts of a problem, which its bounds share (`Problem.once`)."""
        return cls.of(problem.machine, problem.job, problem.params)

    @classmethod
    def of(cls, topology: Machine, job: Job, params: Params) -> HopCuts:
        """The cuts for every launch.

        Raises
        ------
        InfeasibleError
            If the job has more ranks than the machine has GPUs.
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
            cuts[tier] += _beside_cut_groups(topology, job, params, tier)
        return cls(topology, job, params, float(inside), rises, cuts)

    @cached_property
    def runs(self) -> HopRuns | None:
        """What a launch by nodes pays inside hosts; None where that is not counted."""
        label = colocation_of(self.topology, self.job, 1).label
        own = label[self.topology.node_tier]
        return HopRuns.of(self.topology, self.job, self.rises, own)

    def least(self, tier: int) -> float:
        """Least weight of edges between domains of a tier, as far as is known."""
        return max((cut.least for cut in self.of_tier.get(tier, ())), default=0.0)

    def value(self, beside: Iterable[int] = ()) -> float:
        """The bound by what is known of each tier, some of them left out."""
        tiers = self.of_tier.keys() - set(beside)
        return self.inside + sum(float(self.rises[t]) * self.least(t) for t in tiers)

    def raised(self, incumbent: float) -> float:
        """The bound once every cut is raised, or the incumbent reached."""
        cuts = [*chain.from_iterable(self.of_tier.values())]
        for step in range(TierCut.STEPS):
            for cut in cuts:
                if cut.steps == step and (step == 0 or self.value() < incumbent):
                    cut.raise_once()
        return self.value()

    def together(self, incumbent: float, limits: Limits | None = None) -> float:
        """The same with whole numbers of parts on some tiers together.

        Those of lines are the sooner ones. With limits this is a second try.
        """
        best, params = self.raised(incumbent), self.params
        again = limits is not None
        limits = limits or Limits(1, engine="highs")
        work = Limits(params.line_work[again], limits.seconds, probes=False)

        def bounds() -> Iterator[tuple[float, list[int]]]:
            for lines in self.lines():
                both = lines.least(work, params.line_columns[again])
                yield both, [*self.of_tier][:2]
            found = self.groups()
            if found is not None:
                yield found[0].least(limits), found[1]

        for both, tiers in bounds() if best < incumbent else ():
            best = max(best, both + self.value(beside=tiers))
            if best >= incumbent:
                break
        return best

    def lines(self) -> Iterator[PartedLines]:
        """Rings and cliques in the two inner tiers, where both cut the same graph."""
        if len(self.of_tier) < 2:
            return
        near, far, *_ = self.of_tier
        topology, rises = self.topology, self.rises
        inner_cuts, outer_cuts = self.of_tier[near], self.of_tier[far]
        for inner, outer in product(reversed(inner_cuts), reversed(outer_cuts)):
            if inner.known or outer.known:
                continue
            if inner.world == outer.world:
                home = np.zeros(len(inner.rooms), dtype=np.int64)
                home[topology.domain_of_gpu[near]] = topology.domain_of_gpu[far]
                both = float(rises[near]), float(rises[far])
                yield from PartedLines.of((inner, outer), home, both)
                return

    def groups(self) -> tuple[PartedGroups, list[int]] | None:
        """Expert groups, and the tiers on which whole numbers of their parts count."""
        if not self.of_tier:
            return None
        # A tier with a domain for all ranks has no cut of its own, but beside another.
        tiers = [
            t for t in np.flatnonzero(self.rises).tolist() if t >= min(self.of_tier)
        ]
        for together in (tiers[:2], tiers[:1]):
            groups = PartedGroups.of(self.topology, self.job, together, self.rises)
            if groups is not None and groups.columns <= self.params.parted_columns:
                return groups, together
        return None


def _beside_cut_groups(
    topology: Machine, job: Job, params: Params, tier: int
) -> Iterator[TierCut]:
    """Cuts where rules about outer tiers leave no room for all groups of an axis."""
    label = colocation_of(topology, job, 1).label
    gpus = np.bincount(topology.domain_of_gpu[tier])
    for axis, *_ in hop_edges(job) if job.require else ():
        members = job.parallelism.ranks_of_group[axis]
        across = across_sets(topology.domain_of_node, label, tier, members)
        cut = max((sets.fewest_cut(gpus, len(members)) for sets in across), default=0)
        ring = 2 if members.shape[1] > 2 else 1
        edges = {"pp": 1, "ep": members.shape[1] - 1}.get(axis, ring)
        weight = job.weights[axis] * edges * cut
        # A share of the weight of the axis counts for those edges alone.
        for share in params.cut_shares if weight else ():
            less = {axis: job.weights[axis] * (1 - share)}
            graph = graph_of(replace(job, weights={**job.weights, **less}))
            yield TierCut(graph, gpus, params, known=share * weight)
