"""Parts of rings and cliques add up: tighter where it says so, never false."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.generate import random_case
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.solve.bounds.hops.isoperimetric import Product, replica_floor
from placer.solve.bounds.hops.lagrange import size_classes
from placer.solve.bounds.hops.parts import Parts
from placer.solve.problem.axes import Axis
from placer.solve.problem.params import Params
from tests.marks import slow
from tests.solve.bounds.hop_bound import cut_bound
from tests.solve.bounds.test_cut_against_brute_force import machine, optimum

ORDER = ("tp", "cp", "ep", "dp", "pp")


def nodes_of(*gpus: int) -> list[list[int]]:
    """Rows of domains of a machine of nodes."""
    return [[*range(len(gpus))], [0] * len(gpus)]


def rings(lines: int, size: int, across: float, along: float) -> Job:
    """So many data-parallel rings, neighbours joined member by member."""
    axes = Parallelism(cp=lines, dp=size, order=ORDER)
    return Job("rings", axes, weights={"cp": across, "dp": along})


def test_two_rings_by_hand() -> None:
    """Rings of three on nodes of two: four parts, and two of three edges across."""
    topology = machine([2, 2, 2], nodes_of(2, 2, 2), [0, 1])
    job = rings(2, 3, 1, 10)
    assert cut_bound(topology, job, params=Params(parts_work=0)).value == 33
    assert cut_bound(topology, job).value == 4 * 10 + 2 == optimum(topology, job)


def test_context_rings_by_hand() -> None:
    """The same two rings along cp, which are two stages of a pipeline."""
    topology = machine([2, 2, 2], nodes_of(2, 2, 2), [0, 1])
    axes = Parallelism(cp=3, pp=2, order=ORDER)
    job = Job("rings", axes, weights={"cp": 10, "pp": 1})
    assert cut_bound(topology, job).value == 4 * 10 + 2 == optimum(topology, job)
    assert cut_bound(topology, job, params=Params(parts_work=0)).value < 42


def test_experts_by_hand() -> None:
    """Two cliques of three on nodes of two: each loses at least two of its edges.

    Parts of two from either clique fill two nodes and the single ones a third.
    """
    topology = machine([2, 2, 2], nodes_of(2, 2, 2), [0, 1])
    axes = Parallelism(ep=3, dp=6, order=ORDER)
    job = Job("experts", axes, weights={"ep": 1})
    assert cut_bound(topology, job).value == 4 == optimum(topology, job)
    without = Params(parts_work=0, parted_columns=0)
    assert cut_bound(topology, job, params=without).value < 4


def test_a_machine_of_hosts_with_holes() -> None:
    """Units of hosts hold no whole number of rings of 16: the cut is 28 % larger."""
    topology, job = random_case(26)
    plain = cut_bound(topology, job, params=Params(parts_work=0))
    assert plain.cut_per_tier[1] == 36_864
    assert cut_bound(topology, job).cut_per_tier[1] >= 47_104


@pytest.mark.parametrize("seed", [*range(12), *slow(range(12, 80))])
def test_any_prices_give_a_bound(seed: int) -> None:
    """Whatever a part of each size costs, no placement cuts less."""
    rng = random.Random(seed)
    lines, size = rng.choice(((2, 3), (2, 4), (3, 2), (1, 6), (2, 2)))
    gpus = [rng.choice((2, 2, 3, 4)) for _ in range(3)]
    while sum(gpus) < lines * size:
        gpus.append(2)
    job = rings(lines, size, rng.choice((0.5, 1, 7)), rng.choice((1, 10)))
    topology = machine(gpus, nodes_of(*gpus), [0, 1])
    best = optimum(topology, job)
    coordinate = np.zeros(lines * size, dtype=np.int64)
    cp, dp = (
        Axis(name, number, float(job.weights[name]), True, coordinate)
        for name, number in (("cp", lines), ("dp", size))
    )
    one = Axis("pp", 1, 0.0, False, coordinate)
    classes = size_classes(np.array(gpus), job.world_size)
    most = classes[-1].high
    product = Product((cp,), one, dp)
    across = replica_floor(product, np.zeros((1, 1)), most, Params())[0]
    parts = Parts(dp, lines, across / 2, np.zeros(most + 1), classes)
    for _ in range(20):
        prices = np.array([rng.uniform(-20, 20) for _ in range(parts.largest + 1)])
        prices[0] = 0.0
        assert parts.bound(prices, 1)[0] <= best + 1e-9


@pytest.mark.parametrize("seed", [*range(10), *slow(range(10, 60))])
def test_no_placement_cuts_less(seed: int) -> None:
    """Tensor, pipeline and expert edges beside rings: the bound is at most the best."""
    rng = random.Random(seed)
    tp, cp, pp, dp = rng.choice(
        ((1, 2, 1, 3), (1, 1, 2, 3), (2, 1, 1, 3), (1, 1, 2, 4), (1, 1, 1, 6))
    )
    axes = Parallelism(tp=tp, cp=cp, pp=pp, dp=dp, etp=tp, order=ORDER)
    if rng.random() < 0.4:
        axes = replace(axes, etp=1, ep=tp * rng.choice((1, dp)))
    weights = {axis: rng.choice((1, 3, 8, 0.5)) for axis in ("tp", "cp", "pp", "ep")}
    weights |= {axis: rng.choice((5, 20, 100)) for axis in ("dp", "edp")}
    job = Job("random", axes, weights=weights)
    gpus = [2] * (job.world_size // 2)
    gpus[0] += rng.choice((0, 0, 1, 2))
    topology = machine(gpus, nodes_of(*gpus), [rng.choice((0, 1)), 3])
    assert cut_bound(topology, job).value <= optimum(topology, job) + 1e-9
