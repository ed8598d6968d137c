"""Placements made for the groups of the user's own, whatever they look like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.placement.placement import Placement
from placer.solve.construct.partition import partitioned_nodes
from placer.solve.problem.flows import flows_of
from placer.solve.tree.capacity import whole_sets
from placer.solve.tree.fill import share_down

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

IntArray = npt.NDArray[np.int64]


def partitioned(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """The graph of what ranks send each other, divided down the tree.

    All domains about equally full, and in the fewest domains.
    """
    if problem.goal.name != "time" or not problem.job.names_ranks:
        return
    start = incumbent.gpu_of_rank
    if start is None:
        start = np.arange(problem.job.world_size)
    flows = flows_of(problem, start)
    if not len(flows.edges):
        return
    rng = np.random.default_rng(problem.seed)
    machine, label = problem.machine, problem.colocation.label
    for name, capacity in _capacities(problem):
        node_of_rank = partitioned_nodes(
            machine, capacity, label, flows, rng, budget.is_over
        )
        if node_of_rank is not None:
            gpu_of_rank = Placement.on_nodes(machine, node_of_rank).gpu_of_rank
            incumbent.offer(f"partitioned communicators, {name}", gpu_of_rank)
        if budget.is_over():
            return


def _capacities(problem: Problem) -> list[tuple[str, IntArray]]:
    """Ranks each node may hold: all there is room for, or the fewest domains."""
    machine, capacity = problem.machine, problem.capacity
    world = problem.job.world_size
    found = [("evenly", capacity)]
    sizes = problem.colocation.uniform_sizes()
    if sizes is not None and capacity.sum() > world:
        takes = whole_sets(machine, capacity, [*sizes[:-1], sizes[-2:][0]])
        if takes[-1].sum() >= world:
            fewest = share_down(machine, takes, np.array([world]))
            found.append(("fewest domains", fewest))
    return found
