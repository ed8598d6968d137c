"""Pipelines cut alike on a small fragmented machine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.job.parallel import DataParallel
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.construct.stages.cut_alike import cut_placements
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.topology.model import Tier, Topology
from tests.solve.random_cases import machine_of
from tests.solve.solving import solve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placer.solve.run.incumbent import Candidate


def machine(gpus: list[int]) -> Topology:
    """NVLink nodes in blocks of four, a thin network between them."""
    tiers = [
        Tier("node", 400e9, 1e-6, True, 1.0, 1.0, 1.0),
        Tier("block", 20e9, 5e-6, False, 1.0, 1.0, 9.0),
        Tier("cluster", 20e9, 8e-6, False, 2.0, 1.0, 9.0),
    ]
    blocks = [i // 4 for i in range(len(gpus))]
    return machine_of(gpus, [blocks, [0] * len(gpus)], tiers)


def job(replicas: int) -> Job:
    """Four stages of two ranks with two chunks, gradients seen."""
    return Job(
        name="cut alike",
        parallelism=Parallelism(2, 1, 1, 4, replicas, 2, 2),
        model=Model("m", 16, 4096, 16384, 32, 8, 32000),
        sequence=4096,
        micro_batches=8,
        data_parallel=DataParallel(bucket_parameters=10**7),
        compute=Compute(micro_batch_time=0.05),
        require={"tp": "node"},
        launcher="free",
    )


def made(
    topology: Topology, wanted: Job, known: float = np.inf, seconds: float = 60.0
) -> Iterator[Candidate]:
    """What is made in the time to beat a known step time."""
    problem = Problem.of(topology, wanted, "time")
    return cut_placements(problem, known, Budget(seconds))


# Nodes of 8 hold a pipeline, those of 6 three stages of one.
UNEVEN = [8, 6, 6, 8, 6, 8, 6, 8, 8, 6, 6, 8]


@pytest.mark.slow
def test_beats_pipelines_that_stay_whole() -> None:
    """With gradients in sight it is faster to cut all pipelines than a few."""
    topology, wanted = machine(UNEVEN), job(10)
    model = StepModel(topology, wanted)
    found = list(made(topology, wanted))
    assert found
    values = [model.step(gpus).step_time_s for _, gpus in found]
    for _, gpus in found:
        assert violations(Placement(gpus), topology, wanted) == []
    solution = solve(topology, wanted, objective="time")
    assert solution.value <= min(values) * (1 + 1e-9)
    assert solution.lower_bound <= solution.value
    assert "pipelines cut alike" in solution.method


def test_same_again() -> None:
    """Two runs give the same placements."""
    topology, wanted = machine(UNEVEN), job(10)
    runs = [[gpus.tolist() for _, gpus in made(topology, wanted)] for _ in range(2)]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_no_time_left(seconds: float) -> None:
    """Nothing is made when the time is up."""
    topology, wanted = machine(UNEVEN), job(10)
    assert not list(made(topology, wanted, seconds=seconds))


@pytest.mark.slow
def test_only_better_than_known() -> None:
    """Nothing is made when no compromise promises less than what is known."""
    topology, wanted = machine(UNEVEN), job(10)
    known = solve(topology, wanted, objective="time").lower_bound
    assert not list(made(topology, wanted, known))


def test_not_for_pipelines_that_must_stay() -> None:
    """Nothing is made where a requirement keeps pipelines in a node."""
    topology = machine(UNEVEN)
    wanted = replace(job(5), require={"pp": "node"})
    assert not list(made(topology, wanted))


def test_context_ranks_apart_fill_what_whole_stages_leave() -> None:
    """Nodes of six hold one stage of two context ranks, or three ranks' worth.

    Twelve stages of three replicas do not fit ten nodes whole. Ranks of a replica are
    cut alike, so that none waits for the cuts of the other.
    """
    topology, alone = machine([6] * 10), job(3)
    axes = Parallelism(2, 2, 1, 4, 3, 2, 2)
    wanted = replace(alone, parallelism=axes)
    found = list(made(topology, wanted))
    assert found
    node_of_gpu = topology.node_of_gpu
    for _, gpus in found:
        assert violations(Placement(gpus), topology, wanted) == []
        node = node_of_gpu[np.asarray(gpus)][axes.ranks_of_group["pp"]]
        cuts = node != np.roll(node, -1, axis=1)
        of_replica = axes.coordinates["dp"][axes.ranks_of_group["pp"][:, 0]]
        for replica in range(3):
            assert len(np.unique(cuts[of_replica == replica], axis=0)) == 1
