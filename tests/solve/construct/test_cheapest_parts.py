"""Expert groups in the parts with the fewest hops."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from placer.solve.bounds.certificate import lower_bound
from placer.solve.construct.experts.cheapest_parts import cheapest_fills
from placer.solve.construct.units.in_parts import in_parts_fills
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from tests.solve.construct.test_whole_first import job, machine

WEIGHTS = {"ep": 64, "edp": 4, "pp": 40}


def chosen(problem: Problem) -> list[np.ndarray]:
    incumbent = Incumbent(problem, Budget(60))
    return [gpus for _, gpus in cheapest_fills(problem, incumbent, Budget(60))]


def test_parts_that_add_up_beat_one_large_part() -> None:
    """Groups of 8 on nodes of 4 to 11 GPUs in three leaves, none of them spare."""
    rng = random.Random(2)
    gpus = [rng.choice((4, 5, 6, 7, 9, 11)) for _ in range(24)]
    topology = machine(gpus, [0] * 8 + [1] * 8 + [2] * 8)
    sparse = replace(job(tp=1, ep=8, pp=2, dp=sum(gpus) // 2), weights=WEIGHTS)
    problem = Problem.of(topology, sparse, "hop-cost")
    hops = min(map(problem.goal.value, chosen(problem)))
    large = min(problem.goal.value(gpus) for _, gpus in in_parts_fills(problem))
    assert hops < 0.99 * large
    assert hops < 1.035 * lower_bound(problem, 1).value  # 1.042 if only along the tree


@pytest.mark.parametrize("seed", range(6))
def test_every_rank_has_a_gpu(seed: int) -> None:
    """Any expert layout on any nodes: nobody lost, nobody twice."""
    rng = random.Random(f"cheapest parts {seed}")
    nodes = rng.randint(12, 20)
    gpus = [rng.choice((8, 7, 6, 5, 4)) for _ in range(nodes)]
    topology = machine(gpus, sorted(rng.randrange(3) for _ in range(nodes)))
    ep, pp = rng.choice((4, 8, 16)), rng.choice((1, 2))
    dp = sum(gpus) * 9 // 10 // pp // ep * ep
    sparse = replace(job(tp=1, ep=ep, pp=pp, dp=dp), weights=WEIGHTS)
    problem = Problem.of(topology, sparse, "hop-cost")
    found = chosen(problem)
    assert found
    for gpu_of_rank in found:
        assert len(np.unique(gpu_of_rank)) == sparse.world_size
