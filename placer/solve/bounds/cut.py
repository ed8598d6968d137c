"""A lower bound on the hop cost of any placement, from the least cut of every tier.

The hop cost of a placement is ``d_0 W + sum_t (d_{t+1} - d_t) cut_t``: every edge pays
the innermost distance, and once more the rise of the distance at each tier whose
domains separate its ends. W is the total weight, ``cut_t`` the weight between different
domains of tier t. Distances that fall outwards are first lowered to the least distance
from there on, which lowers the cost of every placement, so all rises are at least 0.

Every tier's cut is bounded alone. It is half the sum of the boundaries of the rank sets
that its domains hold:

1. `boundary` gives the least boundary ``floor(s)`` of any s ranks of a product graph,
   and `products` writes the job's graph as a sum of such products;
2. `sizes` minimises the sum of ``floor`` over domains of given capacities that together
   hold all ranks;
3. before both, a price may be put on every rank of each pipeline stage. What all
   domains pay in prices is a constant, ranks of a stage x price, and is taken back. A
   price on the chain's ends makes up for sets that all would like to sit there; prices
   on all stages make up for segments of pipelines that do not add up to whole ones. Any
   prices give a bound (Lagrange); ends are tried at 0, 1/4, 1/2, 3/4, 1 times the
   chain's weight, then prices that mirror each other from both ends are improved by
   ascent.

Cuts are multiples of the greatest common divisor of the weights, so bounds are rounded
up to one, after allowing for rounding errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.errors import InfeasibleError
from placer.job.edges import hop_edges
from placer.solve.bounds.proof import Proof
from placer.solve.bounds.tier_cut import TierCut
from placer.solve.problem.objective import HopCostObjective

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.problem.compiled import Problem
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]

ARGUMENT = (
    "least cut of every tier: edge-isoperimetric floors of rank sets, sizes by a "
    "knapsack over the domains' capacities, prices on pipeline stages"
)


@dataclass(frozen=True)
class CutBound:
    """A lower bound on the hop cost, and how it comes about.

    Attributes
    ----------
    value : float
        No placement of the job on the machine has a smaller hop cost.
    cut_per_tier : tuple of float
        Least weight of edges between different domains of each tier; 0 where distance
        does not rise above the tier, and for the last.
    argument : str
        The proof in one sentence.
    """

    value: float
    cut_per_tier: tuple[float, ...]
    argument: str


def least_hop_cost(problem: Problem, _block: int, incumbent: float) -> Proof | None:
    """The bound on the hop cost, however ranks are launched; None for step time."""
    if not isinstance(problem.goal, HopCostObjective):
        return None
    found = cut_bound(problem.machine, problem.job, incumbent)
    return Proof(found.value, found.argument)


def cut_bound(topology: Topology, job: Job, incumbent: float = inf) -> CutBound:
    """Lower bound on the hop cost of every placement of ``job`` on ``topology``.

    Parameters
    ----------
    topology : Topology
    job : Job
        Its weights must not be negative.
    incumbent : float
        Hop cost of a known placement; the bound stops improving once it reaches this.

    Raises
    ------
    InfeasibleError
        If the job has more ranks than the machine has GPUs.
    """
    if job.world_size > topology.num_gpus:
        raise InfeasibleError(
            f"the job has {job.world_size} ranks, the machine {topology.num_gpus} GPUs"
        )
    distance = np.array([tier.distance for tier in topology.tiers])
    distance = np.minimum.accumulate(distance[::-1])[::-1]
    edges = hop_edges(job)
    inside = distance[0] * sum(axis.weight * len(axis.edges) for axis in edges)
    rises = np.diff(distance)
    cuts = {
        tier: TierCut(job, _gpus_of_domain(topology, tier))
        for tier in np.flatnonzero(rises if edges else []).tolist()
    }

    def value() -> float:
        return float(inside + sum(rises[t] * cut.value for t, cut in cuts.items()))

    for cut in cuts.values():
        cut.charge_ends()
    for cut in cuts.values():
        if value() < incumbent:
            cut.ascend()
    per_tier = tuple(
        cuts[t].value if t in cuts else 0.0 for t in range(len(topology.tiers))
    )
    return CutBound(value(), per_tier, ARGUMENT)


def _gpus_of_domain(topology: Topology, tier: int) -> IntArray:
    """GPUs of every domain of a tier; shape (D,)."""
    return np.bincount(topology.domain_of_gpu[tier])
