"""Of equal placements the one that leaves the most useful rest."""

import random
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest

import placer
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.rules import Pin, Rules
from placer.solve.problem.compiled import Problem
from placer.solve.rearrange.leftover import with_best_rest
from placer.solve.tree.domains import Rest
from tests.solve.rearrange.test_align import machine


def racks(blocks, factors=None):
    """Blocks of racks of nodes, each given by its GPUs."""
    found = machine(
        [(f"b{b}", rack) for b, block in enumerate(blocks) for rack in block]
    )
    given = np.ones(found.num_nodes) if factors is None else np.array(factors)
    return replace(found, bandwidth_factor=given)


def left(topology, gpu_of_rank):
    used = np.zeros(topology.num_nodes, dtype=bool)
    used[topology.node_of_gpu[gpu_of_rank]] = True
    return Rest(topology).left(used)


def exchanges(topology, gpu_of_rank):
    """The placement on every choice of nodes that are as far from each other."""
    node = topology.node_of_gpu[gpu_of_rank]
    local = gpu_of_rank - topology.first_gpu_of_node[node]
    used = np.unique(node)
    need = [int(local[node == n].max()) + 1 for n in used]
    rows, factor = topology.domain_of_node, topology.bandwidth_factor
    pairs = list(combinations(range(len(used)), 2))
    apart = [(rows[:, used[a]] == rows[:, used[b]]).tolist() for a, b in pairs]
    found = []
    for new in permutations(range(topology.num_nodes), len(used)):
        if any(
            topology.gpus_of_node[n] < least or factor[n] != factor[old]
            for n, least, old in zip(new, need, used, strict=True)
        ):
            continue
        if [(rows[:, new[a]] == rows[:, new[b]]).tolist() for a, b in pairs] == apart:
            becomes = dict(zip(used.tolist(), new, strict=True))
            nodes = np.array([becomes[n] for n in node.tolist()])
            found.append(topology.first_gpu_of_node[nodes] + local)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_no_equal_placement_leaves_a_better_rest(seed):
    """Against all exchanges of nodes on random machines of three tiers and more."""
    rng = random.Random(seed)
    blocks = [
        [
            [rng.choice((2, 2, 2, 1, 3)) for _ in range(rng.randint(1, 3))]
            for _ in range(rng.randint(1, 3))
        ]
        for _ in range(rng.randint(1, 3))
    ]
    topology = racks(blocks)
    if seed % 3 == 0:
        factors = [rng.choice((1.0, 0.5)) for _ in range(topology.num_nodes)]
        topology = racks(blocks, factors)
    ranks = rng.randint(1, min(4, topology.num_gpus))
    gpus = np.array(rng.sample(range(topology.num_gpus), ranks))
    job = Job("j", Parallelism(dp=ranks), weights={"dp": 1}, launcher="free")
    problem = Problem.of(topology, job)
    found = with_best_rest(problem, gpus)
    equal = exchanges(topology, gpus)
    best = max(left(topology, other) for other in equal)
    if found is None:
        assert len(np.unique(topology.node_of_gpu[gpus])) == topology.num_nodes
        return
    assert any(np.array_equal(found, other) for other in equal)
    filled = len(best) // 2  # how close what is left lies only breaks ties
    assert left(topology, found)[:filled] == best[:filled]
    assert left(topology, found) >= left(topology, gpus)
    assert problem.goal.value(found) == problem.goal.value(gpus)


def placed(topology, ranks, rules=None):
    """Hosts of a pipeline of so many ranks, which wants its neighbours near."""
    axes = Parallelism(pp=ranks)
    job = Job("j", axes, weights={"pp": 1}, launcher="free", sha256="j")
    return sorted(placer.place(topology, job, rules=rules, effort="normal").plan.nodes)


@pytest.mark.parametrize(
    ("blocks", "ranks", "nodes"),
    [
        # Three nodes go into the rack that has lost one, whole racks stay.
        ([[[1] * 4, [1] * 4, [1] * 3, [1] * 4]], 3, {8, 9, 10}),
        # Two tiers up: a rack of the block that lacks one, the whole block stays.
        ([[[1] * 4] * 3, [[1] * 4] * 2], 4, {*range(12, 20)}),
        # Two ranks take the node of three GPUs, those of four stay.
        ([[[4, 4, 3, 4]]], 2, {2}),
    ],
)
def test_what_is_broken_goes_first(blocks, ranks, nodes):
    """Nothing that is whole is broken where something else is."""
    topology = racks(blocks)
    used = {topology.node_names.index(host) for host in placed(topology, ranks)}
    assert used <= nodes
    assert len(set(topology.domain_of_node[1][[*used]].tolist())) == 1


def test_the_rest_keeps_rules():
    """A pinned rank stays, and hosts to avoid are not used for the rest's sake."""
    topology = racks([[[1] * 4, [1] * 4, [1] * 3, [1] * 4]])
    pin = Rules(pin=(Pin((0,), ("n000",)),))
    assert placed(topology, 3, pin) == ["n000", "n001", "n002"]
    avoided = placed(topology, 3, Rules(avoid=("n008",)))
    assert "n008" not in avoided
    assert len({topology.node_names.index(host) // 4 for host in avoided}) == 1
