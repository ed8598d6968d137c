"""What has to pass thin uplinks, by hand and against all placements."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.job.axes import Parallelism
from placer.job.model import Compute, DataParallel, Job, Model, Overlap
from placer.solve.bounds import certificate
from placer.solve.bounds.steps.cases import time_bound
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.compiled import Problem
from placer.topology.model import Tier
from tests.allocation.machines import racks, training
from tests.marks import slow
from tests.solve.oracle import least, legal_placements
from tests.solve.random_cases import machine_of, random_model

OUTER = 50e9
CALL = 0.13e-3  # around a dispatch, as a framework sees it
MODEL = Model("m", 8, 1024, 4096, 16, 16, 32000)
EXPERTS = replace(MODEL, experts=8, top_k=1, expert_ffn=1024, moe_layers=8)
# tp, ep, pp and dp of six ranks.
SIZES = ((1, 2, 1, 6), (1, 3, 1, 6), (1, 3, 2, 3), (1, 6, 1, 6), (2, 3, 1, 3))


def model_on(
    leaves: list[int], thin: float, axes: Parallelism, model: Model
) -> StepModel:
    """Nodes of one GPU in leaves whose uplinks are so thin; no latency, no overlap."""
    tiers = [
        Tier("node", 400e9, 0.0, True, 1.0, 1.0, 1.0),
        Tier("leaf", OUTER, 0.0, False, 1.0, 1.0, 2.0),
        Tier("cluster", OUTER, 0.0, False, thin, 1.0, 3.0),
    ]
    leaf = [number for number, size in enumerate(leaves) for _ in range(size)]
    job = Job(
        name="by hand",
        parallelism=axes,
        model=model,
        sequence=512,
        micro_batches=1,
        data_parallel=DataParallel(overlap_reduce=False, overlap_gather=False),
        overlap=Overlap(),
        compute=Compute(micro_batch_time=1e-3),
        launcher="free",
    )
    rows = [leaf, [0] * len(leaf)]
    return StepModel(machine_of([1] * len(leaf), rows, tiers), job)


def bound(model: StepModel) -> float:
    colocation = colocation_of(model.topology, model.job, 1)
    return time_bound(model, colocation).value


def gradients(model: StepModel, pace: float) -> float:
    """Seconds of a reduction and a gather of dense parameters at a pace of a ring."""
    size = model.job.parallelism.dp
    sent = model.volumes.dense_parameters(1, 1)[0, 0] * 2.0
    return float(2 * (size - 1) / size * sent * pace)


def test_trees_over_a_small_leaf() -> None:
    """An all-reduce sends each uplink one buffer at least, as NCCL may take trees."""
    six = model_on([4, 2], 16.0, Parallelism(1, 1, 1, 1, 6, 1, 1), MODEL)
    mode = replace(six.job.data_parallel, sharding="ddp")
    six = StepModel(six.topology, replace(six.job, data_parallel=mode))
    buffer = six.volumes.dense_parameters(1, 1)[0, 0] * 2.0
    assert bound(six) == pytest.approx(1e-3 + buffer * 8 / OUTER)


def test_a_ring_over_a_small_leaf() -> None:
    """Six ranks need the leaf of two, whose uplink is half a NIC: two seconds a byte.

    Four ranks fit the large leaf and leave no uplink a byte.
    """
    six = model_on([4, 2], 4.0, Parallelism(1, 1, 1, 1, 6, 1, 1), MODEL)
    four = model_on([4, 2], 4.0, Parallelism(1, 1, 1, 1, 4, 1, 1), MODEL)
    assert bound(six) == pytest.approx(1e-3 + gradients(six, 2 / OUTER))
    assert bound(four) == pytest.approx(1e-3 + gradients(four, 1 / OUTER))


def test_experts_that_no_leaf_holds() -> None:
    """Four experts over two leaves of two: four messages each over half a NIC.

    Gradients take rings, of which one hop enters a leaf.
    """
    model = model_on([2, 2], 4.0, Parallelism(1, 1, 4, 1, 4, 1, 1), EXPERTS)
    message = model.volumes.ep_buffer / 4
    all_to_all = 4 * message / (OUTER / 2) + CALL
    layers, passes = 8, 2 * 2
    rest = gradients(model, 1 / (OUTER / 2))
    assert bound(model) == pytest.approx(1e-3 + layers * passes * all_to_all + rest)
    every = legal_placements(model.topology, model.job)
    assert bound(model) == pytest.approx(
        least(model.topology, model.job, "time", every)
    )


def test_few_of_an_expert_group_lie_behind_an_uplink_that_carries_few_rings() -> None:
    """Two expert groups of four on two leaves of four whose uplinks carry one NIC.

    Whole, they bring four rings of expert gradients. Leaves with both members of each
    of these hold half of each group, and eight messages leave them.
    """
    axes = Parallelism(1, 1, 4, 1, 8, 1, 1)
    thin, even = (model_on([4, 4], over, axes, EXPERTS) for over in (4.0, 1.0))
    halves = thin.step(np.array([0, 1, 4, 5, 2, 3, 6, 7]))
    all_to_all = 8 * thin.volumes.ep_buffer / 4 / OUTER + CALL
    pipeline_s = halves.pipeline_s(tuple(halves.stage_times))
    assert pipeline_s == pytest.approx(1e-3 + 8 * 4 * all_to_all)
    exposed_s = even.step(np.array([0, 1, 4, 5, 2, 3, 6, 7])).exposed_data_parallel_s
    assert pipeline_s + exposed_s <= bound(thin) * (1 + 1e-6) <= halves.step_time_s


def test_a_leaf_has_no_room_for_a_group_and_what_rules_keep_beside_it() -> None:
    """Two leaves of four: with tp 4 kept together, all four gradient groups cross.

    By room alone two groups of two would be whole in each leaf.
    """
    tiers = [
        Tier("node", 400e9, 0.0, True, 1.0, 1.0, 1.0),
        Tier("leaf", OUTER, 0.0, False, 1.0, 1.0, 2.0),
        Tier("cluster", OUTER, 0.0, False, 8.0, 1.0, 3.0),
    ]
    plain = model_on([1] * 8, 8.0, Parallelism(4, 1, 1, 1, 2, 1, 1), MODEL)
    topology = machine_of([4, 4], [[0, 1], [0, 0]], tiers)
    job = replace(plain.job, require={"tp": "node"})
    best = least(topology, job, "time", legal_placements(topology, job))
    assert bound(StepModel(topology, job)) == pytest.approx(best)


def test_leaves_of_a_launch_by_nodes_are_full_of_groups_that_leave_them() -> None:
    """Four of five nodes of two are needed, so a leaf of two nodes is full.

    A node has one member of a group of four at the most: no leaf holds one whole, and
    four ranks are of two groups.
    """
    tiers = [
        Tier("node", 400e9, 0.0, True, 1.0, 1.0, 1.0),
        Tier("leaf", OUTER, 0.0, False, 1.0, 1.0, 2.0),
        Tier("cluster", OUTER, 0.0, False, 8.0, 1.0, 3.0),
    ]
    plain = model_on([1] * 8, 8.0, Parallelism(2, 1, 1, 1, 4, 1, 1), MODEL)
    topology = machine_of([2] * 5, [[0, 0, 1, 1, 2], [0] * 5], tiers)
    job = replace(plain.job, launcher="node-contiguous")
    best = least(topology, job, "time", legal_placements(topology, job))
    problem = Problem.of(topology, job, "time")
    assert certificate.lower_bound(problem, 0).value == pytest.approx(best)


def test_sorts_of_gradient_groups_with_the_same_ranks() -> None:
    """Dense and expert rings of tp 2, ep 2 are the same groups: each waits once.

    A node of two GPUs has two of them on an uplink of half a NIC.
    """
    tiers = [
        Tier("node", 400e9, 0.0, True, 1.0, 1.0, 1.0),
        Tier("cluster", OUTER, 0.0, False, 4.0, 1.0, 3.0),
    ]
    plain = model_on([1] * 6, 4.0, Parallelism(2, 1, 2, 1, 3, 1, 1), EXPERTS)
    topology = machine_of([2, 2, 2], [[0, 0, 0]], tiers)
    job = replace(plain.job, require={"tp": "node"})
    model = StepModel(topology, job)
    best = least(topology, job, "time", legal_placements(topology, job))
    assert bound(model) == pytest.approx(best)


def random_job(rng: random.Random, axes: Parallelism) -> Job:
    """Any model and sharding on these axes."""
    return replace(
        model_on([1] * axes.world_size, 1.0, axes, random_model(rng, axes)).job,
        data_parallel=DataParallel(
            sharding=rng.choice(("zero1", "ddp", "zero3")),
            overlap_reduce=rng.random() < 0.5,
            overlap_gather=rng.random() < 0.5,
        ),
        compute=Compute(micro_batch_time=rng.choice((1e-5, 1e-3))),
        micro_batches=axes.pp,
    )


@pytest.mark.parametrize("seed", [*range(4), *slow(range(4, 30))])
def test_no_placement_is_faster(seed: int) -> None:
    """No placement of six ranks with experts over three thin leaves beats the bound."""
    rng = random.Random(seed)
    tp, ep, pp, dp = rng.choice(SIZES)
    axes = Parallelism(tp, 1, ep, pp, dp, 1, rng.choice((1, tp)))
    gpus = [rng.choice((1, 2)) for _ in range(4)]
    gpus += [2] * (sum(gpus) < 6)
    outer = [
        Tier(name, OUTER, 5e-6, False, float(rng.choice((1, 4, 16))), 1.0, 9.0)
        for name in ("leaf", "cluster")
    ]
    tiers = [Tier("node", 400e9, 1e-6, True, 1.0, 1.0, 1.0), *outer]
    leaf = [0, 0, 1, 1, 2][: len(gpus)]
    topology = machine_of(gpus, [leaf, [0] * len(gpus)], tiers)
    if sum(gpus) < 6:
        pytest.skip("too few GPUs")
    job = random_job(rng, axes)
    best = least(topology, job, "time", legal_placements(topology, job))
    assert bound(StepModel(topology, job)) <= best * (1 + 1e-9)


@pytest.mark.parametrize("sharding", ["zero1", "zero3"])
def test_where_leaves_hold_pipelines_the_rings_of_all_stages_wait(
    sharding: str,
) -> None:
    """Pipelines of three stages, one a leaf: three rings share three quarters of a NIC.

    The first and the last stage have embeddings beside their layers.
    """
    nine = replace(MODEL, layers=9)
    plain = model_on([3, 3], 4.0, Parallelism(1, 1, 1, 3, 2, 1, 1), nine)
    mode = replace(plain.job.data_parallel, sharding=sharding)
    job = replace(plain.job, data_parallel=mode, require={"pp": "leaf"})
    best = least(plain.topology, job, "time", legal_placements(plain.topology, job))
    assert bound(StepModel(plain.topology, job)) == pytest.approx(best)


@pytest.mark.parametrize("seed", [*range(2), *slow(range(2, 24))])
def test_no_placement_with_pipelines_in_leaves_is_faster(seed: int) -> None:
    """Leaves of several nodes, one pipeline or more each: rings of one NIC or more."""
    rng = random.Random(seed)
    cp, pp, dp = rng.choice(((1, 2, 3), (1, 3, 2), (2, 2, 2), (1, 2, 4), (3, 2, 1)))
    axes = Parallelism(1, cp, 1, pp, dp, 1, 1)
    leaf = sorted([0, 1, *(rng.randrange(3) for _ in range(2))])
    gpus = [rng.choice((2, 3)) for _ in leaf]
    thin, middle = float(rng.choice((2, 4, 16))), float(rng.choice((1, 4)))
    tiers = [
        Tier("node", 400e9, 1e-6, True, 1.0, 1.0, 1.0),
        Tier("leaf", OUTER, 5e-6, False, middle, 1.0, 2.0),
        Tier("cluster", OUTER, 5e-6, False, thin, 1.0, 9.0),
    ]
    leaf = np.unique(leaf, return_inverse=True)[1].tolist()
    topology = machine_of(gpus, [leaf, [0] * len(gpus)], tiers)
    job = replace(random_job(rng, axes), require={"pp": "leaf"})
    best = least(topology, job, "time", legal_placements(topology, job))
    assert bound(StepModel(topology, job)) <= best * (1 + 1e-9)


@pytest.mark.parametrize("thin", [2, 4])
def test_rings_of_all_stages_are_as_slow_where_a_rack_may_hold_two_replicas(thin):
    """Each replica brings one member of every group, so no stage drives more NICs."""
    machine = racks(dict.fromkeys("abc", 8), oversubscription=thin)
    rules = {"tp": "node", "pp": "rack"}
    job = training(tp=4, pp=4, vp=2, dp=4, require=rules)
    problem = Problem.of(machine, job, "time")
    # Two replicas in each of two racks, the ranks of a stage a node.
    stage, replica = np.divmod(np.arange(job.world_size) // 4, 4)
    node = replica // 2 * 8 + replica % 2 * 4 + stage
    best = float(problem.goal.value(node * 4 + np.arange(job.world_size) % 4))
    bound = certificate.lower_bound(problem, problem.forced_block).value
    assert bound == pytest.approx(best)
