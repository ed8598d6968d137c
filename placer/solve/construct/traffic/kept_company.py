"""Placements whose domains hold ranks that keep each other company, as fast as can be.

A program finds company for all ranks at once, or proves that some time is too short
(`bounds/traffic/covers.py`). The least time that may do is a bound, and what was found
for it a placement: companies that share a domain become one vertex, and what these send
each other is divided down the tree.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from placer.solve.bounds.network.best_network import best_of_problem
from placer.solve.bounds.traffic.company import ROUNDING, Companies, climbed
from placer.solve.bounds.traffic.covers import cover
from placer.solve.bounds.traffic.traffic import step_with
from placer.solve.construct.traffic.partition import partitioned_nodes
from placer.solve.problem.flows import bundled, flows_of
from placer.solve.run.solution import EXACT
from placer.solve.tree.capacity import whole_sets
from placer.solve.tree.fill import fill_domains

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.arrays import IntArray
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

# Times of all ranks are told apart that differ by so much.
FINEST = 1e-3
ARGUMENT = (
    "not every rank can be in a scale-up domain with enough of those that it sends to, "
    "or its NIC is busy so long"
)


def briefly_kept_company(
    problem: Problem, incumbent: Incumbent, budget: Budget
) -> None:
    """Ask for company of all ranks, as fast as there may be, with little work."""
    _kept_company(problem, incumbent, budget, 0)


def kept_company(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """The same with more work."""
    _kept_company(problem, incumbent, budget, 1)


def _kept_company(
    problem: Problem, incumbent: Incumbent, budget: Budget, turn: int
) -> None:
    traffic = problem.job.traffic
    if problem.goal.name != "time" or traffic is None or incumbent.terms is not None:
        return
    model, params = problem.model, problem.params
    network = best_of_problem(problem, 1)
    tier = network.fabric.scale_up_tier
    if tier < 0 or not network.fabric.can_leave_scale_up:
        return
    companies = Companies.of(network, traffic, params.cover_work[turn])
    work, best = params.cover_program[turn], inf

    def later_s(seconds: float) -> float | None:
        nonlocal best
        if best <= seconds * (1 + ROUNDING):
            return None
        if incumbent.value <= step_with(model, network, seconds) * (1 + EXACT):
            return None
        known = cover(companies, network.capacities[tier], seconds, work, budget)
        if known.sets:
            best = companies.seconds(known.sets)
            if problem.job.launcher == "free":
                found = _placed(problem, tier, known.sets, budget)
                if found is not None:
                    incumbent.offer("kept company", found)
        return known.later_s

    seconds = climbed(later_s, 0.0, FINEST) * (1 - ROUNDING)
    value = step_with(model, network, seconds)
    incumbent.launch_bound = max(incumbent.launch_bound, value)
    incumbent.prove(value, ARGUMENT)


def _placed(
    problem: Problem, tier: int, sets: Sequence[frozenset[int]], budget: Budget
) -> IntArray | None:
    """GPU of every rank with each set in one domain of a tier; None: no room."""
    machine, ranks = problem.machine, problem.job.world_size
    takes = whole_sets(machine, problem.capacity, [1] * len(machine.tiers))
    group = _grouped(sets, takes[tier], ranks)
    if group is None:
        return None
    count = int(group.max()) + 1
    flows = flows_of(problem, np.arange(ranks))
    label = np.tile(np.arange(count), (len(machine.tiers), 1))
    label[-1] = 0
    # The first node of each domain stands for it.
    room = np.zeros(len(problem.capacity), dtype=np.int64)
    room[np.unique(machine.domain_of_node[tier], return_index=True)[1]] = 1
    node = partitioned_nodes(
        machine,
        room * (problem.capacity > 0),
        label,
        bundled(group[flows.edges], flows.weight, count),
        np.random.default_rng(problem.seed),
        budget.is_over,
    )
    if node is None:
        return None
    domain = machine.domain_of_node[tier][node][group]
    if (np.bincount(domain, minlength=len(takes[tier])) > takes[tier]).any():
        return None
    along = fill_domains(machine, takes[: tier + 1], domain, np.lexsort((group,)))
    return machine.gpus_on(along)


def _grouped(
    sets: Sequence[frozenset[int]], takes: IntArray, ranks: int
) -> IntArray | None:
    """What each rank shares a domain with, the largest sets first; None: no room."""
    domains, room = int((takes > 0).sum()), int(takes.max())
    group, left = np.empty(ranks, dtype=np.int64), np.zeros(domains, dtype=np.int64)
    left += room
    sets = sorted(sets, key=lambda one: (-len(one), min(one)))
    # Alone where there are domains enough.
    shared = len(sets) > domains
    for number, one in enumerate(sets):
        at = int(np.argmax(left >= len(one))) if shared else number
        if left[at] < len(one):
            return None
        left[at] -= len(one)
        group[list(one)] = at
    return np.asarray(np.unique(group, return_inverse=True)[1], dtype=np.int64)
