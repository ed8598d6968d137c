"""Hop cost: edges and their sum by the definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from placer.cost.hop_cost import HopCost, hop_cost
from placer.job.axes import Parallelism
from placer.job.edges import hop_edges
from placer.job.model import Job
from placer.placement.placement import Placement
from placer.topology.model import Tier, Topology


def machine(distances: tuple[float, ...] = (1.0, 3.0, 10.0)) -> Topology:
    """Eight nodes of 4 GPUs (one of 3), in racks of 2, under one cluster."""
    gpus = np.array([4, 4, 3, 4, 4, 4, 4, 4])
    nodes = np.arange(8)
    rows = np.stack([nodes, nodes // 2, np.zeros(8, np.int64)])
    return Topology(
        name="small",
        tiers=tuple(
            Tier(f"t{i}", 1e9, 1e-6, i == 0, 1.0, 1.0, d)
            for i, d in enumerate(distances)
        ),
        gpus_of_node=gpus,
        bandwidth_factor=np.ones(8),
        domain_of_node=rows,
        domain_names=tuple(tuple(str(d) for d in sorted(set(r))) for r in rows),
    )


def edges_of(job: Job) -> dict[str, set[tuple[int, int]]]:
    return {
        axis: {(min(a, b), max(a, b)) for a, b in edges.tolist()}
        for axis, _, edges in hop_edges(job)
    }


def test_ring_chain_and_single_edge() -> None:
    """Four members make a ring, two a single edge, and pipelines stay open."""
    job = Job(
        name="j",
        parallelism=Parallelism(tp=4, cp=2, pp=3),
        weights={"tp": 4, "cp": 2, "pp": 1},
    )
    edges = edges_of(job)
    assert {e for e in edges["tp"] if e[1] < 4} == {(0, 1), (1, 2), (2, 3), (0, 3)}
    assert {e for e in edges["cp"] if e[1] < 8} == {(0, 4), (1, 5), (2, 6), (3, 7)}
    assert {e for e in edges["pp"] if e[0] % 8 == 0} == {(0, 8), (8, 16)}


def test_expert_groups() -> None:
    """Experts are joined pair by pair, their replicas by a ring over ``edp``."""
    job = Job(
        name="j", parallelism=Parallelism(ep=4, dp=12), weights={"ep": 64, "edp": 4}
    )
    edges = edges_of(job)
    assert {e for e in edges["ep"] if e[1] < 4} == {
        (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3),
    }  # fmt: skip
    assert {e for e in edges["edp"] if e[0] % 4 == 1} == {(1, 5), (5, 9), (1, 9)}


def test_hand_worked_cost() -> None:
    """A ring of 4 over three nodes of two racks costs what a count by hand says."""
    job = Job(name="j", parallelism=Parallelism(tp=4), weights={"tp": 2.0})
    # GPUs 0 and 1 on node 0, 4 on node 1 (same rack), 8 on node 2 (next rack).
    placement = Placement(np.array([0, 1, 4, 8]))
    # Hops 0-1 in the node, 1-4 in the rack, 4-8 and 8-0 in the cluster.
    assert hop_cost(machine(), job, placement) == 2.0 * (1 + 3 + 10 + 10)
    counts = HopCost(machine(), job).crossings(placement.gpu_of_rank)
    assert counts["tp"].tolist() == [1, 1, 2]


JOBS = [
    Job(
        name="dense",
        parallelism=Parallelism(tp=2, cp=2, pp=3, dp=2),
        weights={"tp": 40, "cp": 7, "pp": 3, "dp": 1},
    ),
    Job(
        name="experts",
        parallelism=Parallelism(tp=2, ep=4, pp=2, dp=6),
        weights={"tp": 40, "ep": 5, "edp": 2, "dp": 1},
    ),
]


def naive_cost(topology: Topology, job: Job, gpu_of_rank: np.ndarray) -> float:
    """The definition, edge by edge, by comparing domains from the node outwards."""
    total = 0.0
    node = topology.node_of_gpu
    for _, weight, edges in hop_edges(job):
        for first, second in edges.tolist():
            one, other = node[gpu_of_rank[first]], node[gpu_of_rank[second]]
            rows = topology.domain_of_node
            tier = next(t for t, row in enumerate(rows) if row[one] == row[other])
            total += weight * topology.tiers[tier].distance
    return total


EXACT_WEIGHTS = {"tp": 40, "cp": 7, "ep": 5, "edp": 2, "pp": 3, "dp": 1}
FLOAT_WEIGHTS = {"tp": 0.1, "cp": 0.7, "ep": 1 / 3, "edp": 0.2, "pp": 3.3, "dp": 1e-3}


@pytest.mark.parametrize("exact", [True, False], ids=["integer", "float"])
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_the_cost_is_that_of_every_edge(job: Job, exact: bool) -> None:
    """Integer weights and distances give the sum over edges exactly, others to 1e-9."""
    weights = EXACT_WEIGHTS if exact else FLOAT_WEIGHTS
    job = replace(job, weights={axis: weights[axis] for axis in job.weights})
    topology = machine((1.0, 3.0, 10.0) if exact else (0.1, 1 / 3, 2.7))
    cost = HopCost(topology, job)
    rng = np.random.default_rng(7)
    for _ in range(40):
        gpu_of_rank = rng.permutation(topology.num_gpus)[: job.world_size]
        value, naive = cost.cost(gpu_of_rank), naive_cost(topology, job, gpu_of_rank)
        assert value == naive if exact else value == pytest.approx(naive, rel=1e-9)
