"""What rules keep together is contracted: the graph is right, the bound holds."""

from __future__ import annotations

import random
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

import pytest

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.solve.bounds.hops.graphs import contracted
from placer.solve.problem.colocation import colocation_of
from tests.solve.bounds.hop_bound import cut_bound
from tests.solve.bounds.test_cut_against_brute_force import (
    machine,
    plain_edges,
    random_job,
    random_machine,
)
from tests.solve.oracle import free_placements, hop_cost
from tests.solve.solving import solve

if TYPE_CHECKING:
    from placer.solve.problem.axes import Axis
    from placer.topology.model import Topology

AXES = ("tp", "cp", "pp", "dp", "ep", "etp", "edp")


def with_rules(rng: random.Random, topology: Topology, job: Job) -> Job:
    """The job when one or two of its axes must stay in some tier."""
    axes = [axis for axis in AXES if job.parallelism.size(axis) > 1]
    chosen = rng.sample(axes, k=min(len(axes), rng.choice((1, 1, 2))))
    tiers = [tier.name for tier in topology.tiers]
    return replace(job, require={axis: rng.choice(tiers) for axis in chosen})


def edges_of(axis: Axis) -> int:
    """Edges of one line."""
    if axis.is_clique:
        return axis.size * (axis.size - 1) // 2
    return axis.size - 1 + (axis.closed and axis.size > 2)


@pytest.mark.parametrize("seed", range(80))
def test_edges_between_sets(seed: int) -> None:
    """The contracted graph has all the weight of the edges between sets, and no more.

    Cuts are multiples of its quantum.
    """
    rng = random.Random(seed)
    job = random_job(rng, most=32)
    topology = random_machine(rng, job.world_size)
    job = with_rules(rng, topology, job)
    for label in colocation_of(topology, job, 1).label[:-1]:
        graph = contracted(job, label)
        if graph is None:
            continue
        total = sum(
            axis.weight * edges_of(axis) * graph.vertices / axis.size
            for product in graph.products
            for axis in (*product.stage, product.chain, product.copies)
        )
        families = {"tp", "cp", "pp", "dp"}
        if any(p.stage[0].is_clique for p in graph.products):
            families |= {"ep", "edp"}
        between = sum(
            weight
            for axis in families & set(job.weights)
            for a, b, weight in plain_edges(replace(job, weights=one(job, axis)))
            if label[a] != label[b]
        )
        assert total == pytest.approx(between)
        assert between % float(graph.quantum) == 0


def one(job: Job, axis: str) -> dict[str, float]:
    """The weight of one axis alone."""
    return {axis: job.weights[axis]}


def test_experts_over_whole_tp_groups_are_tight() -> None:
    """Experts would fill a node with one ep group, but tp groups must stay whole.

    Nodes of 8 hold two tp groups, halves of the two ep groups of 8 that run through
    four of them: each ep group lies in two nodes and cuts 4 x 4 pairs.
    """
    axes = Parallelism(tp=4, ep=8, etp=2, dp=16)
    weights = {"tp": 4000.0, "ep": 64.0, "edp": 4.0}
    job = Job("moe", axes, launcher="free", weights=weights, require={"tp": "t0"})
    topology = machine([8] * 8, [[*range(8)], [0] * 8], [1, 9])
    bound = cut_bound(topology, job)
    found = solve(topology, job, objective="hop-cost")
    assert bound.value == found.value == found.lower_bound
    assert bound.cut_per_tier[0] >= 8 * 4 * 4 * 64
    assert cut_bound(topology, replace(job, require={})).value < found.value


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_no_placement_that_keeps_the_rules_is_cheaper(first: int) -> None:
    """The bound with rules is at most the optimum, at least that without rules."""
    for seed in range(first, first + 20):
        rng = random.Random(f"contracted {seed}")
        job = random_job(rng, most=6)
        topology = random_machine(rng, job.world_size)
        ruled = replace(with_rules(rng, topology, job), launcher="free")
        placements = free_placements(topology, ruled)
        best = min(
            (hop_cost(topology, ruled, nodes) for nodes in placements), default=inf
        )
        bound = cut_bound(topology, ruled).value
        assert bound <= best + 1e-9, seed
        assert bound >= cut_bound(topology, job).value, seed
