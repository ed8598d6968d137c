"""Enumeration meets every legal placement once, up to a symmetry of the machine."""

from collections import defaultdict
from dataclasses import replace
from itertools import count
from math import inf

import pytest

import placer
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.read import read_job
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
from placer.topology.read import parse_topology, read_topology
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


@pytest.mark.parametrize("seed", range(40))
def test_placements_are_counted_before_they_are_listed(seed):
    """There are no fewer than the count, and no more where no domains are alike."""
    topology, job = random_case(seed, "hop-cost")
    job = replace(job, launcher="free", require={})
    symmetry, room = Symmetry(topology), topology.gpus_of_node
    found = sum(1 for _ in enumeration(topology, job, ENOUGH).units())
    least = fewest(symmetry, room, job.world_size)
    assert least <= found * (1 + 1e-9)
    if all(len(set(row)) == len(row) for row in symmetry.shape):
        assert least == pytest.approx(found)


def test_more_ranks_than_units_are_listed_where_placements_are_few():
    """Nine ranks on hosts of 4 and 5 have 126 placements: the best is proved."""
    topology = parse_topology(
        "format: placer/topology\nversion: 1\nname: two\ntiers:\n"
        "  - {name: node, size: 5, bandwidth: 300GB/s, latency: 1us, scale_up: true}\n"
        "  - {name: cluster, bandwidth: 10GB/s, latency: 4us}\n"
        "nodes:\n  - {names: a, gpus: 4}\n  - {names: b}\n",
        "two",
    )
    job = replace(read_job("quickstart"), launcher="free", require={})
    job = replace(job, parallelism=Parallelism(pp=3, dp=3))
    every = every_placement(Problem.of(topology, job, "time"), ENDLESS)
    assert every.complete
    assert len(every.nodes_of_rank) == 126


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


@pytest.mark.parametrize("launcher", ["free", "node-contiguous"])
def test_very_few_placements_are_listed_before_programs(launcher):
    """Six ranks with experts on three nodes of two, constructions alone: proved.

    Anywhere there are 15 placements, and nodes of runs have one.
    """
    job = read_job("quickstart")
    model = replace(job.model, experts=4, top_k=2, expert_ffn=512, moe_layers=32)
    axes = Parallelism(1, 2, 2, 3, 1, 1, 1)
    job = replace(job, model=model, parallelism=axes, micro_batches=6)
    topology = parse_topology(
        """
        format: placer/topology
        version: 1
        name: thin
        tiers:
          - {name: node, size: 2, bandwidth: 400GB/s, latency: 1us, scale_up: true}
          - {name: cluster, bandwidth: 50GB/s, latency: 5us, oversubscription: 16}
        layout: "cluster:1 node:3"
        """,
        "thin",
    )
    job = replace(job, launcher=launcher, weights={})
    found = placer.place(topology, job, effort="quick")
    assert found.status == "optimal"
    assert launcher != "free" or "all 15 ways" in found.plan.bound["argument"]
