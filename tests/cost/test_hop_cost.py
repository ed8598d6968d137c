"""Hop cost: its sum by the definition."""

import random

import numpy as np
import pytest

from placer.cost.hop_cost import HopCost
from placer.job.model import Job
from tests.solve import oracle
from tests.solve.random_cases import random_job, random_machine


@pytest.mark.parametrize("exact", [True, False], ids=["integer", "float"])
def test_the_cost_is_that_of_every_edge(exact):
    """Random jobs: integer weights give the sum over edges exactly, others to 1e-9."""
    for seed in range(20):
        rng = random.Random(seed)
        machine = random_machine(rng, 24, 9, (2, 3, 4))
        weights = {a: rng.randint(0, 9) for a in ("tp", "cp", "pp", "dp", "ep", "edp")}
        job = random_job(rng, min(machine.num_gpus, 24), machine, "hop-cost")
        share = 1 if exact else 0.1
        job = Job(
            "j", job.parallelism, weights={a: w * share for a, w in weights.items()}
        )
        gpus = np.array(rng.sample(range(machine.num_gpus), job.world_size))
        nodes = tuple(machine.node_of_gpu[gpus].tolist())
        known = oracle.hop_cost(machine, job, nodes)
        found = HopCost(machine, job).cost(gpus)
        is_whole = exact and all(tier.distance % 1 == 0 for tier in machine.tiers)
        assert found == known if is_whole else found == pytest.approx(known, rel=1e-9)
