"""The independent checker: every promise of a placement, recomputed from nothing.

It imports neither the solver nor the cost model, and finds groups and domains itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from placer.job.model import Job
from placer.job.orders import as_planned
from placer.placement.placement import Placement
from placer.placement.plan import Plan
from placer.placement.plan_rules import rules_of
from placer.placement.robust import (
    crowded_domains,
    exceeded_budgets,
    misplaced_pins,
    missing_spares,
    misstated_avoidance,
)
from placer.placement.rules import (
    Seats,
    broken_launch_order,
    doubled_gpus,
    parts_without_link,
    seats_of_placement,
    seats_of_plan,
    share,
    split_groups,
)
from placer.topology.model import Topology

_SIZES = ("tp", "cp", "ep", "pp", "vp", "dp", "etp")


def violations(plan: Plan | Placement, topology: Topology, job: Job) -> list[str]:
    """What ``plan`` breaks, one sentence each; empty when it keeps every promise.

    A bare placement states no names and no digests, so only its ranks are checked.
    """
    degrees = list(_bad_degrees(plan.world_size, job))
    if isinstance(plan, Plan):
        job = as_planned(job, plan.job.get("order", ""))
        stated = [
            *_other_inputs(plan, topology, job),
            *_bad_nodes(plan, topology),
            *_bad_domains(plan, topology),
            *_bad_roles(plan, job),
        ]
        seats, unseated = seats_of_plan(plan, topology)
    else:
        stated = []
        seats, unseated = seats_of_placement(plan, topology)
    found = [*degrees, *stated, *unseated]
    if unseated or not plan.world_size:
        return found
    found += doubled_gpus(seats, topology)
    found += parts_without_link(seats, topology)
    if not degrees:
        found += split_groups(seats, topology, job)
        found += _broken_rules(plan, seats, topology, job)
    if job.launcher == "node-contiguous":
        found += broken_launch_order(seats, topology)
    return found


def _broken_rules(
    plan: Plan | Placement, seats: Seats, topology: Topology, job: Job
) -> Iterator[str]:
    """Sentences on rules of the job, and on those the plan was made under."""
    rules, kept = job.rules, None
    if isinstance(plan, Plan):
        rules = rules.and_also(rules_of(plan.rules))
        kept = plan.rules.get("spare_nodes")
        stated = plan.rules.get("avoided_nodes", ())
        yield from misstated_avoidance(seats, topology, rules.avoid, stated)
        yield from _broken_additions(plan, seats, topology, job)
    yield from misplaced_pins(seats, topology, rules.pin)
    yield from crowded_domains(seats, topology, job, rules.at_most)
    yield from exceeded_budgets(seats, topology, job)
    yield from missing_spares(seats, topology, rules.spares, kept)


def _broken_additions(
    plan: Plan, seats: Seats, topology: Topology, job: Job
) -> Iterator[str]:
    """Sentences on requirements that were added to the job's when it was placed."""
    added = plan.bound.get("require")
    more = {
        axis: tier
        for axis, tier in (added.items() if isinstance(added, dict) else ())
        if isinstance(tier, str) and job.require.get(axis) != tier
    }
    yield from split_groups(seats, topology, replace(job, require=more))


def _bad_degrees(world_size: int, job: Job) -> Iterator[str]:
    """Sentences on sizes that do not multiply to the number of ranks placed."""
    p = job.parallelism
    ranks = p.tp * p.cp * p.pp * p.dp
    if world_size != ranks:
        yield f"the plan places {world_size:,} ranks, the job has {ranks:,}"
    if ranks % (p.etp * p.ep * p.pp):
        yield (
            f"etp {p.etp} x ep {p.ep} x pp {p.pp} does not divide "
            f"the job's {ranks:,} ranks"
        )


def _other_inputs(plan: Plan, topology: Topology, job: Job) -> Iterator[str]:
    """Sentences on digests, order and sizes that are not those of the inputs given."""
    for what, stated, given in (
        ("topology", plan.topology, topology),
        ("job", plan.job, job),
    ):
        if stated.get("sha256") != given.sha256:
            yield (
                f"the plan was made for another {what}: it says "
                f"{stated.get('name')}, sha256 {stated.get('sha256')}; "
                f"given is {given.name}, sha256 {given.sha256}"
            )
    order = "-".join(job.parallelism.order)
    if plan.job.get("order", order) != order:
        yield f"the plan numbers ranks by {plan.job['order']}, the job by {order}"
    for axis, size in plan.job.get("parallelism", {}).items():
        if axis in _SIZES and size != getattr(job.parallelism, axis):
            own = getattr(job.parallelism, axis)
            yield f"the plan says {axis} {size}, the job says {axis} {own}"


def _bad_roles(plan: Plan, job: Job) -> Iterator[str]:
    """Sentences on ranks that are not of the role and instance that the plan says."""
    stated = [*zip(plan.role_of_rank, plan.instance_of_rank.tolist(), strict=False)]
    true = [
        (role.name, rank // role.job.world_size)
        for role in job.roles
        for rank in range(role.world_size)
    ]
    if len(stated) != len(true):
        yield f"the plan names roles of {len(stated):,} ranks, the job of {len(true):,}"
        return
    wrong = [rank for rank, says in enumerate(stated) if says != true[rank]]
    if wrong:
        (says, number), (name, instance) = stated[wrong[0]], true[wrong[0]]
        yield (
            f"{share(len(wrong), len(true), 'rank', 'has', 'have')} another role in "
            f"the job: the first is rank {wrong[0]} ({says} {number}, not {name} "
            f"{instance})"
        )


def _bad_nodes(plan: Plan, topology: Topology) -> Iterator[str]:
    """Sentences on nodes that are listed twice or that the topology cannot offer."""
    for name, times in Counter(plan.nodes).most_common(1):
        if times > 1:
            yield f"node {name} is listed {times} times"
    shut = [n for n in plan.nodes if n in topology.unavailable]
    if shut:
        yield (
            f"{share(len(shut), len(plan.nodes), 'node', 'is', 'are')} not to be used: "
            f"the first is {shut[0]} ({topology.unavailable[shut[0]]})"
        )
    known = {*topology.node_names, *topology.unavailable}
    strange = [n for n in plan.nodes if n not in known]
    if strange:
        yield (
            f"{share(len(strange), len(plan.nodes), 'node', 'is', 'are')} not in "
            f"the topology: the first is {strange[0]}"
        )


def _bad_domains(plan: Plan, topology: Topology) -> Iterator[str]:
    """Sentences on domains that the plan states otherwise than the topology."""
    index = {name: i for i, name in enumerate(topology.node_names)}
    tiers = {tier.name: t for t, tier in enumerate(topology.tiers)}
    for tier, stated in plan.domains.items():
        if tier not in tiers:
            yield f"the plan has domains of tier {tier}, the topology no such tier"
            continue
        names = topology.domain_names[tiers[tier]]
        row = topology.domain_of_node[tiers[tier]].tolist()
        wrong = [
            (node, domain, names[row[index[node]]])
            for node, domain in zip(plan.nodes, stated, strict=False)
            if node in index and domain != names[row[index[node]]]
        ]
        if len(stated) != len(plan.nodes):
            yield f"{len(plan.nodes)} nodes have {len(stated)} {tier} domains"
        if wrong:
            node, says, true = wrong[0]
            yield (
                f"{share(len(wrong), len(plan.nodes), 'node', 'has', 'have')} another "
                f"{tier} in the topology: the first is {node} ({says}, not {true})"
            )
