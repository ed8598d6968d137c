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
    listed_under_rules,
)
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import ENDLESS, Budget
from placer.solve.tree.symmetry import Symmetry
from placer.topology.read import read_topology
from tests.solve.oracle import consecutive_placements, free_placements, symmetries
from tests.solve.random_cases import random_case

ENOUGH = 10**6


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
