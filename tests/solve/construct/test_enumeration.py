"""Enumeration meets every legal placement once, up to a symmetry of the machine."""

from dataclasses import replace
from math import inf, log

import pytest

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.rules import Rules
from placer.solve.construct.enumeration import (
    every_placement,
    log_fewest,
)
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import ENDLESS, Budget
from placer.solve.tree.symmetry import Symmetry
from placer.topology.model import Tier
from placer.topology.read import read_topology
from tests.solve.random_cases import machine_of

TIERS = (Tier("node", 4e11, 0.0, True), Tier("all", 5e10, 0.0, False))


def test_few_placements_of_many_ranks_are_counted_and_listed():
    """By hand: 9 ranks on nodes of 4 and 5 have 126, 4 on two alike of 2 have 3."""
    machine = machine_of([4, 5], [[0, 0]], TIERS)
    job = Job("job", Parallelism(dp=9), weights={"dp": 1.0}, launcher="free")
    every = every_placement(Problem.of(machine, job), ENDLESS, 1_000)
    assert every is not None
    assert len(every) == 126
    least = log_fewest(Symmetry(machine), machine.gpus_of_node, 9)
    assert least == pytest.approx(log(126))
    alike = read_topology("node:2 gpu:2")
    least = log_fewest(Symmetry(alike), alike.gpus_of_node, 4)
    assert least == pytest.approx(log(3))


def test_listing_under_rules_ends_with_its_time():
    """A walk that is stopped on its way has not listed all placements."""
    machine = read_topology("node:3 gpu:4")
    rules = Rules(avoid=machine.node_names[-1:])
    job = Job("job", Parallelism(dp=8), weights={"dp": 1.0}, rules=rules)
    problem = Problem.of(machine, replace(job, launcher="free"))
    assert every_placement(problem, ENDLESS, 10_000)
    assert every_placement(problem, Budget(inf, lambda: True), 10_000) is None
