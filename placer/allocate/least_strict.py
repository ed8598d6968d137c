"""The least strict request for nodes that still guarantees a step time.

A scheduler takes slices: so many nodes that lie in one domain each, perhaps all slices
in one domain further out. It may give any nodes that keep this. The worst it can give
is every slice in a domain of its own, with only its nodes' share of the uplinks. So the
job is placed on such a machine, built for it. Slices are halved, or cut in other equal
parts, as long as that still does. Only requests that the job's own nodes keep count: no
other is known to be met.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from placer.allocate.offers import Offer, solved_in_time
from placer.allocate.question import Question
from placer.base.errors import InfeasibleError
from placer.base.rounding import EXACT
from placer.job.rules import Rules
from placer.solve.problem.compiled import Problem
from placer.solve.problem.params import QUICK, params_of
from placer.solve.run.budget import Budget
from placer.topology.model import Topology


class Slices(NamedTuple):
    """A request by shape."""

    tier: int  # tier a domain of which each slice lies in
    size: int  # nodes of a slice
    # Tier a domain of which all nodes lie in; the outermost asks for nothing.
    within: int


def least_strict(
    question: Question, offer: Offer, value: float, budget: Budget
) -> tuple[Slices, float] | None:
    """The request, and the value that its worst nodes reach.

    None where none guarantees ``value``, within the tolerance of the question, nodes
    have unequal GPUs, or a link between domains is slower than others.
    """
    machine = question.machine
    used = np.unique(machine.node_of_gpu[offer.solution.placement.gpu_of_rank])
    outer = len(machine.tiers) - 1
    tier = max(machine.scale_up_tier, 1)
    if len(np.unique(machine.gpus_by_island[used], axis=0)) > 1 or tier >= outer:
        return None
    if machine.links:
        return None
    count = len(used)
    limit = value * (1 + question.tolerance + EXACT)
    best: tuple[Slices, float] | None = None
    for size in (n for n in range(count, 0, -1) if count % n == 0):
        every = (Slices(tier, size, within) for within in range(outer, tier, -1))
        requests = [slices for slices in every if _is_kept(machine, used, slices)]
        if not requests:
            continue
        if budget.is_over():
            break
        values = ((s, _worst(question, offer, used, s, budget)) for s in requests)
        found = next((pair for pair in values if pair[1] <= limit), None)
        if found is None or budget.is_over():
            break
        best = found
    return best


def _is_kept(machine: Topology, used: np.ndarray, slices: Slices) -> bool:
    """Whether nodes are such slices in such a domain."""
    held = np.bincount(machine.domain_of_node[slices.tier][used])
    inside = machine.domain_of_node[slices.within][used]
    return bool((held % slices.size == 0).all() and (inside == inside[0]).all())


def _worst(
    question: Question, offer: Offer, used: np.ndarray, slices: Slices, budget: Budget
) -> float:
    """The value on the worst nodes that keep a request; infinite where none fits."""
    machine = worst_machine(question.machine, used, slices)
    job = replace(offer.job, rules=Rules())
    problem = Problem.of(machine, job, question.objective, question.seed)
    problem = problem.with_params(**params_of(QUICK))
    try:
        _, solution = solved_in_time(problem, budget)
    except InfeasibleError:
        return np.inf
    return solution.value


def worst_machine(machine: Topology, used: np.ndarray, slices: Slices) -> Topology:
    """A machine of as many nodes as are ``used``, each slice in a domain of its own.

    All are as slow as the slowest that a scheduler can give for them.
    """
    part = machine.select(used)
    given = machine.gpus_of_node >= part.gpus_of_node.min()
    slow = machine.compute_factor
    number = np.arange(len(used))
    rows = []
    for t in range(len(machine.tiers)):
        if t < slices.tier:
            rows.append(number)
        elif t < slices.within:
            rows.append(number // slices.size)
        else:
            rows.append(np.zeros_like(number))
    names = tuple(
        part.node_names if t == 0 else tuple(map(str, range(int(row.max()) + 1)))
        for t, row in enumerate(rows)
    )
    slowest = np.full(len(used), machine.bandwidth_factor[given].min())
    return replace(
        part,
        domain_of_node=np.array(rows),
        domain_names=names,
        bandwidth_factor=slowest,
        compute_factor=None if slow is None else np.full(len(used), slow[given].min()),
        built=None,
        uplink_share=None,
    )
