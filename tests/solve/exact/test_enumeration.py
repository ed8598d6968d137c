"""Enumeration meets every legal placement once, up to a symmetry of the machine."""

from collections import defaultdict
from dataclasses import replace
from itertools import count
from math import inf

import pytest

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.rules import Rules
from placer.solve.exact.enumeration import (
    Enumeration,
    every_placement,
    fewest,
    listed_under_rules,
)
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import ENDLESS, Budget
from placer.solve.tree.symmetry import Symmetry
from placer.testing.oracle import consecutive_placements, free_placements
from placer.topology.model import Tier
from placer.topology.read import read_topology
from tests.solve.oracle import symmetries
from tests.solve.random_cases import machine_of, random_case

ENOUGH = 10**6
TIERS = (Tier("node", 4e11, 0.0, True), Tier("all", 5e10, 0.0, False))


def orbits(topology, legal):
    """Number of the class of every legal placement."""
    images = symmetries(topology)
    number = {}
    for nodes in legal:
        if nodes not in number:
            here = len(set(number.values()))
            for image in images:
                number[tuple(image[node] for node in nodes)] = here
    return number


def enumeration(topology, job, steps):
    """The walk over single ranks."""
    colocation = colocation_of(topology, job, 1)
    symmetry = Symmetry(topology)
    return Enumeration(topology, colocation, topology.gpus_of_node, steps, symmetry)


@pytest.mark.parametrize("launcher", ["free", "node-contiguous"])
@pytest.mark.parametrize("seed", range(25))
def test_each_orbit_once(seed, launcher):
    """Every legal placement is equivalent to exactly one that is enumerated."""
    topology, job = random_case(seed, "hop-cost")
    job = replace(job, launcher=launcher)
    walk = enumeration(topology, job, ENOUGH)
    if launcher == "free":
        met, legal = walk.units(), free_placements(topology, job)
    else:
        met, legal = walk.runs(), consecutive_placements(topology, job)
    number = orbits(topology, list(legal))
    times = defaultdict(int)
    for node_of_rank in met:
        times[number[tuple(node_of_rank.tolist())]] += 1
    assert walk.complete
    assert times == dict.fromkeys(number.values(), 1)


def test_few_placements_of_many_ranks_are_counted_and_listed():
    """By hand: 9 ranks on nodes of 4 and 5 have 126, 4 on two alike of 2 have 3."""
    machine = machine_of([4, 5], [[0, 0]], TIERS)
    job = Job("job", Parallelism(dp=9), weights={"dp": 1.0}, launcher="free")
    every = every_placement(Problem.of(machine, job), ENDLESS)
    assert every.complete
    assert len(every.nodes_of_rank) == 126
    assert fewest(Symmetry(machine), machine.gpus_of_node, 9) == pytest.approx(126)
    alike = read_topology("node:2 gpu:2")
    assert fewest(Symmetry(alike), alike.gpus_of_node, 4) == pytest.approx(3)


def test_listing_under_rules_ends_with_its_time():
    """So it does when all placements are listed, and only some were looked at."""
    machine = read_topology("node:3 gpu:4")
    rules = Rules(avoid=machine.node_names[-1:])
    job = Job("job", Parallelism(dp=8), weights={"dp": 1.0}, rules=rules)
    problem = Problem.of(machine, replace(job, launcher="free"))
    asked = count()
    marks, many = problem.limits.marks, 10_000
    every_placement(problem, Budget(inf, lambda: next(asked) < 0), marks, many)
    walked = next(asked)
    assert listed_under_rules(problem, ENDLESS, many)
    asked = count()
    soon = Budget(inf, lambda: next(asked) > walked)
    assert listed_under_rules(problem, soon, many) is None
