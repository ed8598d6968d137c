"""Groups in equal parts, one in each domain, as a rule asks for.

Groups in one or two parts lie so wherever their parts are whole; more parts are dealt
out (`problem.even`).
"""

from __future__ import annotations

import numpy as np

from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.compiled import Problem
from placer.solve.problem.even import bundles_in, bundles_of, dealt, shares_of
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.solve.tree.capacity import whole_sets
from placer.solve.tree.fill import fill_domains, in_tree_order
from placer.solve.tree.in_runs import fill_in_runs


def dealt_evenly(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Offer groups of more than two parts dealt out to as few domains as can be."""
    machine, job = problem.machine, problem.job
    for colocation in problem.choices or [colocation_of(machine, job, 1)]:
        bundles = bundles_of(machine, job, colocation)
        sizes = colocation.uniform_sizes()
        if bundles is None or bundles.width < 3 or sizes is None:
            continue
        tier = bundles.tier
        capacity = problem.capacity if problem.choices else machine.gpus_of_node
        takes = whole_sets(machine, capacity, sizes[: tier + 1])
        along = in_tree_order(machine, tier)
        room = takes[tier][along] // sizes[tier]
        shares = shares_of(room, bundles.width, bundles.number)
        if bundles_in(shares) < bundles.number:
            continue
        domain_of_set = np.empty(bundles.sets.size, dtype=np.int64)
        domain_of_set[bundles.sets] = along[dealt(shares, bundles.width)]
        domain_of_rank = domain_of_set[colocation.label[tier]]
        if problem.choices:
            every = np.arange(job.world_size)
            node_of_rank = fill_domains(machine, takes, domain_of_rank, every)
        else:
            row = machine.domain_of_node[tier]
            found = fill_in_runs(row, machine.gpus_of_node, domain_of_rank)
            if found is None:
                continue
            node_of_rank = found
        incumbent.offer("equal parts dealt out", machine.gpus_on(node_of_rank))
