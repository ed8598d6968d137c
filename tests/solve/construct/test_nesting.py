"""Digits of the rank number, and the nestings made of them."""

import random
from itertools import product

import numpy as np
import pytest

from placer.cost.hop_cost import HopCost
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.placement import Placement
from placer.solve.construct.nesting import nestings, sequence_of
from placer.solve.problem.axes import digits_of
from placer.solve.problem.compiled import Problem
from placer.solve.tree.fill import fill
from placer.topology.model import Tier
from tests.solve.random_cases import machine_of, random_axes


def regular(fanouts, distances):
    """A machine of equal domains: GPUs a node, nodes a rack, ..."""
    gpus, *outer = fanouts
    nodes = int(np.prod(outer))
    rows, size = [], 1
    for fanout in outer:
        size *= fanout
        rows.append([node // size for node in range(nodes)])
    tiers = [
        Tier(f"t{t}", 1e9 / (t + 1), 1e-6, t == 0, 1.0, 1.0, float(d))
        for t, d in enumerate(distances)
    ]
    return machine_of([gpus] * nodes, rows, tiers)


def cost_by_boxes(topology, job, sequence):
    """Hop cost when GPU g gets the g-th rank of the sequence."""
    gpu_of_rank = np.empty(job.world_size, dtype=np.int64)
    gpu_of_rank[sequence] = np.arange(job.world_size)
    return HopCost(topology, job).cost(gpu_of_rank)


@pytest.mark.parametrize("seed", range(20))
def test_best_nesting_is_the_cheapest_of_all_boxes(seed):
    """No order of split axes fills a regular machine of two tiers at a smaller cost."""
    rng = random.Random(seed)
    topology = regular([rng.choice((2, 4, 6)), rng.choice((2, 3, 4))], [1, 5])
    weights = {axis: float(rng.choice((1, 3, 20))) for axis in ("tp", "cp", "pp", "dp")}
    axes = random_axes(rng, topology.num_gpus)
    axes = Parallelism(axes.tp, axes.cp, 1, axes.pp, axes.dp, etp=axes.tp)
    job = Job("j", axes, weights=weights, launcher="free")
    digits = digits_of(axes)
    assert digits is not None
    node = int(topology.gpus_of_node[0])
    divisors = [[f for f in range(1, d.size + 1) if not d.size % f] for d in digits]
    best = np.inf
    for box in product(*divisors):
        if np.prod(box) == node:
            inner = list(enumerate(box))
            outer = [(i, digits[i].size // f) for i, f in inner]
            order = [(i, f) for i, f in inner + outer if f > 1]
            sequence = sequence_of(digits, order, job.world_size)
            best = min(best, cost_by_boxes(topology, job, sequence.tolist()))
    problem = Problem.of(topology, job, "hop-cost")
    realised = []
    for nesting in nestings(problem, problem.colocation):
        nodes = fill(topology, topology.gpus_of_node, nesting.sequence, nesting.units)
        if nodes is not None:
            placement = Placement.on_nodes(topology, nodes)
            realised.append(HopCost(topology, job).cost(placement.gpu_of_rank))
    assert min(realised) <= best * (1 + 1e-9)
