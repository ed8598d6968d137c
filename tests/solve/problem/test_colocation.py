"""Ranks that must stay together, how many such sets fit, and how they are packed."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.traffic import Group
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.packing import pack
from placer.solve.tree.capacity import whole_sets
from tests.solve.oracle import free_placements, groups_of, keeps_requirements
from tests.solve.random_cases import (
    machine_of,
    random_case,
    random_machine,
    random_tiers,
)

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


def odd_job(rng: random.Random, topology: Topology, world: int) -> Job:
    """A job whose custom groups have several sizes, at one or two tiers."""
    groups = []
    for name in ("a", "b"):
        ranks = rng.sample(range(world), world)
        rows = []
        while ranks:
            size = rng.choice((1, 2, 3))
            rows.append(tuple(ranks[:size]))
            ranks = ranks[size:]
        kept = tuple(rows[: rng.randint(1, len(rows))])
        groups.append(Group(name, "all_reduce", 1.0, 1.0, False, kept))
    tiers = [tier.name for tier in topology.tiers]
    require = {"a": rng.choice(tiers)}
    if rng.random() < 0.5:
        require["b"] = rng.choice(tiers)
    return Job(
        "odd",
        Parallelism(dp=world),
        require=require,
        launcher="free",
        groups=tuple(groups),
    )


@pytest.mark.parametrize("seed", range(30))
def test_packing_exists_exactly_when_a_placement_does(seed: int) -> None:
    """A packing is found whenever one exists, and it keeps every set together."""
    rng = random.Random(seed)
    world = rng.choice((5, 6, 7))
    topology = random_machine(rng, world, 3, (1, 2, 3, 4))
    job = odd_job(rng, topology, world)
    colocation = colocation_of(topology, job, 1)
    found = pack(topology, colocation, topology.gpus_of_node)
    possible = any(True for _ in free_placements(topology, job))
    assert (found is not None) == possible
    if found is not None:
        nodes = tuple(found.tolist())
        assert keeps_requirements(topology, job, nodes)
        assert all(
            held <= topology.gpus_of_node[node] for node, held in Counter(nodes).items()
        )
