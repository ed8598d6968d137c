"""Peers get the right question and their answers are made to fit."""

import numpy as np
import pytest

from benchmarks.instances import Instance, build
from benchmarks.peers.problem import UNITS, problem_of, unit_size
from benchmarks.run import PEERS
from placer.cost.hop_cost import HopCost
from placer.job.axes import Parallelism
from placer.placement.placement import Placement

WEIGHTS = {"tp": 40, "cp": 8, "pp": 4, "dp": 2, "ep": 6, "edp": 2}


def machine(capacities, axes, hier=(2, 2)):
    weights = {
        a: w for a, w in WEIGHTS.items() if axes.ep > 1 or a not in ("ep", "edp")
    }
    if axes.ep > 1:
        del weights["dp"]
    sizes = np.array(capacities)
    return build("small", Instance(axes, weights, hier, (1, 5, 7), lambda: sizes))


def mapped_cost(problem, leaf_of_vertex):
    """Weight x distance beyond a leaf, edge by edge."""
    cost = 0
    for (u, v), weight in zip(
        problem.graph.edges.tolist(), problem.graph.weights.tolist(), strict=True
    ):
        a, b = leaf_of_vertex[u], leaf_of_vertex[v]
        tier = sum(row[a] != row[b] for row in problem.domain_of_leaf[:-1])
        cost += weight * int(problem.distance[tier] - problem.distance[0])
    return cost


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    "axes", [Parallelism(tp=2, cp=2, pp=2, dp=3), Parallelism(ep=4, dp=8, pp=2)]
)
def test_mapping_cost_is_the_hop_cost(axes, unit):
    """Units kept whole, the graph's cost is the hop cost beyond that inside leaves."""
    topology, job = machine([8, 8, 4, 8], axes)
    problem = problem_of(topology, job, unit)
    assert problem is not None
    slots = np.repeat(np.arange(len(problem.capacity)), problem.capacity)
    rng = np.random.default_rng(0)
    leaf_of_vertex = rng.permutation(slots)[: problem.graph.vertices]
    leaf_of_rank = np.repeat(leaf_of_vertex, problem.unit_size)
    placement = Placement.on_nodes(topology, leaf_of_rank)
    whole = job.world_size
    alone = Placement(np.arange(whole))
    inside_topology, _ = machine([whole, 4, 4, 4], axes)
    inside = HopCost(inside_topology, job).cost(alone.gpu_of_rank)
    cost = HopCost(topology, job).cost(placement.gpu_of_rank)
    assert mapped_cost(problem, leaf_of_vertex) == cost - inside


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("capacities", "hier"),
    [([8, 12, 5, 8], (2, 2)), ([24], (1, 1)), ([8, 9, 8], (1, 3))],
)
def test_answers_fit(name, unit, capacities, hier):
    """Every tool that is here puts all ranks on leaves with room, units whole."""
    peer = PEERS[name]
    if peer.version() is None:
        pytest.skip(f"{name} is not installed")
    axes = Parallelism(tp=2, cp=2, pp=2, dp=3)
    topology, job = machine(capacities, axes, hier)
    size = unit_size(job.parallelism, unit)
    for variant in peer.VARIANTS:
        found = peer.place(topology, job, unit=unit, variant=variant, seed=1)
        if found is None:  # a target that this machine has not
            continue
        load = np.bincount(found.leaf_of_rank, minlength=len(capacities))
        assert (load <= topology.gpus_of_node).all()
        assert len(found.leaf_of_rank) == job.world_size
        groups = found.leaf_of_rank.reshape(-1, size)
        assert (groups == groups[:, :1]).all()
