"""Between a placement (indices into a topology) and a plan (names that stand alone)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from placer.assumed import all_assumed, assumed_entry
from placer.base.arrays import by_appearance
from placer.base.errors import InputError, Problem, refuse
from placer.base.units import counted
from placer.job.model import Job
from placer.placement.placement import Placement
from placer.placement.plan import Plan
from placer.placement.plan_rules import rules_section
from placer.placement.score import Score
from placer.topology.model import Topology

_SIZES = ("tp", "cp", "ep", "pp", "vp", "dp", "etp")
_NOTHING: Mapping[str, Any] = {}


def build_plan(
    topology: Topology,
    job: Job,
    placement: Placement,
    *,
    score: Score | None = None,
    baselines: Mapping[str, Any] = _NOTHING,
    bound: Mapping[str, Any] = _NOTHING,
    advice: Mapping[str, Any] = _NOTHING,
    inputs: Mapping[str, Any] = _NOTHING,
    solver: Mapping[str, Any] = _NOTHING,
) -> Plan:
    """The plan that names where ``placement`` puts the ranks of ``job``.

    Nodes come in the order of their lowest rank. The domains of a node are named at
    every tier between the node and the whole cluster.
    """
    node = topology.node_of_gpu[placement.gpu_of_rank]
    nodes, node_of_rank = by_appearance(node)
    names = topology.node_names
    instances = (np.repeat(range(r.instances), r.job.world_size) for r in job.roles)
    return Plan(
        topology=topology_section(topology),
        job=job_section(job),
        nodes=tuple(names[n] for n in nodes),
        domains={
            topology.tiers[t].name: tuple(
                topology.domain_names[t][d] for d in topology.domain_of_node[t, nodes]
            )
            for t in range(1, len(topology.tiers) - 1)
        },
        node_of_rank=node_of_rank,
        gpu_of_rank=topology.index_of_gpu[placement.gpu_of_rank],
        score=score or Score(),
        baselines=baselines,
        bound=bound,
        advice=advice,
        inputs=inputs,
        solver=solver,
        rules=rules_section(job.rules, topology, placement),
        role_of_rank=tuple(r.name for r in job.roles for _ in range(r.world_size)),
        instance_of_rank=np.concatenate([np.zeros(0, dtype=np.int64), *instances]),
        **assumed_entry(all_assumed(topology, job)),
    )


def placement_of_plan(plan: Plan, topology: Topology) -> Placement:
    """The placement on ``topology`` that ``plan`` describes by names."""
    if len(plan.node_of_rank) != len(plan.gpu_of_rank):
        raise InputError("not one for each rank", key="gpu_of_rank")
    index = {name: i for i, name in enumerate(topology.node_names)}
    refuse(
        Problem(why_missing(name, topology), key=f"nodes[{i}]")
        for i, name in enumerate(plan.nodes)
        if name not in index
    )
    unlisted = (plan.node_of_rank < 0) | (plan.node_of_rank >= len(plan.nodes))
    refuse(
        Problem(
            f"outside the list of {len(plan.nodes)} nodes", key=f"node_of_rank[{r}]"
        )
        for r in np.flatnonzero(unlisted)[:1]
    )
    node = np.array([index[name] for name in plan.nodes], dtype=np.int64)
    node_of_rank = node[plan.node_of_rank]
    outside = np.flatnonzero(plan.gpu_of_rank >= topology.gpus_of_node[node_of_rank])
    if outside.size:
        rank = outside[0]
        count = topology.gpus_of_node[node_of_rank[rank]]
        host = plan.host_of_rank[rank]
        index = plan.gpu_of_rank[rank]
        message = f"{host} has {counted(count, 'GPU')}, none with index {index}"
        raise InputError(message, key=f"gpu_of_rank[{rank}]")
    return Placement(topology.gpu_at(node_of_rank, plan.gpu_of_rank))


def topology_section(topology: Topology) -> dict[str, Any]:
    """What a plan repeats of its machine, tiers inside the node among it."""
    machine = topology.by_island
    return {
        "name": topology.name,
        "sha256": topology.sha256,
        "tiers": [tier.name for tier in machine.tiers],
        "scale_up": machine.scale_up_tier + 1,
    }


def job_section(job: Job) -> dict[str, Any]:
    """What a plan repeats of its job."""
    chosen = {"auto_order": True} if job.parallelism.auto_order else {}
    return {
        "name": job.name,
        "sha256": job.sha256,
        "order": "-".join(job.parallelism.order),
        **chosen,
        "parallelism": {axis: job.parallelism.size(axis) for axis in _SIZES},
        "launcher": job.launcher,
    }


def why_missing(node: str, topology: Topology) -> str:
    """What is said of a node that the topology does not offer."""
    if node in topology.unavailable:
        return f"{node} must not be used: {topology.unavailable[node]}"
    return f"topology {topology.name} has no node {node}"
