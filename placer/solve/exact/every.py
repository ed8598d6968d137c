"""Every placement of a small job, or as many as can be tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.placement.placement import Placement
from placer.solve.exact.enumerate import Enumeration
from placer.solve.problem.colocation import Parts, parts_of
from placer.solve.tree.capacity import node_capacity

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

IntArray = npt.NDArray[np.int64]

# Steps of the walk for each placement that is listed.
STEPS_A_PLACEMENT = 2


@dataclass(frozen=True, eq=False)
class Every:
    """Placements of a job, domains that look alike being tried once.

    Attributes
    ----------
    nodes_of_rank : list of ndarray, each shape (R,)
    complete : bool
        Whether these are all there are.
    """

    nodes_of_rank: list[IntArray]
    complete: bool


def enumerated(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Offer every placement of a small job; complete, that is a proof."""
    every = every_placement(problem, budget)
    for node_of_rank in every.nodes_of_rank:
        if incumbent.ends():
            return
        placement = Placement.on_nodes(problem.machine, node_of_rank)
        incumbent.offer("enumeration", placement.gpu_of_rank)
    if every.complete and incumbent.is_whole:
        text = (
            f"all {len(every.nodes_of_rank):,} ways to place "
            f"{problem.job.world_size} ranks, equal domains counted once"
        )
        incumbent.prove(float(incumbent.value), text)


def every_placement(problem: Problem, budget: Budget) -> Every:
    """All placements of a job of few units; none of a larger one."""
    topology, job, parts = problem.machine, problem.job, problem.parts
    is_free = job.launcher == "free"
    largest = 1 if is_free else int(topology.gpus_of_node.max())
    if job.world_size > problem.params.listed_units * largest:
        return Every([], complete=False)
    most = problem.params.listed[problem.goal.name]

    def walk(shape: Parts) -> Enumeration:
        capacity = node_capacity(topology, shape.block)
        steps = most * STEPS_A_PLACEMENT
        return Enumeration(topology, shape, capacity, steps, budget.is_over)

    def listed(nodes_of_rank: Iterator[IntArray]) -> list[IntArray]:
        return list(islice(nodes_of_rank, most))

    anywhere = walk(parts_of(topology, job, 1))
    found = listed(anywhere.units() if is_free else anywhere.runs())
    complete = anywhere.complete and len(found) < most
    if not (complete or is_free) and parts.block > 1:
        # Too many ways to give nodes different numbers of ranks: equal ones only.
        found = listed(walk(parts).units())
    return Every(found if complete else found[: problem.params.listed_sample], complete)
