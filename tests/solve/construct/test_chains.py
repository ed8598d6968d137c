"""Stitched placements of every shape: legal, and cheapest on tiny machines."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from placer.cost.hop_cost import HopCost
from placer.errors import InfeasibleError
from placer.job.axes import Parallelism
from placer.job.model import Compute, DataParallel, Job
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.construct.chains.chains import stitched_chains
from placer.solve.construct.chains.shapes import shapes
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.topology.model import Tier
from tests.marks import slow
from tests.solve.machines import MODEL, fragmented, matching_job
from tests.solve.random_cases import machine_of
from tests.solve.solving import solve

if TYPE_CHECKING:
    from placer.topology.model import Topology

LIMIT = 20.0  # s, far above what these need
SHORT = 0.2  # s: a search finds some placement, however short its time


def uneven(gpus: list[int], rack_of: list[int], block_of_rack: list[int]) -> Topology:
    """Nodes in racks in blocks; a hop costs 1, 10, 14 and 17."""
    tiers = [
        Tier(name, 900e9 / distance, 1e-6, name == "node", 1.0, 1.0, distance)
        for name, distance in zip(
            ("node", "rack", "block", "cluster"), (1.0, 10.0, 14.0, 17.0), strict=True
        )
    ]
    blocks = [block_of_rack[rack] for rack in rack_of]
    return machine_of(gpus, [rack_of, blocks, [0] * len(gpus)], tiers)


def stitched(topology: Topology, job: Job, seed: int = 0) -> list[Placement]:
    """Everything that stitching finds."""
    problem = Problem.of(topology, job, seed=seed)
    if not problem.choices:
        return []
    chains = stitched_chains(problem, Budget(LIMIT))
    return [Placement(gpu_of_rank) for _, gpu_of_rank, _ in chains]


def least_cost(topology: Topology, job: Job, axis: str) -> float:
    """Least hop cost if groups of ``axis`` stay in a node, by trying all ways."""
    units = job.parallelism.ranks_of_group[axis]
    hops = HopCost(topology, job)
    best = np.inf
    for nodes in product(range(topology.num_nodes), repeat=len(units)):
        used = np.bincount(nodes, minlength=topology.num_nodes) * units.shape[1]
        if (used <= topology.gpus_of_node).all():
            node_of_rank = np.empty(job.world_size, dtype=np.int64)
            node_of_rank[units] = np.array(nodes)[:, None]
            placement = Placement.on_nodes(topology, node_of_rank)
            best = min(best, hops.cost(placement.gpu_of_rank))
    return best


# Unit, chain: axes, and weights that make the unit the heaviest, then the chain.
SHAPES = {
    "dp ring of tp": ("tp", Parallelism(tp=2, dp=4), {"tp": 2060, "dp": 760}),
    "dp ring of tp, lanes": (
        "tp",
        Parallelism(tp=2, dp=3, pp=2),
        {"tp": 2060, "pp": 11, "dp": 760},
    ),
    "cp ring of tp": ("tp", Parallelism(tp=2, cp=3, dp=2), {"tp": 4000, "cp": 400}),
    "pp chain of tp": ("tp", Parallelism(tp=2, pp=3, dp=2), {"tp": 400, "pp": 40}),
    "pp chain of ep": (
        "ep",
        Parallelism(ep=2, dp=4, pp=3),
        {"ep": 64, "edp": 0, "pp": 40},
    ),
    "edp ring of ep": (
        "ep",
        Parallelism(ep=2, dp=6, pp=2),
        {"ep": 640, "edp": 40, "pp": 4},
    ),
}


@pytest.mark.parametrize("seed", [0, *slow(range(1, 5))])
@pytest.mark.parametrize("name", SHAPES)
def test_as_cheap_as_can_be(name: str, seed: int) -> None:
    """On three or four uneven leaves the best stitched placement is the cheapest."""
    rng = random.Random(f"{name} {seed}")
    axis, axes, weights = SHAPES[name]
    leaves = rng.choice((3, 4))
    gpus = [rng.choice((2, 4, 5, 6, 8)) for _ in range(leaves)]
    while sum(count // 2 for count in gpus) < axes.world_size // 2:
        gpus[rng.randrange(leaves)] += 2
    racks = sorted(rng.randrange(2) for _ in gpus)
    racks = [rack - racks[0] for rack in racks]
    topology = uneven(gpus, racks, [0] * (max(racks) + 1))
    job = Job(
        name,
        axes,
        weights=weights,
        require={axis: "node"},
        launcher="free",
    )
    least = least_cost(topology, job, axis)
    hops = HopCost(topology, job)
    costs = [hops.cost(found.gpu_of_rank) for found in stitched(topology, job)]
    # Machines of equal leaves that hold whole chains are left to nestings.
    assert costs == [] or min(costs) == pytest.approx(least)


@pytest.mark.parametrize("objective", ["hop-cost", "time"])
@pytest.mark.parametrize("seed", [*range(5), *slow(range(5, 15))])
def test_obeys_the_rules(seed: int, objective: str) -> None:
    """Every stitched placement of a random job passes the independent checker."""
    rng = random.Random(f"{seed} {objective}")
    topology = fragmented(rng)
    job = matching_job(rng, topology, objective)
    if job.launcher == "free":
        for placement in stitched(topology, job, seed):
            assert violations(placement, topology, job) == []


def replicas_that_fit(topology: Topology, job: Job) -> int:
    """Replicas by counting tp groups in nodes, stages in racks, then pipelines."""
    axes = job.parallelism
    stages: dict[int, int] = {}
    groups: dict[int, int] = {}
    block_of: dict[int, int] = {}
    for node, gpus in enumerate(topology.gpus_of_node.tolist()):
        rack, block = topology.domain_of_node[1:3, node].tolist()
        groups[rack] = groups.get(rack, 0) + gpus // axes.tp
        block_of[rack] = block
    for rack, held in groups.items():
        block = block_of[rack]
        stages[block] = stages.get(block, 0) + held // axes.cp
    return sum(held // axes.pp for held in stages.values())


def levels(seed: int) -> tuple[Topology, Job]:
    """Uneven nodes, racks and blocks; tp in a node, cp in a rack, pp in a block."""
    rng = random.Random(seed)
    racks = rng.randint(4, 8)
    rack_of = [rack for rack in range(racks) for _ in range(rng.randint(1, 5))]
    gpus = [rng.choice((4, 6, 7, 8)) for _ in rack_of]
    blocks = sorted(rng.randrange(3) for _ in range(racks))
    first = sorted(set(blocks))
    topology = uneven(gpus, rack_of, [first.index(block) for block in blocks])
    job = Job(
        "levels",
        Parallelism(tp=rng.choice((2, 4)), cp=2, pp=rng.choice((2, 3, 4))),
        weights={"tp": 4000, "cp": 400, "pp": 40, "dp": 4},
        require={"tp": "node", "cp": "rack", "pp": "block"},
        launcher="free",
    )
    most = replicas_that_fit(topology, job)
    wanted = max(1, most + rng.choice((-1, 0, 0, 1)))
    return topology, replace(job, parallelism=replace(job.parallelism, dp=wanted))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_several_levels(seed: int) -> None:
    """With rules on three tiers a job is placed when counting says it fits."""
    topology, job = levels(seed)
    if replicas_that_fit(topology, job) < job.parallelism.dp:
        with pytest.raises(InfeasibleError):
            solve(topology, job, time_limit=SHORT)
        return
    found = solve(topology, job, time_limit=SHORT)
    assert violations(found.placement, topology, job) == []
    for placement in stitched(topology, job):
        assert violations(placement, topology, job) == []


def test_pipelines_stitched_inside_blocks() -> None:
    """By hand: pipelines of 4 in blocks with racks of 3 and 3, and of 2 and 4.

    Each block holds 6 stages, so one pipeline, and none may join what two blocks have
    left.
    """
    topology = uneven([6, 6, 4, 8], [0, 1, 2, 3], [0, 0, 1, 1])
    job = Job(
        "blocks",
        Parallelism(tp=2, pp=4, dp=2),
        weights={"tp": 400, "pp": 40},
        require={"tp": "node", "pp": "block"},
        launcher="free",
    )
    found = stitched(topology, job)
    assert found
    blocks = topology.domain_of_gpu[2][found[0].gpu_of_rank]
    groups = blocks[job.parallelism.ranks_of_group["pp"]]
    assert (groups == groups[:, :1]).all()
    with pytest.raises(InfeasibleError):
        solve(topology, replace(job, parallelism=replace(job.parallelism, dp=3)))


def test_shard_groups_stay_together() -> None:
    """Racks of 13, 8 and 22 GPUs take one, one and two shard groups of eight whole."""
    topology = uneven([1] * 43, [0] * 13 + [1] * 8 + [2] * 22, [0, 0, 0])
    job = Job(
        "hsdp",
        Parallelism(tp=1, dp=32),
        model=MODEL,
        sequence=4096,
        micro_batches=2,
        compute=Compute(micro_batch_time=0.05),
        data_parallel=DataParallel(sharding="hsdp", shard_size=8),
        launcher="free",
    )
    names = [shape.name for shape in shapes(Problem.of(topology, job))]
    assert "across chains of shard" in names
    racks = [
        topology.domain_of_gpu[1][placement.gpu_of_rank].reshape(4, 8)
        for placement in stitched(topology, job)
    ]
    assert any((rack == rack[:, :1]).all() for rack in racks)
