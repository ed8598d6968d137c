"""Runs of ranks on nodes: no launch by nodes cuts fewer groups than is said."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.placement.placement import Placement
from placer.solve.bounds.certificate import lower_bound
from placer.solve.bounds.groups.cut_runs import CutRuns, by_size
from placer.solve.bounds.groups.leaf_runs import LeafRuns
from placer.solve.problem.compiled import Problem
from placer.topology.model import Tier
from tests.marks import slow
from tests.solve.machines import MODEL
from tests.solve.random_cases import machine_of
from tests.solve.solving import solve

TIERS = [
    Tier("node", 450e9, 1e-6, True, 1.0, 0.8, 1.0),
    Tier("leaf", 50e9, 5e-6, False, 1.0, 1.0, 9.0),
    Tier("cluster", 50e9, 8e-6, False, 1.0, 1.0, 11.0),
]
WORK = 0.5


def runs(rooms: Sequence[int], ranks: int) -> Iterator[tuple[int, ...]]:
    """Node of every rank for each order of nodes and every length of their runs."""
    if ranks == 0:
        yield ()
        return
    for node, room in enumerate(rooms):
        rest = [0 if other == node else r for other, r in enumerate(rooms)]
        for length in range(1, min(room, ranks) + 1):
            for others in runs(rest, ranks - length):
                yield (node,) * length + others


@pytest.mark.parametrize("seed", [*range(20), *slow(range(20, 100))])
def test_no_launch_cuts_fewer_groups(seed: int) -> None:
    """And none is cheaper or faster than the bound."""
    rng = random.Random(f"runs {seed}")
    size, groups = rng.choice([(2, 3), (3, 2), (3, 3), (4, 2), (6, 1), (5, 2), (2, 4)])
    rooms = [rng.randint(1, 7) for _ in range(rng.choice((2, 3, 4)))]
    rooms[0] += max(0, size * groups - sum(rooms))
    found = np.array(list(runs(rooms, size * groups)))
    placed = found.reshape(len(found), groups, size)
    parts = (placed[..., None] == placed[:, :, None]).sum(-1)
    counted = CutRuns(by_size(np.array(rooms)), size, size * groups, WORK)
    for part in range(2, size + 1):
        cut = (parts.min(axis=2) < part).sum(axis=1)
        assert counted.fewest_cut(part) <= cut.min()

    pp = rng.choice([n for n in (1, 2, 3) if groups % n == 0])
    axes = Parallelism(tp=size, pp=pp, dp=groups // pp)
    weights = {"tp": rng.choice((1, 10, 4000)), "pp": rng.choice((1, 40)), "dp": 1}
    compute = Compute(micro_batch_time=0.02)
    job = Job("j", axes, MODEL, 4096, compute=compute, weights=weights)
    half = (len(rooms) + 1) // 2
    leaves = [0] * half + [1] * (len(rooms) - half)
    machine = machine_of(rooms, [leaves, [0] * len(rooms)], TIERS)
    for objective in ("time", "hop-cost"):
        problem = Problem.of(machine, job, objective)
        bound = lower_bound(problem, problem.forced_block).value
        for node in found[rng.sample(range(len(found)), min(len(found), 40))]:
            gpu_of_rank = Placement.on_nodes(machine, node).gpu_of_rank
            assert bound <= problem.goal.value(gpu_of_rank) * (1 + 1e-9)


def test_groups_of_six_on_nodes_of_eight() -> None:
    """Three nodes hold four groups, of which two are cut, into 2 and 4."""
    counted = CutRuns(((8, 24),), 6, 192, WORK)
    assert counted.fewest_cut(6) == 16
    assert (counted.fewest_cut(3), counted.fewest_cut(2)) == (16, 0)


def test_groups_of_six_on_hosts_of_seven_and_eight() -> None:
    """The hop cost is near its bound; a free launch may be 13 % cheaper."""
    gpus = [8] * 24 + [7] * 8
    machine = machine_of(gpus, [[i // 8 for i in range(32)], [0] * 32], TIERS)
    axes = Parallelism(tp=6, pp=4, dp=10, order=("tp", "cp", "ep", "dp", "pp"))
    job = Job("j", axes, None, 4096, weights={"tp": 4000, "pp": 40, "dp": 4})
    found = solve(machine, job, objective="hop-cost", time_limit=4)
    assert found.lower_bound > 0.98 * found.value
    assert found.launch_bound < 0.9 * found.value


def test_five_sets_are_three_in_one_leaf() -> None:
    """Of ten groups that nodes hold whole a leaf has five, and three sets are six."""
    leaf = (7, 7, 7, 8)
    counted = CutRuns(by_size(np.array(leaf * 2)), 4, 40, WORK)
    assert counted.fewest_cut(4) == 0
    in_leaves = replace(counted, leaves=(LeafRuns(8, ((leaf, 2),)),))
    assert in_leaves.fewest_cut(4) == 1
    assert replace(in_leaves, ranks=32).fewest_cut(4) == 0


@pytest.mark.parametrize("seed", [*range(30), *slow(range(30, 200))])
def test_no_leaves_cut_fewer_groups(seed: int) -> None:
    """Sets shared out in every way, each leaf's in every run of its nodes."""
    rng = random.Random(f"leaves {seed}")
    size, apart = rng.choice([(2, 1), (2, 2), (3, 1), (4, 1), (2, 3)])
    block = size * apart
    each = block * rng.choice((1, 2)) if block < 4 else block
    leaves = [
        tuple(sorted(rng.randint(1, 5) for _ in range(rng.randint(1, 3))))
        for _ in range(rng.randint(1, 3))
    ]
    room = [min(sum(leaf), 12) // each for leaf in leaves]
    sets = rng.randint(1, max(1, sum(room)))
    nodes = np.array([node for leaf in leaves for node in leaf])
    kinds = LeafRuns(each, tuple(Counter(leaves).items()))
    counted = CutRuns(by_size(nodes), size, sets * each, WORK, apart, leaves=(kinds,))
    for part in range(2, size + 1):
        cut = [
            [fewest(leaf, size, apart, each * some, part) for some in range(most + 1)]
            for leaf, most in zip(leaves, room, strict=True)
        ]
        ways = product(*(range(len(own)) for own in cut))
        least = [
            sum(own[some] for own, some in zip(cut, way, strict=True))
            for way in ways
            if sum(way) == sets
        ]
        if least and all(sum(leaf) <= 12 + each for leaf in leaves):
            assert counted.fewest_cut(part) <= min(least)


def fewest(rooms: Sequence[int], size: int, apart: int, ranks: int, part: int) -> float:
    """Groups with a part below this in the best of all runs."""
    least = float("inf")
    block = np.arange(ranks).reshape(-1, size, apart).swapaxes(1, 2)
    groups = block.reshape(-1, size)
    for node in runs(rooms, ranks):
        placed = np.array(node)[groups]
        parts = (placed[..., None] == placed[:, None]).sum(-1)
        least = min(least, (parts.min(axis=1) < part).sum())
    return least
