"""Small jobs: the answer is the best of all placements, and the bounds hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from placer.base.errors import InfeasibleError
from placer.placement.check import violations
from placer.solve.bounds.certificate import lower_bound
from placer.solve.problem.compiled import Problem
from tests.marks import slow
from tests.solve.oracle import (
    hop_cost,
    least,
    legal_placements,
    step_time,
)
from tests.solve.random_cases import random_case
from tests.solve.solving import solve

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

ROUNDING = 1e-9
MANY = 5_000  # legal placements above which a proof by trying all may be given up
CHUNK = 10  # cases of one test: a failure names its seed
COSTS = {"time": step_time, "hop-cost": hop_cost}


def compare(topology: Topology, job: Job, objective: str, case: str) -> None:
    """Solve and compare with the best of all legal placements."""
    legal = legal_placements(topology, job)
    best = least(topology, job, objective, legal)
    if not legal:
        with pytest.raises(InfeasibleError):
            solve(topology, job, objective=objective)
        return
    found = solve(topology, job, objective=objective)
    nodes = tuple(topology.node_of_gpu[found.placement.gpu_of_rank].tolist())
    assert violations(found.placement, topology, job) == [], case
    assert nodes in set(legal), case
    assert found.value == pytest.approx(
        COSTS[objective](topology, job, nodes), rel=ROUNDING
    ), case
    assert found.value == pytest.approx(best, rel=ROUNDING), case
    assert found.lower_bound <= best * (1 + ROUNDING), case
    assert found.status == "optimal" or len(legal) > MANY, case
    problem = Problem.of(topology, job, objective)
    bound, _ = lower_bound(problem, problem.forced_block)
    assert bound <= best * (1 + ROUNDING), case


@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("first", [0, *slow(range(CHUNK, 50, CHUNK))])
def test_small_jobs(first: int, objective: str) -> None:
    """A job of 3 to 6 ranks gets the optimum, a proof of it, and no false bound."""
    for seed in range(first, first + CHUNK):
        topology, job = random_case(seed, objective)
        compare(topology, job, objective, f"{objective} {seed}")


@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("seed", [0, *slow(range(1, 5))])
def test_jobs_of_eight(seed: int, objective: str) -> None:
    """A job of 6 to 8 ranks gets the optimum too."""
    topology, job = random_case(seed, objective, "large")
    compare(topology, job, objective, f"{objective} {seed} large")


@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("seed", [0, *slow(range(1, 5))])
def test_runs_of_ranks(seed: int, objective: str) -> None:
    """A node-contiguous launch of 9 to 24 ranks gets the optimum."""
    topology, job = random_case(seed, objective, "runs")
    compare(topology, job, objective, f"{objective} {seed} runs")
