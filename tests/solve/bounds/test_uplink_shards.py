"""All-reduces and shard groups behind thin uplinks: no placement is below the bound."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.cost.trees import parent_in_tree
from placer.job.axes import Parallelism
from placer.job.model import Collectives, Compute, DataParallel, Job, Model, Overlap
from placer.solve.bounds.gradients.uplink_trees import fewest_cuts
from placer.solve.bounds.steps.cases import time_bound
from placer.solve.problem.colocation import colocation_of
from placer.topology.model import Tier
from tests.marks import slow
from tests.solve.random_cases import machine_of

MODEL = Model("m", 2, 1024, 4096, 16, 16, 32000)


def model_on(
    racks: list[list[int]], thin: float, axes: Parallelism, mode: DataParallel
) -> StepModel:
    """Nodes of so many GPUs in racks whose uplinks are so thin."""
    tiers = [
        Tier("node", 200e9, 1e-6, True, 1.0, 1.0, 1.0),
        Tier("rack", 20e9, 5e-6, False, 1.0, 1.0, 2.0),
        Tier("cluster", 20e9, 8e-6, False, thin, 1.0, 3.0),
    ]
    rack = [number for number, nodes in enumerate(racks) for _ in nodes]
    job = Job(
        name="by hand",
        parallelism=axes,
        model=MODEL,
        sequence=512,
        micro_batches=axes.pp,
        data_parallel=mode,
        overlap=Overlap(),
        compute=Compute(micro_batch_time=1e-4),
        launcher="free",
    )
    gpus = [gpus for nodes in racks for gpus in nodes]
    return StepModel(machine_of(gpus, [rack, [0] * len(rack)], tiers), job)


def bound(model: StepModel) -> float:
    return time_bound(model, colocation_of(model.topology, model.job, 1)).value


@pytest.mark.parametrize(("count", "most"), [*product(range(2, 11), (1, 2, 3, 4))])
def test_a_tree_is_cut_as_seldom_as_can_be(count: int, most: int) -> None:
    """Every set of edges of a small tree, tried."""
    parents = parent_in_tree(np.arange(count), np.full(count, count)).tolist()

    def fits(cut: tuple[bool, ...]) -> bool:
        piece = list(range(count))
        for _ in range(count):
            for vertex in range(1, count):
                if not cut[vertex - 1]:
                    low = min(piece[vertex], piece[parents[vertex]])
                    piece[vertex] = piece[parents[vertex]] = low
        return max(piece.count(one) for one in piece) <= most

    every = product((False, True), repeat=count - 1)
    assert fewest_cuts(count, most) == min(sum(cut) for cut in every if fits(cut))


@pytest.mark.parametrize(
    "mode",
    [
        DataParallel(sharding="ddp"),
        DataParallel(sharding="hsdp", shard_size=4),
        DataParallel(sharding="hsdp", shard_size=2),
    ],
    ids=["ddp", "hsdp 4", "hsdp 2"],
)
def test_ranks_in_order_on_four_racks(mode: DataParallel) -> None:
    """The bound is within 3 % of 64 ranks in order on racks of 16 behind 16:1 uplinks.

    With less known of trees, or of groups of equal shards, it is 50 % below or more.
    """
    axes = Parallelism(1, 1, 1, 1, 64, 1, 1)
    model = model_on([[4] * 4] * 4, 16.0, axes, mode)
    in_order = model.step(np.arange(64)).step_time_s
    assert 0.97 * in_order <= bound(model) <= in_order * (1 + 1e-9)


def test_shards_of_tp_groups_on_four_racks() -> None:
    """Four grids lie alike, as each node has a rank of each: no rack holds one."""
    axes = Parallelism(4, 1, 1, 1, 16, 1, 1)
    mode = DataParallel(sharding="hsdp", shard_size=4)
    model = model_on([[4] * 4] * 4, 16.0, axes, mode)
    model = StepModel(model.topology, replace(model.job, require={"tp": "node"}))
    in_order = model.step(np.arange(64)).step_time_s
    assert 0.97 * in_order <= bound(model) <= in_order * (1 + 1e-9)


def test_shards_of_tp_and_cp_groups_on_four_racks() -> None:
    """The same where each node has two ranks of a shard group, in two ranks of cp."""
    axes = Parallelism(2, 2, 1, 1, 16, 1, 2)
    mode = DataParallel(sharding="hsdp", shard_size=8)
    model = model_on([[4] * 4] * 4, 16.0, axes, mode)
    require = {"tp": "node", "cp": "node"}
    model = StepModel(model.topology, replace(model.job, require=require))
    in_order = model.step(np.arange(64)).step_time_s
    assert 0.97 * in_order <= bound(model) <= in_order * (1 + 1e-9)


@pytest.mark.parametrize("seed", [*range(8), *slow(range(8, 45))])
def test_no_placement_is_faster(seed: int) -> None:
    """Random racks, jobs and placements, better and better ones."""
    rng = random.Random(f"uplink shards {seed}")
    size = rng.choice((1, 2, 4))
    racks = [
        [
            rng.choice((size, size, rng.randint(1, size)))
            for _ in range(rng.choice((2, 3, 4)))
        ]
        for _ in range(rng.choice((2, 3, 4)))
    ]
    gpus = sum(map(sum, racks))
    tp, pp = rng.choice((1, 1, 2)), rng.choice((1, 1, 2))
    dp = rng.randint(1, max(gpus // (tp * pp), 1))
    mode = rng.choice(
        [
            DataParallel(sharding="ddp"),
            *(
                DataParallel(sharding="hsdp", shard_size=shards)
                for shards in range(1, dp + 1)
                if dp % shards == 0
            ),
        ]
    )
    axes = Parallelism(tp, 1, 1, pp, dp, 1, tp)
    if axes.world_size > gpus:
        pytest.skip("no room")
    model = model_on(racks, rng.choice((2.0, 4.0, 16.0)), axes, mode)
    name = rng.choice(("auto", "auto", "tree", "ring"))
    job = replace(model.job, collectives=Collectives(all_reduce=name))
    model = StepModel(model.topology, job)
    least = bound(model)
    best, at = np.inf, np.arange(gpus)
    for _ in range(60):
        changed = at.copy()
        one, other = rng.randrange(gpus), rng.randrange(gpus)
        changed[[one, other]] = changed[[other, one]]
        seconds = model.step(changed[: axes.world_size]).step_time_s
        assert least <= seconds * (1 + 1e-9), seed
        if seconds <= best:
            best, at = seconds, changed
