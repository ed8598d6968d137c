"""Certificates of pipelines with thousands of micro-batches.

Placements of a pure pipeline differ only in which hops leave a rack, so all of them can
be timed.
"""

import random

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.job.parallel import Overlap
from placer.topology.model import Tier
from tests.marks import slow
from tests.solve.oracle import distinct, legal_placements
from tests.solve.random_cases import machine_of
from tests.solve.solving import solve

EXACT = 1e-9


def racks_of(sizes, across):
    """Racks of one-GPU nodes; a hop that leaves its rack takes ``across`` s more."""
    tiers = [
        Tier("node", 50e9, 1e-6, False, 1.0, 1.0, 1.0),
        Tier("rack", 50e9, 1e-6, False, 1.0, 1.0, 1.0),
        Tier("cluster", 50e9, 1e-6 + across, False, 1.0, 1.0, 2.0),
    ]
    rack = [r for r, size in enumerate(sizes) for _ in range(size)]
    return machine_of([1] * len(rack), [rack, [0] * len(rack)], tiers)


def long_job(pp, vp, micro_batches, seconds):
    """A pipeline whose messages hold their sender up."""
    model = Model("long", 2 * pp * vp, 8192, 28672, 64, 8, 128256)
    axes = Parallelism(1, 1, 1, pp, 1, vp, 1, ("tp", "cp", "ep", "dp", "pp"))
    return Job(
        name="long",
        parallelism=axes,
        model=model,
        sequence=8192,
        micro_batches=micro_batches,
        overlap=Overlap(tp=False, cp=True, pp=False, ep=False),
        compute=Compute(micro_batch_time=seconds),
        launcher="free",
    )


def least_time(topology, job):
    """Seconds of the fastest of all placements."""
    model = StepModel(topology, job)
    placements = distinct(topology, legal_placements(topology, job))
    return min(model.step(np.array(nodes)).step_time_s for nodes in placements)


def test_one_rack_may_not_be_the_best():
    """1,000 micro-batches over five stages, two racks that hold them all."""
    topology, job = racks_of([5, 5], 0.5e-6), long_job(5, 2, 1000, 0.2)
    found = solve(topology, job)
    model = StepModel(topology, job)
    assert found.status == "optimal"
    for stage in range(5):
        nodes = np.arange(5)
        nodes[stage] = 5
        assert model.step(nodes).step_time_s >= found.value * (1 - EXACT)


@pytest.mark.parametrize("seed", [*range(5), 35, *slow(range(5, 35))])
def test_certificates(seed):
    """Over uneven racks: what is called optimal is the least; no bound is above it."""
    rng = random.Random(seed)
    pp, vp = rng.choice([(2, 1), (3, 2), (4, 2), (4, 1)])
    sizes = [rng.randint(1, pp) for _ in range(2)] + [pp // 2]
    topology = racks_of(sizes, rng.choice([0.5e-6, 2e-6, 1e-3]))
    job = long_job(pp, vp, pp * rng.randint(50, 120), rng.uniform(0.02, 0.3))
    found, best = solve(topology, job), least_time(topology, job)
    assert found.lower_bound <= best * (1 + EXACT)
    assert found.value <= best * (1 + EXACT) or found.status == "feasible"
