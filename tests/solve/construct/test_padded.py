"""Launches by nodes whose stages do not fill their nodes."""

from __future__ import annotations

from dataclasses import replace

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.construct.by_nodes.padded import padded_jobs
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.solve.search import padded
from placer.topology.model import Tier
from tests.solve.random_cases import machine_of

TIERS = [
    Tier("node", 900e9, 1e-6, True, 1.0, 1.0, 1.0),
    Tier("rack", 900e9, 1e-6, True, 1.0, 1.0, 1.0),
    Tier("cluster", 100e9, 8e-6, False, 1.0, 1.0, 18.0),
]
# A stage of 13 x 2 ranks takes seven nodes of 4, the last one half: a rack.
RACKS = [n // 7 for n in range(56)]
MACHINE = machine_of([4] * 56, [RACKS, [0] * 56], TIERS)
JOB = Job(
    "odd",
    Parallelism(tp=2, pp=8, dp=13),
    weights={"tp": 1000.0, "pp": 1.0, "dp": 100.0},
)


def test_so_many_replicas_are_added_that_stages_fill_nodes() -> None:
    """A fourteenth; none where stages fill their nodes, or ranks go anywhere."""
    problem = Problem.of(MACHINE, JOB)
    assert [job.parallelism.dp for job in padded_jobs(problem)] == [14]
    even = replace(JOB, parallelism=Parallelism(tp=2, pp=8, dp=12))
    assert list(padded_jobs(problem.on(MACHINE, even))) == []
    free = replace(JOB, launcher="free")
    assert list(padded_jobs(problem.on(MACHINE, free))) == []


def test_nodes_end_where_stages_do() -> None:
    """Each rack then has a stage, and only pipelines leave it."""
    problem, budget = Problem.of(MACHINE, JOB), Budget(60)
    found = Incumbent(problem, budget)
    padded(problem, found, budget)
    assert not violations(Placement(found.best), MACHINE, JOB)
    inside_racks = 8 * (13 * 1000 + 26 * 100)
    assert found.value == inside_racks + 7 * 26 * 18
    assert "for 14 replicas" in found.method
