"""What an allocation gives: a checked plan for every job, what is left, a grade."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from placer.allocate.allocation import Allocation, JobNodes
from placer.allocate.fewest_leaves import leaf_tier
from placer.allocate.grade import Graded, counts_by_domain
from placer.allocate.offers import Offer
from placer.allocate.question import Demand, Question
from placer.allocate.search import Found
from placer.allocate.shared import Use, left_by, use_of
from placer.api.allocation_inputs import Asked, Kept
from placer.api.checked_plan import checked_plan
from placer.base.arrays import BoolArray, IntArray
from placer.base.hostlist import compress
from placer.cost.step import StepModel
from placer.placement.inputs import Inputs
from placer.placement.plan import Plan
from placer.report.allocation_table import grade_text
from placer.solve.run.budget import Budget
from placer.solve.tree.domains import Rest
from placer.topology.model import Topology


def left(machine: Topology, free: BoolArray, demand: Demand) -> dict[str, Any]:
    """The free nodes by domain, and what they are worth.

    ``useful_nodes`` are those that jobs to come can fill in one domain of the innermost
    tier above the node, of the sizes and shares of ``demand``; ``stranded_nodes`` are
    the others. Where there is no such tier, the cluster is the one domain.
    Domains without a free node count 0.
    """
    tiers = range(1, len(machine.tiers) - 1)
    counts = {
        t: np.bincount(
            machine.domain_of_node[t], free, len(machine.domain_names[t])
        ).astype(np.int64)
        for t in tiers
    }
    count = int(free.sum())

    def by_tier(of: Callable[[int, IntArray], Any]) -> dict[str, Any]:
        return {machine.tiers[t].name: of(t, own) for t, own in counts.items()}

    rows, names = machine.domain_of_node, machine.domain_names
    found: dict[str, Any] = {
        "free_nodes": count,
        "whole_domains": by_tier(
            lambda t, own: int((own == np.bincount(rows[t])).sum())
        ),
        "free_by_domain": by_tier(
            lambda t, own: dict(zip(names[t], own.tolist(), strict=True))
        ),
        "largest_free": by_tier(lambda _, own: int(own.max())),
        "slurm_fragmentation": slurm_fragmentation(machine, free),
    }
    if len(machine.tiers) > 1:
        by_domain = counts.get(1, np.array([count]))
        filled, _ = Rest(machine, demand).worth(1, by_domain)
        often = sum(share for _, share in demand)
        useful = int(filled.sum()) / often
        found |= {
            "useful_nodes": useful,
            "stranded_nodes": round(count - useful, 9),
            "demand": {str(nodes): share / often for nodes, share in demand},
        }
    return found


def slurm_fragmentation(machine: Topology, free: BoolArray) -> int:
    """Slurm's figure of how broken the free nodes are; 0 where all are free.

    Nodes that are not free, and the nodes of every block, of each size, that is not
    wholly free. Blocks are the domains of the tiers above the node. Source: Slurm,
    ``src/plugins/topology/block/topology_block.c``.
    """
    total = int((~free).sum())
    for row in machine.domain_of_node[1:]:
        size = np.bincount(row)
        broken = np.bincount(row, ~free) > 0
        total += int(size[broken].sum())
    return total


def allocation_of(
    asked: Asked, found: Found, always: Sequence[Use], budget: Budget | None
) -> Allocation:
    """The plans of what was found, checked, and what is left.

    With a budget they say which request guarantees them.
    """
    question, together = asked.question, found.together
    jobs = tuple(
        _job_nodes(asked, found, index, budget) for index in range(len(question.jobs))
    )
    uses = [use_of(asked.whole, o.job, o.solution.placement) for o in together.offers]
    kept = tuple(
        _kept_nodes(one, left_by([*uses, *always[:i], *always[i + 1 :]]), asked.whole)
        for i, one in enumerate(asked.kept)
    )
    return Allocation(
        jobs,
        kept,
        left(asked.whole, question.free & ~together.used, question.demand),
        together.cost,
        found.least,
        found.argument,
        "optimal" if found.is_optimal else "feasible",
        found.stop_reason,
    )


def _job_nodes(
    asked: Asked, found: Found, index: int, budget: Budget | None
) -> JobNodes:
    """The row and the plan of one job."""
    question = asked.question
    offer, alone = found.together.offers[index], found.alone[index]
    names = question.machine.node_names
    hosts = tuple(names[node] for node in np.flatnonzero(offer.nodes))
    plan = _plan(asked.inputs[index], offer, alone, hosts, question.seed)
    value = found.together.values[index]
    if budget is not None:
        plan = replace(plan, request=_request(question, offer, plan, budget))
    step = plan.score["step_time_s"]
    is_time = offer.solution.objective == "time"
    ideal = StepModel(asked.whole, alone.job).step(alone.solution.placement.gpu_of_rank)
    return JobNodes(
        question.jobs[index].name,
        compress(hosts),
        plan,
        *_by_domain(asked.whole, offer.nodes),
        value if is_time else step,
        ideal.step_time_s,
        value,
        alone.solution.value,
        min(alone.solution.lower_bound, value),
        question.jobs[index].weight,
        offer.moved,
    )


def _request(
    question: Question, offer: Offer, plan: Plan, budget: Budget
) -> dict[str, Any]:
    """The nodes that are not asked for, and the least strict request, as plain data."""
    from placer.allocate.least_strict import least_strict

    machine = question.machine
    others = np.flatnonzero(question.free & ~offer.nodes)
    request = {"others": compress([machine.node_names[node] for node in others])}
    found = least_strict(question, offer, plan.bound["value"], budget)
    if found is None:
        return request
    slices, value = found
    outermost = slices.within == len(machine.tiers) - 1
    return {
        **request,
        "tier": machine.tiers[slices.tier].name,
        "slice": slices.size,
        "within": "" if outermost else machine.tiers[slices.within].name,
        "value": value,
    }


def _plan(
    inputs: Inputs, offer: Offer, alone: Offer, hosts: tuple[str, ...], seed: int
) -> Plan:
    """The plan of a job on its nodes alone, with the bound over all free nodes."""
    inputs = replace(inputs, hosts=hosts, exclude=())
    machine = inputs.machine
    node_of = {name: node for node, name in enumerate(machine.node_names)}
    whole = inputs.topology
    gpus = offer.solution.placement.gpu_of_rank
    node = whole.node_of_gpu[gpus]
    local = gpus - whole.first_gpu_of_node[node]
    own = np.array([node_of.get(name, -1) for name in whole.node_names])[node]
    placement = replace(
        offer.solution.placement, gpu_of_rank=machine.first_gpu_of_node[own] + local
    )
    solution = replace(
        offer.solution,
        placement=placement,
        lower_bound=alone.solution.lower_bound,
        argument=alone.solution.argument,
    )
    # Budgets that bind among all free nodes may not bind on these.
    # Equal jobs share an offer, with the name of the first of them.
    asked, rules = inputs.job, inputs.ruled.rules
    job = replace(offer.job, name=asked.name, sha256=asked.sha256, rules=rules)
    model = StepModel(machine, job)
    return checked_plan(inputs, model, solution, seed, {})


def _kept_nodes(one: Kept, share: Use | None, whole: Topology) -> JobNodes:
    """A job that stays, while the others run."""
    machine = whole if share is None else replace(whole, uplink_share=share)
    job, gpus = one.inputs.job, one.placement.gpu_of_rank
    step = StepModel(machine, job).step(gpus).step_time_s
    alone = StepModel(whole, job).step(gpus).step_time_s
    hosts = compress(tuple(whole.node_names[n] for n in np.flatnonzero(one.nodes)))
    where = _by_domain(whole, one.nodes)
    values = step, alone
    if one.plan.bound["objective"] == "hop-cost":
        values = (one.plan.score["hop_cost"],) * 2
    return JobNodes(one.name, hosts, one.plan, *where, step, alone, *values, 0.0)


def _by_domain(machine: Topology, nodes: BoolArray) -> tuple[str, dict[str, int]]:
    """The tier in whose domains nodes lie, and how many each of them gives.

    None where there is no such tier.
    """
    tier = leaf_tier(machine)
    if not tier:
        return "", {}
    counts = np.bincount(machine.domain_of_node[tier], nodes).astype(np.int64)
    names = machine.domain_names[tier]
    found = {names[d]: int(counts[d]) for d in np.flatnonzero(counts).tolist()}
    return machine.tiers[tier].name, found


def grade_of(question: Question, found: Graded) -> dict[str, Any]:
    """What is said of granted nodes, ready for JSON."""
    objective = found.granted.solution.objective
    tier, _ = _by_domain(question.machine, found.granted.nodes)

    def told(offer: Offer) -> dict[str, Any]:
        names = question.machine.node_names
        hosts = [names[node] for node in np.flatnonzero(offer.nodes)]
        index = question.machine.tier_index(tier) if tier else 0
        return {
            "hosts": compress(hosts),
            "value": offer.solution.value,
            "domains": counts_by_domain(question, index, offer.nodes) if tier else {},
        }

    grade = {
        "objective": objective,
        "tier": tier,
        **told(found.granted),
        "best_free": told(found.free),
        "best": told(found.imaginable),
        "stranded_nodes": found.stranded,
    }
    return {**grade, "text": grade_text(grade)}
