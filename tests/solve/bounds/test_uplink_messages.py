"""Messages of pipelines behind thin uplinks, by hand and against all placements."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from placer.cost.step import StepModel
from placer.job.axes import Parallelism
from placer.job.model import Compute, DataParallel, Overlap
from placer.solve.bounds.certificate import lower_bound
from placer.solve.problem.compiled import Problem
from tests.marks import slow
from tests.solve.bounds.test_uplink_parts import machine
from tests.solve.bounds.test_uplinks import MODEL, bound, model_on
from tests.solve.oracle import least, legal_placements

# tp, cp, pp, dp and vp of six ranks.
SIZES = (
    (1, 1, 2, 3, 1),
    (1, 1, 2, 3, 2),
    (1, 1, 3, 2, 1),
    (1, 1, 3, 2, 2),
    (1, 1, 6, 1, 2),
    (1, 3, 2, 1, 2),
    (2, 1, 3, 1, 1),
)


@pytest.mark.parametrize(("chunks", "share"), [(2, 1.0), (1, 0.6)])
def test_a_replica_or_a_stage_to_a_leaf(chunks: int, share: float) -> None:
    """Whole lanes bring both stages' gradients, a stage alone all messages.

    The bound is the best placement where the last stage sends to the first, else near.
    """
    axes = Parallelism(1, 1, 1, 2, 2, chunks, 1)
    plain = model_on([2, 2], 16.0, axes, MODEL)
    job = replace(plain.job, micro_batches=2, sequence=8192)
    model = StepModel(plain.topology, job)
    every = legal_placements(model.topology, job)
    best = least(model.topology, job, "time", every)
    assert share * best * (1 - 1e-4) <= bound(model) <= best * (1 + 1e-9)


@pytest.mark.parametrize("seed", [*range(6), *slow(range(6, 60))])
def test_no_placement_is_faster(seed: int) -> None:
    """No placement of six ranks over thin leaves beats the bound, in either launch."""
    rng = random.Random(f"uplink messages {seed}")
    tp, cp, pp, dp, vp = rng.choice(SIZES)
    axes = Parallelism(tp, cp, 1, pp, dp, vp, tp)
    by_nodes = rng.random() < 0.5
    gpus = [rng.choice((1, 2, 3)) for _ in range(4 if by_nodes else 3)]
    if sum(gpus) < 6:
        pytest.skip("too few GPUs")
    leaf = [0, *sorted(rng.randrange(1, 3) for _ in gpus[1:])]
    leaf = [sorted(set(leaf)).index(one) for one in leaf]
    topology = machine(gpus, leaf, float(rng.choice((4, 16, 64))))
    model = replace(MODEL, layers=12, heads=12, kv_heads=12, hidden=1536)
    job = replace(
        model_on([1] * 6, 1.0, axes, model).job,
        launcher="node-contiguous" if by_nodes else "free",
        data_parallel=DataParallel(
            sharding=rng.choice(("zero1", "ddp")),
            overlap_reduce=rng.random() < 0.5,
            overlap_gather=rng.random() < 0.5,
        ),
        overlap=Overlap(pp=rng.random() < 0.5),
        compute=Compute(micro_batch_time=rng.choice((1e-5, 1e-3))),
        micro_batches=pp * rng.choice((1, 2)),
    )
    every = legal_placements(topology, job)
    if not every:
        pytest.skip("no room")
    problem = Problem.of(topology, job, "time")
    least_s = lower_bound(problem, problem.forced_block).value
    assert least_s <= least(topology, job, "time", every) * (1 + 1e-9)
