"""What thin uplinks make certain: bounds stay below, and are those by hand."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.parallel import DataParallel
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.bounds.case import Case
from placer.solve.bounds.certificate import lower_bound
from placer.solve.bounds.uplinks import least_time
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.compiled import Problem
from placer.topology.model import Tier, Topology
from tests.marks import slow
from tests.solve.machines import MODEL
from tests.solve.random_cases import machine_of

TIERS = [
    Tier("node", 450e9, 1e-6, True, 1.0, 0.8, 1.0),
    Tier("leaf", 50e9, 5e-6, False, 1.0, 1.0, 9.0),
    Tier("cluster", 25e9, 8e-6, False, 1.0, 1.0, 18.0),
]
SHAPES = ((2, 2, 1, 1), (1, 2, 2, 2), (2, 1, 2, 2), (1, 1, 2, 3), (1, 2, 1, 3))
WIDE = replace(MODEL, layers=4)


def machine(gpus: list[int], leaf: list[int]) -> Topology:
    return machine_of(gpus, [leaf, [0] * len(gpus)], TIERS)


def job(launcher: str, sharding: str = "zero3", **axes: int) -> Job:
    return Job(
        "j",
        Parallelism(**axes),
        WIDE,
        4096,
        micro_batches=axes.get("pp", 1),
        data_parallel=DataParallel(sharding=sharding),
        compute=Compute(micro_batch_time=0.002),
        launcher=launcher,
    )


def runs(rooms: Sequence[int], ranks: int) -> Iterator[tuple[int, ...]]:
    """Node of every rank for each order of nodes and every length of their runs."""
    if ranks == 0:
        yield ()
        return
    for node, room in enumerate(rooms):
        rest = [0 if other == node else r for other, r in enumerate(rooms)]
        for length in range(1, min(room, ranks) + 1):
            for others in runs(rest, ranks - length):
                yield (node,) * length + others


@pytest.mark.parametrize("seed", [*range(25), *slow(range(25, 100))])
def test_no_placement_is_faster(seed: int) -> None:
    """All orders of nodes and lengths of runs, or 200 placements of a free launch."""
    rng = random.Random(f"certain {seed}")
    tp, cp, pp, dp = rng.choice(SHAPES)
    world = tp * cp * pp * dp
    gpus, leaf = [], []
    while sum(gpus) < world:
        gpus.append(rng.randint(1, 4))
        leaf.append(rng.randint(0, 1))
    gpus.append(rng.randint(1, 2))
    leaf.append(0)
    topology = machine(gpus, leaf)
    launcher = rng.choice(("free", "node-contiguous"))
    given = job(launcher, rng.choice(("zero1", "zero3")), tp=tp, cp=cp, pp=pp, dp=dp)
    if rng.random() < 0.3:
        given = replace(given, require={"cp": "leaf"})
    problem = Problem.of(topology, given, "time")
    bound = lower_bound(problem, problem.forced_block).value
    placed = list(runs(gpus, world))
    if launcher == "free":
        mixed = np.repeat(np.arange(len(gpus)), gpus)
        placed = [tuple(rng.sample(mixed.tolist(), world)) for _ in range(200)]
    for node in rng.sample(placed, min(len(placed), 60)):
        placement = Placement.on_nodes(topology, np.array(node))
        if not violations(placement, topology, given):
            value = problem.goal.value(placement.gpu_of_rank)
            assert bound <= value * (1 + 1e-9)


def test_the_part_of_a_group_on_the_thinnest_uplink_is_waited_for() -> None:
    """Leaves of 24, 16 and 8 GPUs, all in use, hold one, one and half a group of 16."""
    gpus, leaf = [8] * 6, [0, 0, 0, 1, 1, 2]
    thin = [*TIERS[:2], replace(TIERS[2], oversubscription=8.0)]
    topology = machine_of(gpus, [leaf, [0] * 6], thin)
    given = job("free", dp=48)
    colocation = colocation_of(topology, given, 1)
    case = Case.of(Problem.of(topology, given, "time").model, colocation)
    groups, here = np.arange(48).reshape(3, 16), np.arange(17.0)
    seconds = least_time(case, 2, groups, here * (16 - here))
    assert seconds == pytest.approx(8 * 8 / (8 * 25e9 / 8.0))
