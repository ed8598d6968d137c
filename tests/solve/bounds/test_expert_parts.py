"""The time bound counts parts of expert groups: no placement of tiny jobs is faster."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Compute, ExpertParallel, Job
from placer.job.parallel import DataParallel, EndStages, Overlap
from placer.solve.bounds.certificate import lower_bound
from placer.solve.bounds.expert_parts import units_of
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.compiled import Problem
from placer.topology.model import Tier, Topology
from tests.solve.construct.test_whole_groups import job, machine
from tests.solve.oracle import distinct, gpus_of, legal_placements, step_time
from tests.solve.random_cases import machine_of, random_model

# (tp, cp, ep, pp, dp, vp, etp) and GPUs of the domains: few hold whole groups.
SIZES = (
    ((1, 1, 4, 1, 8, 1, 1), (3, 3, 2)),
    ((1, 1, 4, 1, 8, 1, 1), (5, 4)),
    ((1, 1, 3, 2, 3, 1, 1), (4, 2, 1)),
    ((1, 1, 3, 2, 3, 2, 1), (2, 2, 2)),
    ((1, 1, 4, 2, 4, 2, 1), (5, 3)),
    ((1, 1, 6, 1, 6, 1, 1), (4, 3)),
    ((1, 1, 2, 4, 2, 2, 1), (3, 3, 2)),
    ((1, 1, 2, 2, 2, 1, 1), (3, 1, 1)),
    ((2, 1, 4, 1, 4, 1, 1), (5, 3)),
    ((2, 1, 2, 1, 4, 1, 2), (6, 2)),
    ((2, 1, 2, 2, 2, 1, 2), (6, 3)),
    ((1, 2, 4, 1, 4, 1, 1), (3, 3, 3)),
)


def drawn(seed: int) -> tuple[Topology, Job]:
    """A machine of NVLink domains and a job with experts."""
    rng = random.Random(f"expert parts {seed}")
    sizes, gpus = rng.choice(SIZES)
    order = rng.choice((("tp", "cp", "ep", "dp", "pp"), ("tp", "cp", "ep", "pp", "dp")))
    axes = Parallelism(
        *sizes, order if sizes[3] == 1 else ("tp", "cp", "ep", "dp", "pp")
    )
    across = rng.choice((1e-6, 5e-6, 2e-4))
    outer = [
        Tier(name, rng.choice((50e9, 10e9)), across, False, thin, 1.0, 9.0)
        for name in ("leaf", "cluster")
        for thin in [float(rng.choice((1, 1, 2, 4)))]
    ]
    rows = [[0, *range(len(gpus) - 1)], [0] * len(gpus)]
    tiers = [Tier("node", 400e9, 1e-6, True, 1.0, 1.0, 1.0), *outer]
    ends = rng.choice((EndStages(), EndStages(1, 1), EndStages(0.5, 0)))
    made = Job(
        name="experts",
        parallelism=axes,
        model=random_model(rng, axes),
        sequence=rng.choice((512, 4096)),
        micro_batch=1,
        micro_batches=axes.pp * rng.choice((1, 2, 4)),
        data_parallel=DataParallel(
            sharding=rng.choice(("zero1", "ddp")),
            bucket_parameters=rng.choice((10**5, 10**7)),
        ),
        overlap=Overlap(*(rng.random() < 0.3 for _ in range(4))),
        compute=Compute(micro_batch_time=rng.choice((1e-5, 1e-4, 1e-3))),
        stages=ends if axes.pp * axes.vp > 1 else EndStages(),
        expert_parallel=ExpertParallel(1.0, rng.choice(("flat", "deduplicated"))),
        require={"tp": "node"} if axes.tp > 1 and rng.random() < 0.7 else {},
        launcher=rng.choice(("free", "free", "node-contiguous")),
    )
    return machine_of(list(gpus), rows, tiers), made


def check(seed: int) -> bool:
    """Compare the bounds with all placements; whether parts made a bound better."""
    topology, made = drawn(seed)
    legal = distinct(topology, legal_placements(topology, made))
    problem = Problem.of(topology, made, "time")
    if not legal:
        return False
    values = [problem.goal.value(np.array(gpus_of(topology, one))) for one in legal]
    best = legal[int(np.argmin(values))]
    least = step_time(topology, made, best)
    assert least == pytest.approx(min(values), rel=1e-9)
    for block in {1, problem.forced_block}:
        bound, argument = lower_bound(problem, block)
        assert bound <= least * (1 + 1e-9), (seed, block, argument)
    without = lower_bound(problem.with_params(expert_rounds=0), 1).value
    return lower_bound(problem, 1).value > without * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 7, 10, 13])
def test_no_placement_is_faster(seed: int) -> None:
    """No placement of a tiny job with experts beats the bound, which parts raise."""
    assert check(seed)


@pytest.mark.slow
def test_no_placement_of_many_is_faster() -> None:
    """The same for many more machines."""
    for seed in range(10, 17):
        check(seed)


def test_a_group_too_large_for_its_room_is_as_slow_as_its_least_part() -> None:
    """Two groups of 4 on hosts of 3, 3 and 2: one has a part of a single rank."""
    topology = machine([3, 3, 2], [0, 0, 0])
    sparse = replace(job(tp=1, ep=4, pp=1, dp=8), compute=Compute(1e-6))
    problem = Problem.of(topology, sparse)
    legal = distinct(topology, legal_placements(topology, problem.job))
    steps = [problem.goal.value(np.array(gpus_of(topology, one))) for one in legal]
    bound = lower_bound(problem, 1).value
    assert bound == pytest.approx(min(steps), rel=0.05)
    without = lower_bound(problem.with_params(expert_rounds=0), 1).value
    assert without < 0.9 * bound


@pytest.mark.parametrize(
    ("tp", "require", "pieces"), [(1, {}, (8, 1, 1)), (2, {"tp": "node"}, (8, 2, 1))]
)
def test_pieces_are_what_must_stay_together(
    tp: int, require: dict[str, str], pieces: tuple[int, int, int]
) -> None:
    """Of tp groups of two, each has a member of both expert groups that share it."""
    made = replace(job(tp=tp, ep=8, pp=2, dp=16, etp=tp), require=require)
    topology = machine([8] * 8, [0] * 8)
    colocation = colocation_of(topology, made, 1)
    found = units_of(made, colocation.label[0])
    assert found is not None
    assert (found.pieces, found.ranks, found.members) == pieces
