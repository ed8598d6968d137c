"""The time bound counts that a node holds one run of consecutive ranks."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from placer.base.errors import InputError
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.solve.bounds.certificate import lower_bound
from placer.solve.bounds.network.fewest import most_in_runs
from placer.solve.problem.compiled import Problem
from placer.topology.model import Tier, Topology
from tests.solve.machines import MODEL
from tests.solve.oracle import consecutive_placements, least
from tests.solve.random_cases import machine_of, random_job, random_machine
from tests.solve.solving import solve

SIZES = ((4, 4, (1, 2, 3)), (6, 4, (1, 2, 3, 4)), (6, 5, (2,)), (9, 3, (4, 6)))


@pytest.mark.parametrize("seed", range(20))
def test_most_in_a_run(seed: int) -> None:
    """The most members among consecutive ranks, compared with looking at all runs."""
    rng = random.Random(seed)
    world = rng.randint(2, 24)
    ranks = rng.sample(range(world), world // 2 * 2)
    rows = np.array(ranks).reshape(2, -1)
    found = most_in_runs(rows, np.arange(world + 1)).tolist()
    assert found == [
        max(
            sum(first <= rank < first + length for rank in row)
            for row in rows.tolist()
            for first in range(world)
        )
        for length in range(world + 1)
    ]


def spare_nodes(nodes: tuple[int, ...]) -> tuple[Topology, Job]:
    """A tp group of 8 needs two nodes of four; a few GPUs are spare."""
    tiers = [
        Tier("node", 400e9, 1e-6, True, 1.0, 1.0, 1.0),
        Tier("cluster", 50e9, 8e-6, False, 1.0, 1.0, 9.0),
    ]
    axes = Parallelism(tp=8, pp=2, dp=2)
    job = Job(
        "runs",
        axes,
        model=MODEL,
        micro_batches=4,
        compute=Compute(micro_batch_time=0.05),
    )
    return machine_of(list(nodes), [[0] * len(nodes)], tiers), job


@pytest.mark.parametrize("nodes", [(4,) * 9, (4,) * 8 + (3, 1)])
def test_spare_gpus_leave_the_bound_tight(nodes: tuple[int, ...]) -> None:
    """Without spares or with: no pp or dp neighbour shares a node, and the bound knows.

    A free launch could put them together: the bound of every launch stays below.
    """
    topology, job = spare_nodes(nodes)
    found = solve(topology, job, objective="time")
    problem = Problem.of(topology, job, "time")
    assert problem.forced_block == 0
    assert found.status == "optimal"
    assert lower_bound(problem, 1)[0] < found.value * 0.999


@pytest.mark.parametrize("launcher", ["free", "node-contiguous"])
def test_a_ring_that_no_node_holds_waits_for_a_nic(launcher: str) -> None:
    """Keys and values of eight ranks on nodes of four pass a NIC: the bound knows."""
    topology, job = spare_nodes((4,) * 9)
    axes = Parallelism(cp=8, pp=2, dp=2)
    found = solve(topology, replace(job, parallelism=axes, launcher=launcher))
    assert found.status == "optimal"


def check(seed: int) -> None:
    """Compare the bound with the best of all placements in runs of any length."""
    rng = random.Random(f"runs {seed}")
    world, most, sizes = rng.choice(SIZES)
    topology = random_machine(rng, world, most, sizes)
    job = random_job(rng, world, topology, "time")
    job = replace(job, launcher="node-contiguous")
    try:
        problem = Problem.of(topology, job, "time")
    except InputError:
        return
    best = least(topology, job, "time", list(consecutive_placements(topology, job)))
    bound = lower_bound(problem, problem.forced_block)[0]
    assert bound <= best * (1 + 1e-9), seed
    assert bound >= lower_bound(problem, 1)[0] * (1 - 1e-12), seed


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_no_placement_in_runs_is_faster(first: int) -> None:
    """No node-contiguous placement, however uneven its loads, beats the bound."""
    for seed in range(first, first + 10):
        check(seed)


def test_hosts_of_one_scale_up_domain() -> None:
    """All groups lie in it, so none has few members in some domain."""
    check(48)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20, 70, 10))
def test_no_placement_in_runs_of_many_is_faster(first: int) -> None:
    """The same for many more machines."""
    for seed in range(first, first + 10):
        check(seed)
