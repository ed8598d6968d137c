"""Ranks that must stay together, how many such sets fit, and how they are packed."""

import random
from collections import Counter

import pytest

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.traffic import Group
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.packing import pack
from placer.testing.oracle import free_placements, keeps_requirements
from tests.solve.random_cases import (
    random_machine,
)


def odd_job(rng, topology, world):
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
def test_packing_exists_exactly_when_a_placement_does(seed):
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
