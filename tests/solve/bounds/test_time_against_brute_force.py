"""On fragmented, oversubscribed machines the time bound holds for all placements."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.parallel import DataParallel, EndStages, Overlap
from placer.solve.bounds.cases import time_bound
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.objective import objective_of
from placer.topology.model import Tier
from tests.marks import slow
from tests.solve.oracle import least, legal_placements
from tests.solve.random_cases import machine_of, random_model

if TYPE_CHECKING:
    from placer.topology.model import Topology

# (tp, cp, pp, dp) and GPUs of nodes: pipelines cannot all stay inside a node.
SIZES = (
    ((1, 1, 2, 3), (3, 3)),
    ((1, 1, 3, 2), (2, 2, 2)),
    ((1, 1, 3, 2), (4, 2, 1)),
    ((1, 1, 2, 4), (3, 3, 3)),
    ((1, 1, 4, 2), (3, 3, 2)),
    ((2, 1, 2, 2), (3, 3, 3)),
    ((1, 2, 2, 2), (4, 3, 2)),
    ((1, 1, 4, 2), (4, 4)),
    ((1, 1, 2, 4), (4, 4)),
)


def fragmented(seed: int) -> tuple[Topology, Job]:
    """A machine of NVLink nodes behind thin uplinks, and a job with pipelines."""
    rng = random.Random(seed)
    (tp, cp, pp, dp), gpus = rng.choice(SIZES)
    slow = rng.choice((50e9, 10e9))
    outer = [
        Tier(name, slow, latency, False, float(rng.choice((1, 2, 4, 8))), 1.0, 9.0)
        for name, latency in (("rack", 5e-6), ("cluster", 8e-6))
    ]
    tiers = [Tier("node", 400e9, 1e-6, True, 1.0, 1.0, 1.0), *outer]
    rows = [[0] * len(gpus)]
    if rng.random() < 0.5:
        rows.insert(0, [0, *range(len(gpus) - 1)])
    else:
        del tiers[1]
    vp = rng.choice((1, 2, 2))
    axes = Parallelism(tp, cp, 1, pp, dp, vp, tp)
    sharding = rng.choice(("zero1", "zero1", "ddp", "zero3", "hsdp"))
    shards = [s for s in (1, 2, 3, 4) if not dp * cp % s]
    job = Job(
        name="fragmented",
        parallelism=axes,
        model=random_model(rng, axes),
        sequence=rng.choice((512, 4096)),
        micro_batch=1,
        micro_batches=pp * rng.choice((1, 2)),
        data_parallel=DataParallel(
            sharding=sharding,
            bucket_parameters=rng.choice((10**5, 10**7)),
            overlap_reduce=rng.random() < 0.7,
            overlap_gather=rng.random() < 0.7,
            shard_size=rng.choice(shards) if sharding == "hsdp" else 0,
        ),
        overlap=Overlap(*(rng.random() < 0.5 for _ in range(4))),
        compute=Compute(micro_batch_time=rng.choice((1e-4, 1e-3)), fixed_time=0.0),
        stages=rng.choice((EndStages(), EndStages(0.5, 0))),
        require={"tp": "node", "cp": "node"} if rng.random() < 0.5 else {},
        launcher="free",
    )
    return machine_of(list(gpus), rows, tiers), job


def check(seed: int) -> None:
    """Compare the bound with the best of all legal placements."""
    topology, job = fragmented(seed)
    legal = legal_placements(topology, job)
    if not legal:
        return
    best = least(topology, job, "time", legal)
    model = objective_of(topology, job, "time").model  # type: ignore[attr-defined]
    colocation = colocation_of(topology, job, 1)
    bound = time_bound(model, colocation)
    assert bound.value <= best * (1 + 1e-9), seed


@pytest.mark.parametrize("seed", [0, *slow(range(1, 5))])
def test_no_placement_is_faster(seed: int) -> None:
    """No placement of 6 to 8 ranks beats the bound."""
    check(seed)


@pytest.mark.slow
def test_no_placement_of_many_is_faster() -> None:
    """The same for many more machines."""
    for seed in range(5, 15):
        check(seed)
