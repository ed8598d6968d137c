"""The fewest nodes to avoid that must be used all the same, by counting.

For machines too large for a variable a rank: every domain holds whole parts, and a node
to avoid is used or not (CP-SAT).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from ortools.sat.python import cp_model

from placer.solve.count.engine import cp_sat
from placer.solve.problem.colocation import parts_of
from placer.solve.problem.launch import launch_blocks
from placer.solve.tree.capacity import node_capacity, parent_of_domain

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.problem.limits import Limits

IntArray = npt.NDArray[np.int64]

WORK_LIMIT = 20.0


def readmitted(limits: Limits, job: Job) -> IntArray | None:
    """Nodes to avoid that must be used for the parts of ``job`` to fit, shape (any,).

    As few as can be where parts of a tier are equally large and a domain's replicas are
    not limited; then pins and limits may still ask for more. None when the parts do not
    fit even so, or no answer was found in the work allowed.
    """
    for block in launch_blocks(limits.topology, job):
        parts = parts_of(limits.topology, job, block)
        sizes = parts.uniform_sizes()
        if sizes is None:
            return np.flatnonzero(limits.avoided)
        capacity = node_capacity(limits.topology, block)
        found = _fewest(limits, capacity // sizes[0] * sizes[0], sizes)
        if found is not None:
            return found
    return None


def _fewest(limits: Limits, takes: IntArray, sizes: tuple[int, ...]) -> IntArray | None:
    """The nodes to avoid that are used when as few as possible are."""
    topology = limits.topology
    model = cp_model.CpModel()
    used = [model.new_bool_var("") for _ in range(topology.num_nodes)]
    held: list[cp_model.LinearExprT] = [
        int(most) * choice for most, choice in zip(takes, used, strict=True)
    ]
    for tier in range(1, len(topology.tiers)):
        parent = parent_of_domain(topology, tier)
        grouped: list[list[cp_model.LinearExprT]] = [
            [] for _ in range(int(parent.max()) + 1)
        ]
        for child, ranks in enumerate(held):
            grouped[int(parent[child])].append(ranks)
        held = []
        for inside in grouped:
            count = model.new_int_var(0, limits.job.world_size // sizes[tier], "")
            model.add(sizes[tier] * count <= sum(inside))
            held.append(sizes[tier] * count)
    model.add(sum(held) >= limits.job.world_size)
    for tier, number in limits.spares:
        row = topology.domain_of_node[tier]
        for domain in range(int(row.max()) + 1):
            nodes = np.flatnonzero(row == domain).tolist()
            most = max(len(nodes) - number, 0)
            model.add(sum(used[node] for node in nodes) <= most)
    avoided = np.flatnonzero(limits.avoided).tolist()
    model.minimize(sum(used[node] for node in avoided))
    solver = cp_sat(WORK_LIMIT)
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return np.array([n for n in avoided if solver.boolean_value(used[n])], dtype=int)
