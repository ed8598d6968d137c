"""The lower bound of an objective, whatever the placement."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from placer.solve.bounds.cut import cut_bound
from placer.solve.bounds.time import time_bound
from placer.solve.objective import TimeObjective
from placer.solve.parts import node_capacity, parts_of

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.objective import Objective
    from placer.topology.model import Topology


def lower_bound(
    topology: Topology, job: Job, goal: Objective, block: int, incumbent: float = inf
) -> tuple[float, str]:
    """(bound, what it rests on) for every placement that meets the requirements.

    ``block`` consecutive ranks share a node; 1 bounds every launch. ``incumbent`` is
    the value of a known placement: a bound that reaches it is not improved further.
    """
    if isinstance(goal, TimeObjective):
        parts = parts_of(topology, job, block)
        found = time_bound(goal.model, parts, node_capacity(topology, block))
        return found.value, found.argument
    bound = cut_bound(topology, job, incumbent)
    return bound.value, bound.argument
