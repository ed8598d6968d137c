"""Hop cost: edges by the definition, and exact effects of changes."""

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


def test_axes_without_weight_or_members_have_no_edges() -> None:
    """Only axes with a weight and more than one member are in the graph."""
    job = Job(
        name="j",
        parallelism=Parallelism(tp=2, cp=2),
        weights={"tp": 1, "cp": 0, "pp": 3},
    )
    assert set(edges_of(job)) == {"tp"}


def test_cost_of_a_job_without_weights_is_zero() -> None:
    """A job without weights costs nothing, wherever it lies."""
    job = Job(name="j", parallelism=Parallelism(tp=4))
    assert hop_cost(machine(), job, Placement(np.array([0, 5, 9, 30]))) == 0.0


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


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
@pytest.mark.parametrize("distances", [(1.0, 3.0, 10.0), (5.0, 2.0, 7.0)])
def test_deltas_equal_full_recomputation(
    job: Job, distances: tuple[float, ...]
) -> None:
    """Every swap and move changes the full cost by exactly the delta announced."""
    topology = machine(distances)
    cost = HopCost(topology, job)
    rng = np.random.default_rng(1)
    gpus = rng.permutation(topology.num_gpus)
    gpu_of_rank, free = gpus[: job.world_size].copy(), gpus[job.world_size :].tolist()
    value = cost.cost(gpu_of_rank)
    for step in range(300):
        first, second = rng.choice(job.world_size, size=2, replace=False).tolist()
        if step % 3 == 0 and free:
            delta = cost.move_delta(gpu_of_rank, first, free[0])
            free.append(int(gpu_of_rank[first]))
            gpu_of_rank[first] = free.pop(0)
        else:
            delta = cost.swap_delta(gpu_of_rank, first, second)
            gpu_of_rank[[first, second]] = gpu_of_rank[[second, first]]
        now = cost.cost(gpu_of_rank)
        assert now == value + delta
        value = now


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


@pytest.mark.slow
@pytest.mark.parametrize("exact", [True, False], ids=["integer", "float"])
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_many_applied_swaps(job: Job, exact: bool) -> None:
    """Over 5,000 applied swaps each the running sum of deltas is the full cost.

    Integer weights and distances exactly, others to 1e-9. Some of the swaps are of
    ranks that share an edge, and of a rank with itself.
    """
    weights = EXACT_WEIGHTS if exact else FLOAT_WEIGHTS
    job = replace(job, weights={axis: weights[axis] for axis in job.weights})
    topology = machine((1.0, 3.0, 10.0) if exact else (0.1, 1 / 3, 2.7))
    cost = HopCost(topology, job)
    joined = [edge for axis in hop_edges(job) for edge in axis.edges.tolist()]
    rng = np.random.default_rng(7)
    gpu_of_rank = rng.permutation(topology.num_gpus)[: job.world_size]
    value = naive_cost(topology, job, gpu_of_rank)
    for step in range(5000):
        first, second = rng.integers(job.world_size, size=2).tolist()
        if step % 100 == 0:
            first, second = joined[step % len(joined)]
        value += cost.swap_delta(gpu_of_rank, first, second)
        gpu_of_rank[[first, second]] = gpu_of_rank[[second, first]]
        full = cost.cost(gpu_of_rank)
        assert value == full if exact else value == pytest.approx(full, rel=1e-9)
        if step % 50 == 0:
            naive = naive_cost(topology, job, gpu_of_rank)
            assert value == naive if exact else value == pytest.approx(naive, rel=1e-9)


def test_two_edges_between_two_ranks() -> None:
    """Ranks joined on two axes keep both edges when they change places."""
    job = Job("j", Parallelism(ep=2, dp=2), weights={"ep": 5, "dp": 1})
    cost = HopCost(machine(), job)
    assert cost.swap_delta(np.array([0, 8]), 0, 1) == 0.0


def test_deltas_on_a_machine_of_many_large_tiers() -> None:
    """Domains of more tiers than 64 bits can number are told apart."""
    num_nodes = 70_000
    rows = np.stack([*[np.arange(num_nodes)] * 4, np.arange(num_nodes) // 2])
    topology = Topology(
        name="deep",
        tiers=tuple(
            Tier(f"t{i}", 1e9, 0.0, i == 0, 1.0, 1.0, float(2**i)) for i in range(6)
        ),
        gpus_of_node=np.ones(num_nodes, dtype=np.int64),
        bandwidth_factor=np.ones(num_nodes),
        domain_of_node=np.concatenate([rows, np.zeros((1, num_nodes), np.int64)]),
        domain_names=(),
    )
    job = Job("j", Parallelism(tp=2, pp=2), weights={"tp": 1, "pp": 1})
    cost = HopCost(topology, job)
    gpu_of_rank = np.array([0, 1, 69_998, 4])
    after = gpu_of_rank[[0, 3, 2, 1]]
    change = cost.cost(after) - cost.cost(gpu_of_rank)
    assert cost.swap_delta(gpu_of_rank, 1, 3) == change
    assert change != 0.0
