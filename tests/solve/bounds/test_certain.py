"""What no placement can avoid: groups and slots cut, gradients far or few on a node."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Compute, DataParallel, Job
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.bounds.case import Case
from placer.solve.bounds.certificate import lower_bound
from placer.solve.bounds.gradients.gradient_runs import GradientRuns
from placer.solve.bounds.network.ideal import IdealNetwork
from placer.solve.bounds.steps.certain import certain
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.compiled import Problem
from placer.topology.model import Tier, Topology
from tests.marks import slow
from tests.solve.bounds.test_cut_runs import runs
from tests.solve.machines import MODEL
from tests.solve.random_cases import machine_of
from tests.solve.solving import solve

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


def floor(topology: Topology, given: Job) -> tuple[float, float]:
    """What is certain, and the best imaginable, of pipeline and exposed time."""
    problem = Problem.of(topology, given, "time")
    block = problem.forced_block
    label = colocation_of(topology, given, block).label
    gpus = topology.gpus_of_node
    network = IdealNetwork(problem.model.fabric, label, gpus, block == 0, block != 1)
    step = problem.model.step_on(network)
    known = certain(Case(step, network, problem.params))
    usual = step.pipeline_s(tuple(step.stage_times))
    return known.pipeline_s - usual, known.exposed_s - step.exposed_data_parallel_s


def test_the_smallest_host_that_must_be_used() -> None:
    """Two shard groups of 10 fill hosts of 8, 8, 4 and 4 as 6 + 4, not 5 + 5."""
    given = job("free", "hsdp", tp=1, dp=20)
    mode = replace(given.data_parallel, shard_size=10)
    given = replace(given, data_parallel=mode)
    topology = machine([8, 8, 4, 4], [0] * 4)
    nodes = np.repeat([0, 2, 1, 3], [6, 4, 6, 4])
    problem = Problem.of(topology, given, "time")
    best = problem.model.step(Placement.on_nodes(topology, nodes).gpu_of_rank)
    free, exposed_s = best.exposed_data_parallel_s, floor(topology, given)[1]
    assert 0.1 * free < exposed_s < free
    assert lower_bound(problem, 1).value <= best.step_time_s


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


@pytest.mark.parametrize("seed", [*range(25), *slow(range(25, 160))])
def test_runs_that_serve_are_found(seed: int) -> None:
    """Where some runs have enough of each group, it is never denied."""
    rng = random.Random(f"gradient runs {seed}")
    groups, size, grain = rng.choice((1, 2, 3)), rng.choice((2, 3, 4)), 1
    group = np.repeat(np.arange(groups), size)
    if rng.random() < 0.7:
        group = group.reshape(groups, -1).T.ravel()
    rooms = [rng.randint(1, 4) for _ in range(rng.choice((2, 3, 4)))]
    rooms[0] += max(0, len(group) - sum(rooms))
    told = GradientRuns(group, size, grain, np.array(rooms), ())
    fewest = np.array([rng.randint(1, size) for _ in range(groups)])
    serves, parts = False, False
    for node in np.array(list(runs(rooms, len(group)))):
        held = np.zeros((len(rooms), groups), dtype=np.int64)
        np.add.at(held, (node, group), 1)
        serves |= bool(((held == 0) | (held >= fewest) | (held == size)).all())
        parts |= not (held > 0).all(axis=1).any()
    assert told.may_have(fewest) or not serves
    assert told.may_part(np.arange(groups)) or not parts


def test_runs_of_six_leave_one_member_of_the_next_stage() -> None:
    """Nodes of 7 hold three pairs: of 16 ranks of a stage the third has two pairs."""
    members = np.arange(96).reshape(3, 2, 8, 2).transpose(1, 3, 0, 2).reshape(4, 24)
    group = np.empty(96, dtype=np.int64)
    group[members] = np.arange(4)[:, None]
    told = GradientRuns(group, 24, 2, np.full(16, 7), ())
    assert not told.may_have(np.full(4, 2))
    assert told.may_have(np.array([1, 1, 2, 2])) == told.may_have(
        np.array([2, 2, 1, 1])
    )
    assert told.may_have(np.ones(4, dtype=np.int64))


def test_cp_groups_are_slow_where_tp_groups_are_cut_for_them() -> None:
    """Nodes of 4 and 3 hold three of four cp groups of 4, whatever is done with tp."""
    topology = machine([4, 4, 4, 3, 3], [0] * 5)
    pipeline_s, _ = floor(topology, job("free", tp=2, cp=4, dp=2))
    assert pipeline_s > 0


def test_a_stage_that_fits_no_leaf_sends_gradients_far() -> None:
    """Three stages of 8 ranks on two leaves of 8, and on two of 4 or a third."""
    leaves = [0, 0, 1, 1, 2, 3]
    _, far_s = floor(machine([4] * 6, leaves), job("free", pp=3, dp=8))
    _, near_s = floor(machine([4] * 6, [0, 0, 1, 1, 2, 2]), job("free", pp=3, dp=8))
    assert far_s > 0
    assert near_s == 0


def test_beside_whole_cp_groups_a_node_has_one_rank_of_a_tp_group() -> None:
    """With tp 4 and cp 4 on nodes of 7 every way to cut a slot is slow."""
    topology = machine([7] * 8, [0] * 8)
    pipeline_s, _ = floor(topology, job("free", tp=4, cp=4, dp=2))
    found = solve(
        topology, job("free", tp=4, cp=4, dp=2), objective="time", time_limit=2
    )
    assert pipeline_s > 0
    assert found.lower_bound > 0.8 * found.value
