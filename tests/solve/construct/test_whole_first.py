"""Units whole where domains hold them, and as few others as can be in equal parts."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.solve.construct.units.whole_first import whole_first_fills
from placer.solve.problem.compiled import Problem
from placer.topology.model import Tier, Topology
from tests.solve.random_cases import machine_of

SPARSE = Model("s", 16, 2048, 4096, 32, 8, 32000, True, False, 16, 2, 0, 1024, 16)
TIERS = [
    Tier("node", 450e9, 1e-6, True, 1.0, 0.8, 1.0),
    Tier("leaf", 50e9, 5e-6, False, 1.0, 1.0, 9.0),
    Tier("cluster", 50e9, 8e-6, False, 4.0, 1.0, 11.0),
]


def machine(gpus: list[int], leaf: list[int]) -> Topology:
    """Nodes of so many GPUs below leaves."""
    return machine_of(gpus, [leaf, [0] * len(gpus)], TIERS)


def job(**sizes: int) -> Job:
    """A sparse model."""
    return Job(
        name="sparse",
        parallelism=Parallelism(**sizes, order=("tp", "cp", "ep", "dp", "pp")),
        model=SPARSE,
        sequence=4096,
        micro_batches=8,
        compute=Compute(micro_batch_time=0.05),
        launcher="free",
        weights={"tp": 4000, "ep": 64, "pp": 40, "edp": 4},
    )


def uneven_experts(seed: int) -> Problem:
    """A job whose groups do not all fit uneven hosts, behind thin uplinks or not."""
    rng = random.Random(f"walked parts {seed}")
    while True:
        gpus = [rng.choice((9, 8, 7, 6, 5)) for _ in range(rng.randint(12, 20))]
        topology = machine(gpus, sorted(rng.randrange(3) for _ in gpus))
        *inner, last = topology.tiers
        thin = replace(last, oversubscription=rng.choice((1.0, 2.0, 4.0)))
        topology = replace(topology, tiers=(*inner, thin))
        tp, pp, ep = rng.choice(((1, 2, 8), (1, 4, 8), (2, 2, 8), (1, 1, 4)))
        dp = sum(gpus) * 9 // 10 // (pp * tp) // ep * ep
        if dp:
            return Problem.of(topology, job(tp=tp, ep=ep, pp=pp, dp=dp), "time")


def parts_of(
    topology: Topology, groups: np.ndarray, gpu_of_rank: np.ndarray
) -> list[list[int]]:
    """Members of each group on each node that it touches, sorted."""
    node = topology.node_of_gpu[gpu_of_rank[groups]]
    return [sorted(np.unique(row, return_counts=True)[1].tolist()) for row in node]


# Two leaves, each of three whole nodes and two of 7 GPUs.
SEVENS = machine([8, 8, 8, 7, 7, 8, 8, 8, 7, 7], [0] * 5 + [1] * 5)
EIGHT_GROUPS = job(tp=1, ep=8, pp=4, dp=16, vp=2)


@pytest.mark.parametrize("launcher", ["free", "node-contiguous"])
def test_six_nodes_hold_six_groups_and_the_last_two_are_halved_at_one_stage(
    launcher: str,
) -> None:
    """Also where nodes of a launch hold different numbers of ranks."""
    placed = replace(EIGHT_GROUPS, launcher=launcher)
    problem = Problem.of(SEVENS, placed)
    fills = [gpu_of_rank for _, gpu_of_rank in whole_first_fills(problem)]
    best = min(fills, key=problem.goal.value)
    groups = placed.parallelism.ranks_of_group["ep"]
    parts = parts_of(SEVENS, groups, best)
    assert sorted(parts) == [[4, 4]] * 2 + [[8]] * 6
    halved = [group for group, part in zip(groups, parts, strict=True) if len(part) > 1]
    stages = {int(placed.parallelism.coordinates["pp"][group[0]]) for group in halved}
    leaves = [SEVENS.domain_of_gpu[1][best[group]] for group in halved]
    assert len(stages) == 1
    assert all(len(np.unique(row)) == 1 for row in leaves)


def test_nothing_is_parted_where_all_fit_whole() -> None:
    """Nestings know those."""
    roomy = machine([8] * 8, [0] * 4 + [1] * 4)
    assert not list(whole_first_fills(Problem.of(roomy, EIGHT_GROUPS)))


@pytest.mark.parametrize("seed", range(40))
def test_no_gpu_is_taken_twice_and_no_unit_parted_without_need(seed: int) -> None:
    """Any expert layout on any nodes: wholes as many as there can be, equal parts."""
    rng = random.Random(f"whole first {seed}")
    ep, tp = rng.choice((2, 4, 8, 16)), rng.choice((1, 2, 4))
    etp = rng.choice([size for size in (1, 2, 4) if size <= tp])
    nodes = rng.randint(6, 20)
    gpus = [rng.choice((8, 8, 8, 7, 6, 5, 4)) for _ in range(nodes)]
    topology = machine(gpus, sorted(rng.randrange(3) for _ in range(nodes)))
    pp = rng.choice((1, 2, 4))
    step = max(1, ep * etp // tp)
    dp = sum(gpus) * 9 // 10 // (tp * pp) // step * step
    if not dp:
        pytest.skip("too few GPUs")
    sparse = job(tp=tp, ep=ep, etp=etp, pp=pp, dp=dp)
    problem = Problem.of(topology, sparse)
    for name, gpu_of_rank in whole_first_fills(problem):
        assert len(np.unique(gpu_of_rank)) == sparse.world_size
        axis, cut = name.split()[1], int(name.split()[5])
        groups = sparse.parallelism.ranks_of_group[axis]
        if axis == "ep" and ep * etp < tp:
            continue
        members = groups.shape[1]
        parts = parts_of(topology, groups, gpu_of_rank)
        assert all(size * cut % members == 0 for sizes in parts for size in sizes)
        unit = ep * etp if axis == "ep" else tp
        if unit <= 8:
            whole = sum(len(sizes) == 1 for sizes in parts) * members // unit
            assert whole == sum(held // unit for held in gpus)
