"""Of equally good placements: less traffic, fewer domains, fewer ranks moved."""

import numpy as np
import pytest

from placer.job.axes import REPLICA_MAJOR_ORDER, Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.job.parallel import ElementBytes, Overlap
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.placement.previous import PreviousPlan
from placer.solve.problem.compiled import Problem
from placer.solve.run.incumbent import TieBreak
from placer.testing import strategies
from placer.topology.model import Tier
from tests.solve.random_cases import machine_of


def test_one_slow_replica_is_better_than_three():
    """The slowest replica sets the step; among equals the sum of traffic decides.

    Two-stage pipelines wait for their messages; gradients weigh nothing.
    """
    tiers = [
        Tier("node", 1e9, 0.0, True, 1.0, 1.0, 1.0),
        Tier("cluster", 1e8, 0.0, False, 1.0, 1.0, 1.0),
    ]
    job = Job(
        "j",
        Parallelism(pp=2, dp=3, order=REPLICA_MAJOR_ORDER),
        model=Model("m", 2, 1000, 1000, 10, 10, 1000),
        sequence=1000,
        bytes=ElementBytes(2.0, 1e-12, 1e-12),
        overlap=Overlap(pp=False),
        compute=Compute(micro_batch_time=0.1),
        launcher="free",
    )
    problem = Problem.of(machine_of([3, 3], [[0, 0]], tiers), job, "time")
    value, ties = problem.goal.value, TieBreak(problem)
    one, three = np.array([0, 1, 2, 3, 4, 5]), np.array([0, 3, 1, 4, 2, 5])
    assert value(one) == pytest.approx(value(three), rel=1e-12)
    assert ties.prefers(one, three)
    assert not ties.prefers(three, one)
    assert not ties.prefers(one, one.copy())


@pytest.mark.parametrize(
    ("better", "worse", "before"),
    [
        # One rack rather than two, then one block rather than two.
        ([0, 1, 2, 3], [0, 1, 4, 5], None),
        ([0, 1, 4, 5], [0, 2, 8, 9], None),
        # A previous plan decides only between placements that are alike otherwise.
        ([8, 9, 10, 11], [0, 1, 2, 3], [8, 9, 10, 11]),
        ([0, 1, 2, 3], [8, 9, 10, 12], [8, 9, 10, 11]),
    ],
)
def test_fewest_domains_outermost_first_then_ranks_kept(better, worse, before):
    """Two blocks of two racks of two nodes of two GPUs, links alike at every tier."""
    racks = [("b0", [2, 2]), ("b0", [2, 2]), ("b1", [2, 2]), ("b1", [2, 2])]
    topology = strategies.machine(racks)
    job = Job("j", Parallelism(dp=4), weights={"dp": 1}, launcher="free")
    problem, kept = Problem.of(topology, job), None
    if before is not None:
        plan = build_plan(topology, job, Placement(np.array(before)))
        kept = PreviousPlan(plan, topology).seats(job)
    one, other, ties = np.array(better), np.array(worse), TieBreak(problem, kept)
    assert problem.goal.value(one) == problem.goal.value(other)
    assert ties.prefers(one, other)
    assert not ties.prefers(other, one)
