"""Local search on the hop cost."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from placer.cost.hop_cost import HopCost
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.baselines import baseline
from placer.solve.annealing.annealed_step import annealed_step
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.compiled import Problem
from placer.solve.problem.rules import obeys
from placer.solve.run.budget import Budget
from placer.solve.score.kernel import is_built
from placer.topology.model import Tier, Topology
from tests.marks import slow
from tests.solve.random_cases import machine_of
from tests.solve.solving import known

if TYPE_CHECKING:
    from placer.solve.run.incumbent import Incumbent

pytestmark = pytest.mark.skipif(not is_built(), reason="the compiled part is not built")
PIPELINES_FIRST = ("tp", "cp", "ep", "pp", "dp")


def _machine(gpus: list[int], rows: list[list[int]], distances: list[int]) -> Topology:
    names = ("node", "rack", "block", "cluster")[: len(distances)]
    tiers = [
        Tier(name, 1e9, 1e-6, t == 0, 1.0, 1.0, float(distance))
        for t, (name, distance) in enumerate(zip(names, distances, strict=True))
    ]
    return machine_of(gpus, [*rows, [0] * len(gpus)], tiers)


def _job(
    launcher: str = "free", require: dict[str, str] | None = None, **axes: Any
) -> Job:
    weights = {"tp": 50.0, "cp": 20.0, "pp": 5.0, "dp": 9.0}
    return Job(
        "job",
        Parallelism(**axes),
        launcher=launcher,
        weights=weights,
        require=require or {},
    )


def _problem(topology: Topology, job: Job, seed: int = 0) -> Problem:
    return Problem.of(topology, job, "hop-cost", seed)


def _start(topology: Topology, job: Job) -> np.ndarray:
    return baseline("given-order", topology, job, 0).gpu_of_rank


def _shuffled(topology: Topology, job: Job) -> np.ndarray:
    """A legal placement, the worst of some in random domains."""
    start, rng = _start(topology, job), np.random.default_rng(0)
    sets = colocation_of(topology, job, 1 if job.launcher == "free" else 4).label[-2]
    rows = np.argsort(sets, kind="stable").reshape(int(sets.max()) + 1, -1)
    hops = HopCost(topology, job)
    found = [start]
    for _ in range(500):
        placed = np.empty_like(start)
        placed[rows] = start[rows[rng.permutation(len(rows))]]
        if obeys(topology, job, placed):
            found.append(placed)
    return max(found, key=hops.cost)


CASES = {
    "racks": (
        _machine([4, 3, 4, 2, 4, 4], [[0, 0, 1, 1, 2, 2]], [1, 5, 8]),
        _job(tp=1, pp=2, dp=9),
    ),
    "blocks of ranks": (
        _machine([4, 4, 4, 4, 4, 4], [[0, 0, 0, 1, 1, 1]], [1, 5, 8]),
        _job("node-contiguous", tp=2, pp=2, dp=5),
    ),
    "parts in nodes": (
        _machine([4] * 8, [[0, 0, 0, 1, 1, 1, 2, 2]], [1, 1, 8]),
        _job(require={"tp": "node", "cp": "rack"}, tp=2, cp=2, dp=7),
    ),
    "parts beyond domains": (
        _machine([2, 4, 4, 4, 4, 2], [[0, 0, 0, 1, 1, 1]], [1, 5, 8]),
        _job(require={"pp": "rack"}, order=PIPELINES_FIRST, tp=1, pp=2, dp=9),
    ),
    "a unit a node": (
        _machine([2] * 9, [[0, 0, 0, 0, 1, 1, 1, 2, 2]], [1, 5, 8]),
        _job(tp=2, pp=2, dp=4),
    ),
}


def _annealed(topology: Topology, job: Job, start: np.ndarray) -> Incumbent:
    problem = _problem(topology, job)
    incumbent = known(problem, start)
    annealed_step(problem, incumbent, Budget(60.0))
    return incumbent


@pytest.mark.parametrize("name", CASES)
def test_what_is_found_is_legal_and_better(name: str) -> None:
    """Requirements and launchers hold, each GPU is used once, and the cost falls."""
    topology, job = CASES[name]
    start = _shuffled(topology, job)
    incumbent = _annealed(topology, job, start)
    found = incumbent.best
    assert obeys(topology, job, found)
    assert len(np.unique(found)) == job.world_size
    hops = HopCost(topology, job)
    assert incumbent.value == hops.cost(found) < hops.cost(start)


@pytest.mark.parametrize("seed", [0, 1, *slow(range(2, 12))])
def test_small_uneven_machines_are_solved(seed: int) -> None:
    """On machines small enough to try all homes, the least cost is found."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, 4)
    sizes[0] += max(0, 8 - int(sizes.sum()))
    topology = _machine(sizes.tolist(), [[0, 0, 1, 1]], [1, 5, 7])
    job = _job(pp=2, dp=4)
    found = _annealed(topology, job, _shuffled(topology, job))
    assert found.value == _least(topology, job)


def _least(topology: Topology, job: Job) -> float:
    """Least hop cost over all homes of all ranks, by plain loops."""
    distance = [tier.distance for tier in topology.tiers]
    domains = topology.domain_of_node
    room = topology.gpus_of_node.tolist()
    tier = [
        [int((domains[:, a] != domains[:, b]).sum()) for b in range(4)]
        for a in range(4)
    ]
    edges = [
        (int(a), int(b), axis.weight)
        for axis in HopCost(topology, job).axes
        for a, b in axis.edges
    ]
    return min(
        sum(weight * distance[tier[home[a]][home[b]]] for a, b, weight in edges)
        for home in product(range(4), repeat=job.world_size)
        if all(home.count(node) <= room[node] for node in range(4))
    )
