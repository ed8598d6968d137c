"""Ranks that must stay together, and how many such sets fit."""

from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from placer.base.errors import InputError
from placer.job.axes import Parallelism
from placer.job.model import Group, Job
from placer.solve.problem.colocation import check_requirements, colocation_of, join
from placer.solve.tree.capacity import node_capacity, whole_sets
from tests.solve.oracle import groups_of
from tests.solve.random_cases import machine_of, random_case, random_tiers

if TYPE_CHECKING:
    from placer.topology.model import Topology


def together(
    job: Job, topology: Topology, tier: int, block: int
) -> set[frozenset[int]]:
    """Sets of ranks that share a domain of ``tier``, merged one pair at a time."""
    names = [t.name for t in topology.tiers]
    world = job.world_size
    sets = [set(range(r, r + block)) for r in range(0, world, block)]
    ties = [
        ranks
        for axis, name in job.require.items()
        if names.index(name) <= tier
        for ranks in groups_of(job, axis)
    ]
    if 0 < tier == len(names) - 1:
        ties.append(list(range(world)))
    for ranks in ties:
        for rank in ranks[1:]:
            first = next(s for s in sets if ranks[0] in s)
            second = next(s for s in sets if rank in s)
            if first is not second:
                sets.remove(second)
                first |= second
    return {frozenset(s) for s in sets}


@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("sort", ["small", "large", "runs"])
@pytest.mark.parametrize("seed", range(12))
def test_parts_are_those_of_a_naive_union(seed: int, sort: str, objective: str) -> None:
    """Sets are the finest sets that hold every block and every required group."""
    topology, job = random_case(seed, objective, sort)
    for block in (b for b in (1, 2, 3, 4) if job.world_size % b == 0):
        colocation = colocation_of(topology, job, block)
        for tier, label in enumerate(colocation.label):
            sets = {
                frozenset(np.flatnonzero(label == part).tolist())
                for part in range(label.max() + 1)
            }
            assert sets == together(job, topology, tier, block)
            first = [int(np.flatnonzero(label == p)[0]) for p in range(len(sets))]
            assert first == sorted(first)


def test_join_closes_long_chains() -> None:
    """Rows that overlap pairwise end in one set, however far apart."""
    members = np.array([[i, i + 1] for i in range(99)][::-1])
    assert join(np.arange(100), members).max() == 0


@pytest.mark.parametrize("seed", range(33))
def test_join_is_a_union(seed: int) -> None:
    """Joining random rows gives the classes of the graph they span."""
    rng = random.Random(seed)
    rows = [rng.sample(range(30), 3) for _ in range(rng.randint(1, 12))]
    label = join(np.arange(30), np.array(rows))
    reach = {rank: {rank} for rank in range(30)}
    for row in rows:
        merged = set().union(*(reach[rank] for rank in row))
        for rank in merged:
            reach[rank] = merged
    for a, b in product(range(30), repeat=2):
        assert (label[a] == label[b]) == (b in reach[a])


def test_uniform_sizes() -> None:
    """Sizes are given when each tier's sets are alike, otherwise None."""
    topology = machine_of([4, 4], [[0, 0]], random_tiers(random.Random(1), 2))
    group = Group("g", "all_reduce", 1.0, 1.0, False, ((0, 1, 2), (5, 6)))
    axes = Parallelism(tp=2, dp=4)
    alike = Job("alike", axes, require={"tp": "node"}, launcher="free")
    mixed = Job("mixed", axes, require={"g": "node"}, launcher="free", groups=(group,))
    assert colocation_of(topology, alike, 1).uniform_sizes() == (2, 8)
    assert colocation_of(topology, mixed, 1).uniform_sizes() is None


def test_unknown_tiers_are_all_named() -> None:
    """Every requirement on a tier that the machine lacks is a problem of its own."""
    topology = machine_of([4, 4], [[0, 0]], random_tiers(random.Random(1), 2))
    job = Job("j", Parallelism(tp=2, dp=2), require={"tp": "pod", "dp": "row"})
    with pytest.raises(InputError) as caught:
        check_requirements(topology, job)
    keys = [problem.key for problem in caught.value.problems]
    assert keys == ["require.tp", "require.dp"]
    assert "node, cluster" in str(caught.value)


def test_node_capacity() -> None:
    """A node holds its GPUs in a free launch, one block or nothing in another."""
    topology = machine_of([4, 3, 8], [[0, 0, 0]], random_tiers(random.Random(1), 2))
    assert node_capacity(topology, 1).tolist() == [4, 3, 8]
    assert node_capacity(topology, 4).tolist() == [4, 0, 4]


def most_units(capacity: list[int], rack: list[int], units: list[int]) -> int:
    """Ranks that racks hold in whole units, by trying every number of node units."""
    best = [0] * (max(rack) + 1)
    choices = [range(0, room + 1, units[0]) for room in capacity]
    for amounts in product(*choices):
        inside = [0] * len(best)
        for node, amount in enumerate(amounts):
            inside[rack[node]] += amount
        for r, amount in enumerate(inside):
            best[r] = max(best[r], amount // units[1] * units[1])
    return sum(best) // units[2] * units[2]


@pytest.mark.parametrize("seed", range(20))
def test_whole_parts_are_exact(seed: int) -> None:
    """No choice of units a node lets the domains take more whole units."""
    rng = random.Random(seed)
    capacity = [rng.randint(0, 5) for _ in range(5)]
    rack = [0, 0, 1, 1, rng.choice((0, 1))]
    inner = rng.choice((1, 2))
    units = [inner, inner * rng.choice((1, 2, 3)), 0]
    units[2] = units[1] * rng.choice((1, 2))
    topology = machine_of(capacity, [rack, [0] * 5], random_tiers(rng, 3))
    takes = whole_sets(topology, np.array(capacity), units)
    assert takes[-1].tolist() == [most_units(capacity, rack, units)]
