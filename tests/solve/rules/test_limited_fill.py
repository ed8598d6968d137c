"""Replicas laid along uneven racks, no rack taking more than it may."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.compiled import Problem
from placer.solve.rules.limited_fill import limited_fills
from tests.solve.random_cases import machine_of, random_tiers
from tests.solve.solving import with_colocation


def replicas_by_rack(
    racks: list[int], nodes: list[int], size: int
) -> dict[int, set[int]]:
    held: dict[int, set[int]] = defaultdict(set)
    for rank, node in enumerate(nodes):
        held[racks[node]].add(rank // size)
    return held


@pytest.mark.parametrize("seed", range(40))
def test_keeps_the_limit(seed: int) -> None:
    """Each placement has every rank once and no rack with too many replicas."""
    rng = random.Random(seed)
    sizes = [rng.randint(1, 9) for _ in range(rng.randint(2, 12))]
    racks = [rack for rack, size in enumerate(sizes) for _ in range(size)]
    topology = machine_of(
        [2] * len(racks), [racks, [0] * len(racks)], random_tiers(rng, 3)
    )
    stages, limit = rng.randint(1, 6), rng.randint(1, 3)
    dp = max(1, len(racks) * 2 // 3 // stages)
    axes = Parallelism(tp=2, pp=stages, dp=dp, order=("tp", "cp", "ep", "pp", "dp"))
    job = Job(
        "job",
        axes,
        weights={"tp": 1.0},
        launcher=rng.choice(("free", "node-contiguous")),
    )
    colocation = colocation_of(topology, job, 1 if job.launcher == "free" else 2)
    problem = with_colocation(Problem.of(topology, job), colocation)
    for _, gpus in limited_fills(problem, ((1, limit),)):
        assert len(set(gpus.tolist())) == axes.world_size
        nodes = topology.node_of_gpu[gpus].tolist()
        held = replicas_by_rack(racks, nodes, 2 * stages)
        assert max(map(len, held.values())) <= limit


def test_pairs_small_racks() -> None:
    """Racks of 3, 1, 3 and 2 nodes hold three replicas of 3 nodes, a rack for one each.

    In tree order the second would take the rack of 1 and then 2 of the next 3.
    """
    racks = [0, 0, 0, 1, 2, 2, 2, 3, 3]
    topology = machine_of([2] * 9, [racks, [0] * 9], random_tiers(random.Random(0), 3))
    axes = Parallelism(tp=2, pp=3, dp=3, order=("tp", "cp", "ep", "pp", "dp"))
    job = Job("job", axes, weights={"tp": 1.0})
    problem = with_colocation(
        Problem.of(topology, job), colocation_of(topology, job, 2)
    )
    found = list(limited_fills(problem, ((1, 1),)))
    assert found
    for _, gpus in found:
        nodes = topology.node_of_gpu[gpus].tolist()
        held = replicas_by_rack(racks, nodes, 6)
        assert sorted(map(len, held.values())) == [1, 1, 1, 1]
