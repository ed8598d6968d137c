"""The fewest nodes to avoid that must be used all the same, by counting.

For machines too large for a variable a rank: every domain holds whole co-location sets,
and a node to avoid is used or not.
"""

from __future__ import annotations

import numpy as np

from placer.base.arrays import IntArray
from placer.job.model import Job
from placer.solve.count import Limits as EngineLimits
from placer.solve.count import Term, solve
from placer.solve.problem.colocation import Colocation, colocation_of
from placer.solve.problem.launch import launch_blocks
from placer.solve.problem.packing import Packing
from placer.solve.problem.rules import Limits
from placer.solve.tree.capacity import node_capacity

READMIT_WORK = 20.0  # of CP-SAT's deterministic seconds
EFFORT = EngineLimits(READMIT_WORK)


def readmitted(
    limits: Limits, job: Job, effort: EngineLimits = EFFORT
) -> IntArray | None:
    """Nodes to avoid that must be used for the sets of ``job`` to fit, shape (any,).

    As few as can be where a domain's replicas are not limited; then pins and limits may
    still ask for more. None when the sets do not fit even so, or no answer was found in
    the effort allowed.
    """
    for block in launch_blocks(limits.topology, job):
        found = _fewest(limits, colocation_of(limits.topology, job, block), effort)
        if found is not None:
            return found
    return None


def _fewest(
    limits: Limits, colocation: Colocation, effort: EngineLimits
) -> IntArray | None:
    """The nodes to avoid that are used when as few as possible are."""
    topology = limits.topology
    packing = Packing(topology, colocation)
    program = packing.program
    used = [program.column(most=1, price=int(price)) for price in limits.avoided]
    for node, room in enumerate(node_capacity(topology, colocation.block).tolist()):
        program.row([*packing.ranks_on(node), Term(used[node], -room)], most=0)
    packing.nest()
    for tier, number in limits.spares:
        row = topology.domain_of_node[tier]
        for domain in range(int(row.max()) + 1):
            nodes = np.flatnonzero(row == domain).tolist()
            there = [Term(used[node]) for node in nodes]
            program.row(there, most=max(len(nodes) - number, 0))
    counts = solve(program, effort).counts
    if counts is None:
        return None
    return np.flatnonzero(limits.avoided & (np.array(counts)[used] > 0))
