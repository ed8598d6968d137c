"""Equal shares of domains: the ring of all ranks is as fast as the least share."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.solve.construct.fills.levelled import _shares, level, levelled_fills
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.search import plain_search
from tests.allocation.machines import racks, training


@pytest.mark.parametrize(
    ("room", "units", "share"),
    [
        ([15, 15], 25, [12, 13]),
        ([15, 13], 23, [11, 12]),
        ([6, 6, 6], 13, [4, 4, 5]),
        ([2, 9], 9, [2, 7]),
        ([3, 3], 6, [3, 3]),
    ],
)
def test_the_least_share_is_as_large_as_can_be(room, units, share):
    assert sorted(level(np.array(room), units).tolist()) == share


@pytest.mark.parametrize("seed", range(12))
def test_a_ring_is_as_fast_as_on_the_best_of_all_shares(seed):
    """Every way to share the ranks among racks of one NVLink domain, as counts.

    And the bound knows how many network cards the racks can give: it is reached.
    """
    rng = random.Random(seed)
    sizes = [rng.randint(2, 9) for _ in range(rng.randint(2, 4))]
    ranks = rng.randint(max(sizes) + 1, sum(sizes))
    machine = racks({f"r{i}": [1] * size for i, size in enumerate(sizes)}, gpus=1)
    job = training(tp=1, dp=ranks)
    rack, model = machine.domain_of_gpu[1], StepModel(machine, job)
    ways = (
        np.concatenate([np.flatnonzero(rack == r)[:n] for r, n in enumerate(counts)])
        for counts in product(*(range(size + 1) for size in sizes))
        if sum(counts) == ranks
    )
    best = min(float(model.step(gpus).step_time_s) for gpus in ways)
    found = plain_search(Problem.of(machine, job), Budget(20))
    assert found.value == pytest.approx(best)
    assert found.lower_bound == pytest.approx(best)


@pytest.mark.parametrize(
    ("room", "units", "least"),
    [
        ([8, 8, 4, 4], 10, 4),
        ([7, 7, 7, 6, 6, 6, 6, 5, 5, 4, 4, 4], 32, 4),
        ([9, 1, 1, 9], 10, 1),
        ([5, 5], 5, 5),
    ],
)
def test_shard_groups_have_as_many_in_each_domain_as_can_be(room, units, least):
    (shares,) = _shares(np.array(room), 2 * units, 2)
    assert (shares.sum(axis=1) == units).all()
    assert (shares.sum(axis=0) <= room).all()
    assert shares[shares > 0].min() == least


def test_shard_groups_take_one_domain_after_another():
    """Racks of 8, 8, 4 and 4 hold two shard groups of 10 as 6 + 4 each."""
    machine = racks({f"r{i}": [1] * n for i, n in enumerate((8, 8, 4, 4))}, gpus=1)
    job = training(tp=1, dp=20)
    mode = replace(job.data_parallel, sharding="hsdp", shard_size=10)
    problem = Problem.of(machine, replace(job, data_parallel=mode))
    rack = machine.domain_of_gpu[1]
    held = {
        tuple(sorted(np.bincount(rack[gpus[:10]]).tolist()))
        for _, gpus in levelled_fills(problem)
    }
    assert (4, 6) in {tuple(n for n in counts if n) for counts in held}
