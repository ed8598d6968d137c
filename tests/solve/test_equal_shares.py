"""Equal shares of racks: a ring of all ranks is as fast as the least share."""

import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.score.kernel import is_built
from placer.solve.search import plain_search
from tests.allocation.machines import racks, training
from tests.solve.solving import solve

compiled = pytest.mark.skipif(not is_built(), reason="the compiled part is not built")


@pytest.mark.parametrize("seed", range(12))
def test_a_ring_is_as_fast_as_on_the_best_of_all_shares(seed):
    """Every way to share the ranks among racks of one NVLink domain, as counts.

    And the bound knows how many network cards the racks can give: it is reached.
    """
    rng = random.Random(seed)
    sizes = [rng.randint(2, 9) for _ in range(rng.randint(2, 4))]
    ranks = rng.randint(max(sizes) + 1, sum(sizes))
    topology = racks({f"r{i}": [1] * size for i, size in enumerate(sizes)}, gpus=1)
    ring = training(tp=1, dp=ranks)
    rack, model = topology.domain_of_gpu[1], StepModel(topology, ring)
    ways = (
        np.concatenate([np.flatnonzero(rack == r)[:n] for r, n in enumerate(counts)])
        for counts in product(*(range(size + 1) for size in sizes))
        if sum(counts) == ranks
    )
    best = min(float(model.step(gpus).step_time_s) for gpus in ways)
    found = plain_search(Problem.of(topology, ring), Budget(20))
    assert found.value == pytest.approx(best)
    assert found.lower_bound == pytest.approx(best)


@compiled
def test_shard_groups_share_racks_so_that_each_has_many_cards():
    """Racks of 8, 8, 4 and 4 hold two shard groups of 10 as 6 + 4 each."""
    topology = racks({f"r{i}": [1] * n for i, n in enumerate((8, 8, 4, 4))}, gpus=1)
    ring = training(tp=1, dp=20)
    mode = replace(ring.data_parallel, sharding="hsdp", shard_size=10)
    found = solve(topology, replace(ring, data_parallel=mode), objective="time")
    rack = topology.domain_of_gpu[1][found.placement.gpu_of_rank]
    for own in (rack[:10], rack[10:]):
        held = np.bincount(own)
        assert held[held > 0].min() >= 4
