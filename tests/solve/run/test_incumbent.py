"""What a search keeps of the placements offered to it."""

from __future__ import annotations

import numpy as np

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.topology.model import Tier
from tests.solve.random_cases import machine_of


def pair() -> Problem:
    """Two ranks on five nodes of two GPUs, each a tier further from the first."""
    distances = {"node": 1.0, "rack": 3.0, "block": 4.0, "pod": 5.0, "cluster": 9.0}
    tiers = [
        Tier(name, 1e9, 1e-6, name == "node", 1.0, 1.0, distance)
        for name, distance in distances.items()
    ]
    rows = [[0, 0, 1, 2, 3], [0, 0, 0, 1, 2], [0, 0, 0, 0, 1], [0] * 5]
    job = Job("pair", Parallelism(dp=2), weights={"dp": 1.0}, launcher="free")
    return Problem.of(machine_of([2] * 5, rows, tiers), job)


def test_the_elite_are_the_best_of_different_values() -> None:
    """Of many placements the four of least value stay, one a value, the best first."""
    problem = pair()
    incumbent = Incumbent(problem, Budget(60.0))
    offered = [(0, 6), (0, 2), (1, 3), (0, 8), (0, 1), (0, 4)]
    values = [problem.goal.value(np.array(gpus)) for gpus in offered]
    assert values == [5.0, 3.0, 3.0, 9.0, 1.0, 4.0]
    for gpus in offered:
        incumbent.offer("test", np.array(gpus))
    elite = [problem.goal.value(gpu_of_rank) for gpu_of_rank in incumbent.elite]
    assert elite == [1, 3, 4, 5]
    assert incumbent.value == 1
