"""Graphs divided down the tree."""

import numpy as np
import pytest

from placer.solve.construct.traffic.bisection import Range, halved
from placer.solve.construct.traffic.coarsening import Graph
from placer.solve.construct.traffic.partition import partitioned_nodes
from placer.solve.problem.flows import Flows, bundled
from placer.topology.model import Tier
from placer.topology.read import read_topology
from tests.solve.random_cases import machine_of


def communities(ranks: int, size: int, seed: int) -> Flows:
    """Cliques of ``size`` ranks, numbered at random, and a few light edges."""
    rng = np.random.default_rng(seed)
    who = rng.permutation(ranks).reshape(-1, size)
    first, second = np.triu_indices(size, k=1)
    inside = np.stack((who[:, first].ravel(), who[:, second].ravel()), axis=1)
    light = rng.integers(ranks, size=(ranks, 2))
    weight = np.concatenate((np.full(len(inside), 10.0), np.full(len(light), 0.1)))
    return bundled(np.concatenate((inside, light)), weight, ranks)


def divided(machine, flows, ranks, seed=0):
    """Node of every rank that stays with nobody."""
    label = np.tile(np.arange(ranks), (len(machine.tiers), 1))
    label[-1] = 0
    rng = np.random.default_rng(seed)
    capacity = machine.gpus_of_node
    return partitioned_nodes(machine, capacity, label, flows, rng, lambda: False)


@pytest.mark.parametrize("ranks", [64, 512])
@pytest.mark.parametrize("seed", [0, 1])
def test_communities_that_fill_nodes_are_found(ranks, seed):
    """Cliques as large as a node lie in one each, whatever the ranks' numbers."""
    machine = read_topology(f"rack:{ranks // 32} node:4 gpu:8")
    flows = communities(ranks, 8, seed)
    node = divided(machine, flows, ranks)
    heavy = flows.edges[flows.weight >= 10.0]
    assert (node[heavy[:, 0]] == node[heavy[:, 1]]).all()
    assert (np.bincount(node) == 8).all()


@pytest.mark.parametrize("seed", range(6))
def test_no_node_gets_more_than_it_holds(seed):
    """Nodes of any sizes, full or with room to spare, and any graph."""
    rng = np.random.default_rng(seed)
    machine = uneven(rng)
    ranks = int(machine.num_gpus - seed % 3)
    edges = rng.integers(ranks, size=(4 * ranks, 2))
    flows = bundled(edges, rng.exponential(1.0, len(edges)), ranks)
    node = divided(machine, flows, ranks)
    held = np.bincount(node, minlength=machine.num_nodes)
    assert (held <= machine.gpus_of_node).all()
    assert held.sum() == ranks
    assert np.array_equal(node, divided(machine, flows, ranks))


def test_groups_smaller_than_a_node_share_none_where_there_is_room():
    """Triples on nodes of four GPUs: one each, the fourth GPU is left free."""
    machine = read_topology("rack:4 node:4 gpu:4")
    flows = communities(48, 3, 0)
    node = divided(machine, flows, 48)
    heavy = flows.edges[flows.weight >= 10.0]
    assert (node[heavy[:, 0]] == node[heavy[:, 1]]).all()


@pytest.mark.parametrize("seed", range(20))
def test_halves_of_small_graphs_are_the_best(seed):
    """Compared with every division of eight vertices into four and four."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(8, size=(14, 2))
    flows = bundled(edges, rng.exponential(1.0, len(edges)), 8)
    graph = Graph(
        np.ones(8, dtype=np.int64),
        np.zeros(8, dtype=np.int64),
        np.zeros(8, dtype=bool),
        flows.edges,
        flows.weight,
    )
    four = np.array([4])
    side = halved(graph, Range(four, four), rng)

    def cut(chosen):
        apart = chosen[flows.edges[:, 0]] != chosen[flows.edges[:, 1]]
        return flows.weight[apart].sum()

    every = [np.array([n >> i & 1 for i in range(8)]) for n in range(256)]
    least = min(cut(one) for one in every if one.sum() == 4)
    assert cut(side) == pytest.approx(least)


def uneven(rng):
    """Four racks of one to six nodes of one to eight GPUs."""
    rack = np.repeat(np.arange(4), rng.integers(1, 7, 4)).tolist()
    gpus = rng.integers(1, 9, len(rack)).tolist()
    tiers = [
        Tier(name, 1e11, 1e-6, name == "node", 1.0, 1.0, 1.0)
        for name in ("node", "rack", "cluster")
    ]
    return machine_of(gpus, [rack, [0] * len(rack)], tiers)
