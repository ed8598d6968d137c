"""Budgets beside the tree: never exceeded, as cheap and as feasible as trying all."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from placer.base.budget import Budget
from placer.base.errors import InfeasibleError
from placer.job.rules import Rules
from placer.placement.check import violations
from tests.solve.oracle import coordinates, hop_cost, least, legal_placements, step_time
from tests.solve.random_cases import SIZES_OF, random_job, random_machine
from tests.solve.rules.rules_oracle import keeps, random_pins
from tests.solve.solving import solve

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

ROUNDING = 1e-9
CHUNK = 15
COSTS = {"time": step_time, "hop-cost": hop_cost}


def random_budget(rng: random.Random, topology: Topology, job: Job) -> Budget:
    """Some hosts wherever they lie, and a limit of any kind."""
    names = rng.sample(topology.node_names, rng.randint(1, topology.num_nodes))
    kind = rng.choice(("gpus", "replicas", "watts"))
    if kind == "replicas":
        most = rng.randint(0, job.parallelism.dp)
        return Budget(",".join(names), frozenset(names), replicas=most)
    most = rng.randint(0, job.world_size)
    if kind == "gpus":
        return Budget(",".join(names), frozenset(names), gpus=most)
    watts = most * 0.1 + rng.choice((0.0, 0.05))
    return Budget(",".join(names), frozenset(names), watts=watts, gpu_watts=0.1)


def budget_case(seed: int, objective: str, sort: str) -> tuple[Topology, Job]:
    """Machine and job number ``seed`` with one to three budgets, perhaps a pin."""
    rng = random.Random(f"budgets {seed} {objective} {sort}")
    world, most_nodes, node_sizes = rng.choice(SIZES_OF[sort])
    topology = random_machine(
        rng, world + rng.choice((0, 1, 2, 4)), most_nodes, node_sizes
    )
    job = random_job(rng, world, topology, objective)
    if sort == "runs":
        job = replace(job, launcher="node-contiguous")
    if rng.random() < 0.6:
        job = replace(job, require={})
    budgets = tuple(
        random_budget(rng, topology, job) for _ in range(rng.choice((1, 1, 2, 3)))
    )
    pins = ()
    if rng.random() < 0.2:
        pins = random_pins(rng, job.world_size, list(topology.node_names))
    rules = Rules(pin=pins, budgets=budgets)
    return replace(topology, budgets=budgets), replace(job, rules=rules)


def is_within(topology: Topology, job: Job, nodes: tuple[int, ...]) -> bool:
    """Whether rank r on ``nodes[r]`` keeps the budgets, by their words."""
    for budget in topology.budgets:
        there = [
            rank
            for rank, node in enumerate(nodes)
            if topology.node_names[node] in budget.names
        ]
        replicas = {coordinates(job.parallelism, rank)["dp"] for rank in there}
        if budget.gpus is not None and len(there) > budget.gpus:
            return False
        if budget.replicas is not None and len(replicas) > budget.replicas:
            return False
        drawn = len(there) * budget.gpu_watts
        if budget.watts is not None and drawn > budget.watts + 1e-9:
            return False
    return True


def compare(seed: int, objective: str, sort: str) -> None:
    """Solve one random case and compare with the best of all legal placements."""
    topology, job = budget_case(seed, objective, sort)
    case = f"{objective} {seed} {sort} {[str(b) for b in topology.budgets]}"
    plain = legal_placements(topology, replace(job, rules=Rules()))
    legal = [
        nodes
        for nodes in plain
        if keeps(topology, job, job.rules, nodes) and is_within(topology, job, nodes)
    ]
    if not legal:
        with pytest.raises(InfeasibleError):
            solve(topology, job, objective=objective)
        return
    best = least(topology, job, objective, legal)
    found = solve(topology, job, objective=objective)
    nodes = tuple(topology.node_of_gpu[found.placement.gpu_of_rank].tolist())
    assert violations(found.placement, topology, job) == [], case
    assert nodes in set(legal), case
    assert found.lower_bound <= best * (1 + ROUNDING), case
    assert found.value >= best * (1 - ROUNDING), case
    if found.status == "optimal":
        assert found.value == pytest.approx(best, rel=ROUNDING), case


@pytest.mark.parametrize("objective", ["time", "hop-cost"])
def test_small_jobs(objective: str) -> None:
    """A job is placed just when some placement keeps every budget, never over one."""
    for seed in range(CHUNK):
        compare(seed, objective, "small")


@pytest.mark.parametrize("seed", range(3))
def test_runs_of_ranks(seed: int) -> None:
    """So is a node-contiguous launch of 9 to 24 ranks."""
    compare(seed, "hop-cost", "runs")


@pytest.mark.slow
@pytest.mark.parametrize("sort", ["small", "runs", "large"])
@pytest.mark.parametrize("objective", ["time", "hop-cost"])
def test_many_small_jobs(objective: str, sort: str) -> None:
    """The same for more jobs."""
    for seed in range(CHUNK, 19):
        compare(seed, objective, sort)
