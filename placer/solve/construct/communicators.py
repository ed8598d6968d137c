"""Placements made for the groups of the user's own, whatever they look like."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.placement.placement import Placement
from placer.solve.construct.partition import partitioned_nodes
from placer.solve.problem.colocation import join
from placer.solve.problem.flows import flows_of
from placer.solve.tree.capacity import whole_sets
from placer.solve.tree.fill import share_down

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.problem.flows import Flows
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
    machine = problem.machine
    for name, capacity, label in _divisions(problem, flows):
        node_of_rank = partitioned_nodes(
            machine, capacity, label, flows, rng, budget.is_over
        )
        if node_of_rank is not None:
            gpu_of_rank = Placement.on_nodes(machine, node_of_rank).gpu_of_rank
            incumbent.offer(f"partitioned communicators, {name}", gpu_of_rank)
        if budget.is_over():
            return


def _divisions(problem: Problem, flows: Flows) -> list[tuple[str, IntArray, IntArray]]:
    """Ranks each node may hold, and what stays together: with a name.

    All there is room for, or the fewest domains; and ranks that send nothing to any
    others whole, where a domain holds them.
    """
    machine, capacity = problem.machine, problem.capacity
    label = problem.colocation.label
    found = [("evenly", capacity, label)]
    sizes = problem.colocation.uniform_sizes()
    if sizes is not None:
        fewest = _fewest_domains(problem, [*sizes[:-1], sizes[-2:][0]])
        if fewest is not None:
            found.append(("fewest domains", fewest, label))
    joined = join(label[-2:][0], flows.edges)
    component: IntArray = np.unique(joined, return_inverse=True)[1]
    count = np.unique(np.bincount(component))
    tiers = len(machine.tiers) - 1
    room = [int(np.bincount(d, capacity).max()) for d in machine.domain_of_node]
    inside = next((t for t in range(tiers) if room[t] >= count[-1]), tiers)
    if inside < tiers:
        whole = np.where(np.arange(tiers + 1)[:, None] < inside, label, component)
        whole[-1] = label[-1]
        found.append(("whole components", capacity, whole))
        if len(count) == 1:
            parts = [gcd(*np.bincount(row).tolist()) for row in label[:inside]]
            size = [int(count[0])] * (tiers + 1 - inside)
            fewest = _fewest_domains(problem, [*parts, *size])
            if fewest is not None:
                found.append(("whole components, fewest domains", fewest, whole))
    return found


def _fewest_domains(problem: Problem, sizes: list[int]) -> IntArray | None:
    """Ranks each node holds in the fewest domains; None where all are needed.

    ``sizes`` are those of the parts that a domain of each tier holds whole.
    """
    machine, capacity = problem.machine, problem.capacity
    world = problem.job.world_size
    if capacity.sum() <= world:
        return None
    takes = whole_sets(machine, capacity, sizes)
    if takes[-1].sum() < world:
        return None
    return share_down(machine, takes, np.array([world]))
