"""Pipette's cases: their optima, published or counted, and small ones tried in full."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.placement.check import violations
from tests.conformance.pipette import FAR, NEAR, pipelines, racks, ring
from tests.marks import slow
from tests.solve.solving import solve

NS = 1e-9


def cost(topology, job, gpu_of_rank):
    """The cost as Pipette states it, from the rack of every rank."""
    axes = job.parallelism
    rack = topology.domain_of_gpu[1][gpu_of_rank].reshape(axes.dp, axes.pp).tolist()
    worst = max(sum(hop(a, b) for a, b in pairwise(row)) for row in rack)
    first = [row[0] for row in rack]
    slowest = max(hop(first[i - 1], first[i]) for i in range(axes.dp))
    return worst + ring(axes.dp, slowest) + ring(axes.dp, NEAR)


def hop(one, other):
    """Cost of a hop between two racks."""
    return NEAR if one == other else FAR


# Racks, pipelines, their stages, and the optimum, as published.
PUBLISHED = [
    ([4, 4], 2, 4, 244_444_444),
    ([4] * 4, 4, 4, 349_999_999),
    ([8] * 4, 4, 8, 394_444_443),
]
# Ours: a node down, racks that differ, other grids of pipelines and stages. In all but
# the first pipelines that all cross once, from one rack, beat whole ones: by counting
# which numbers of crossings find room.
VARIED = [([12, 12], 2, 12, 11 * NEAR + ring(2, FAR) + ring(2, NEAR))] + [
    (sizes, count, stages, (stages - 2) * NEAR + FAR + 2 * ring(count, NEAR))
    for sizes, count, stages in (
        ([5, 3], 2, 4),
        ([8, 8, 8, 7], 4, 7),
        ([8, 8, 8, 8], 4, 7),
        ([8, 8], 4, 4),
        ([9, 8], 4, 4),
        ([5, 5, 5], 2, 6),
        ([7, 6, 5, 4], 3, 7),
        ([8, 6, 4, 4], 3, 7),
        ([9, 9, 9, 8], 4, 8),
    )
]
SOON = [(*PUBLISHED[0], 0), (*VARIED[1], 1)]
ALL = [(*row, seed) for row in PUBLISHED + VARIED for seed in range(2)]


@pytest.mark.parametrize("case", [*SOON, *slow(ALL)])
def test_the_optimum_is_found(case):
    """Whatever the order of the nodes the plan costs the optimum; no bound is above."""
    sizes, count, stages, best, seed = case
    topology, job = racks(sizes, seed), pipelines(count, stages)
    found = solve(topology, job)
    assert violations(found.placement, topology, job) == []
    assert cost(topology, job, found.placement.gpu_of_rank) == best
    assert found.lower_bound <= found.value * (1 + 1e-9)
    assert found.value == pytest.approx(best * NS, rel=1e-6)


@pytest.mark.parametrize(
    ("sizes", "count", "stages"), [([4] * 4, 4, 4), ([8, 5, 8, 6], 3, 7)]
)
def test_a_step_takes_what_pipette_says(sizes, count, stages):
    """The predicted step is Pipette's cost for any placement, its rounding apart."""
    topology, job = racks(sizes), pipelines(count, stages)
    model = StepModel(topology, job)
    rng = np.random.default_rng(0)
    for _ in range(50):
        gpus = rng.permutation(topology.num_gpus)[: job.world_size]
        excess = model.step(gpus).step_time_s / NS - cost(topology, job, gpus)
        assert -1e-3 < excess < 1.0


@pytest.mark.parametrize(("sizes", "count", "stages"), [([3, 2], 2, 2), ([3, 3], 2, 3)])
def test_tiny_cases_by_hand(sizes, count, stages):
    """The optimum is the least cost over all permutations."""
    topology, job = racks(sizes), pipelines(count, stages)
    best = min(
        cost(topology, job, np.array(gpus))
        for gpus in permutations(range(topology.num_gpus), job.world_size)
    )
    found = solve(topology, job)
    assert cost(topology, job, found.placement.gpu_of_rank) == best
    assert found.status == "optimal"
