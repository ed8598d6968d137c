"""The first bucket of gathered parameters, which a bound must not take at its least."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.job.axes import REPLICA_MAJOR_ORDER, Parallelism
from placer.job.model import Compute, Job, Model
from placer.solve.bounds.first_bucket import with_best_bucket
from placer.topology.model import Tier, Topology
from tests.solve.random_cases import machine_of
from tests.solve.solving import solve

STAGES = 3


def leaves() -> Topology:
    """Three leaves of four nodes of eight GPUs, listed anyhow."""
    tiers = [
        Tier("node", 450e9, 1e-6, True, 1.0, 1.0, 1.0),
        Tier("leaf", 50e9, 4e-6, False, 1.0, 1.0, 9.0),
        Tier("spine", 50e9, 8e-6, False, 1.0, 1.0, 10.0),
    ]
    leaf = [0, 1, 1, 1, 2, 2, 0, 2, 2, 0, 1, 0]
    return machine_of([8] * len(leaf), [leaf, [0] * len(leaf)], tiers)


def job(**sizes: int) -> Job:
    """A model of 24 layers with nothing to hide the gather of its first chunk."""
    return Job(
        "case",
        Parallelism(etp=sizes["tp"], order=REPLICA_MAJOR_ORDER, **sizes),
        model=Model("m", 24, 8192, 22016, 64, 8, 32000),
        sequence=8192,
        micro_batches=sizes["pp"] * 2,
        compute=Compute(micro_batch_time=0.05),
        launcher="free",
    )


@pytest.mark.parametrize("seed", range(20))
def test_no_bucket_exposes_less(seed: int) -> None:
    """Of all longer buckets, each with what it costs the reduction, none is better."""
    rng = np.random.default_rng(seed)
    machine, case = leaves(), job(tp=1, pp=STAGES, dp=4)
    model = StepModel(machine, case)
    step = model.step(np.arange(case.parallelism.world_size))
    assert step.sync is not None
    window = model.windows.backward_s
    sync = replace(
        step.sync,
        gather=rng.uniform(0, 4 * window, (STAGES, 1)),
        reduce=rng.uniform(0, 4 * window, (STAGES, 1)),
        first_bucket=rng.uniform(0, window),
    )
    given = replace(step, sync=sync)
    kink = float(rng.choice([0.0, rng.uniform(0, window), np.inf]))

    def exposed(longer: float) -> float:
        reduce = sync.reduce.copy()
        reduce[0, 0] += max(0.0, longer - kink)
        bucket = sync.first_bucket + longer
        changed = replace(sync, reduce=reduce, first_bucket=bucket)
        return replace(given, sync=changed).exposed_data_parallel_s

    least = min(exposed(longer) for longer in np.linspace(0, 4 * window, 2001))
    found = with_best_bucket(given, kink).exposed_data_parallel_s
    assert found <= least * (1 + 1e-12)
    assert found == pytest.approx(least, abs=4 * window / 2000)


def test_a_slower_bucket_may_shorten_the_step() -> None:
    """The search finds the placement that undercut a bound with the least bucket."""
    found = solve(leaves(), job(tp=2, pp=4, dp=12))
    assert found.lower_bound <= found.value
