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
from placer.solve.run.ties import TieBreak
from placer.testing import strategies
from placer.topology.model import Tier
from tests.solve.random_cases import machine_of

MODEL = Model("m", 2, 1000, 1000, 10, 10, 1000)


def piped(**more):
    """Two-stage pipelines that wait for their messages; gradients weigh nothing."""
    return Job(
        "j",
        Parallelism(pp=2, dp=3, order=REPLICA_MAJOR_ORDER),
        model=MODEL,
        sequence=1000,
        bytes=ElementBytes(2.0, 1e-12, 1e-12),
        overlap=Overlap(pp=False),
        compute=Compute(micro_batch_time=0.1),
        launcher="free",
        **more,
    )


def test_one_slow_replica_is_better_than_three():
    """The slowest replica sets the step; among equals the sum of traffic decides."""
    tiers = [
        Tier("node", 1e9, 0.0, True, 1.0, 1.0, 1.0),
        Tier("cluster", 1e8, 0.0, False, 1.0, 1.0, 1.0),
    ]
    topology = machine_of([3, 3], [[0, 0]], tiers)
    problem = Problem.of(topology, piped(), "time")
    goal = problem.goal
    one, three = np.array([0, 1, 2, 3, 4, 5]), np.array([0, 3, 1, 4, 2, 5])
    assert goal.value(one) == pytest.approx(goal.value(three), rel=1e-12)
    ties = TieBreak(problem)
    assert ties.prefers(one, three)
    assert not ties.prefers(three, one)
    assert not ties.prefers(one, one.copy())


def even_links():
    """Two blocks of two racks of two nodes of two GPUs, links alike at every tier."""
    racks = [("b0", [2, 2]), ("b0", [2, 2]), ("b1", [2, 2]), ("b1", [2, 2])]
    return strategies.machine(racks)


def test_fewest_domains_outermost_first():
    """One block rather than two, then one rack rather than two."""
    topology = even_links()
    job = Job("j", Parallelism(dp=4), weights={"dp": 1}, launcher="free")
    problem = Problem.of(topology, job)
    goal = problem.goal
    ties = TieBreak(problem)
    rack, block, cluster = (
        np.array(gpus) for gpus in ([0, 1, 2, 3], [0, 1, 4, 5], [0, 2, 8, 9])
    )
    assert goal.value(rack) == goal.value(block) == goal.value(cluster)
    assert ties.prefers(rack, block)
    assert ties.prefers(block, cluster)
    assert not ties.prefers(cluster, block)


def test_ranks_kept_come_last():
    """A previous plan decides only between placements that are alike otherwise."""
    topology = even_links()
    job = Job("j", Parallelism(dp=4), weights={"dp": 1}, launcher="free")
    plan = build_plan(topology, job, Placement(np.array([8, 9, 10, 11])))
    ties = TieBreak(Problem.of(topology, job), PreviousPlan(plan, topology).seats(job))
    here, there = np.array([0, 1, 2, 3]), np.array([8, 9, 10, 11])
    assert ties.prefers(there, here)
    assert not ties.prefers(here, there)
    scattered = np.array([8, 9, 10, 12])
    assert ties.prefers(here, scattered)
