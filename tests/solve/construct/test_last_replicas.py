"""Replicas stitched of whole units, and the last few out of what is left."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.instances import uneven_racks
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.construct.chains.last_replicas import last_replicas
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from tests.solve.bounds.hop_bound import cut_bound

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology


def built(topology: Topology, job: Job) -> tuple[Problem, Incumbent]:
    """What the construction leaves as incumbent, nothing else tried."""
    problem = Problem.of(topology, job, "hop-cost")
    budget = Budget(100.0)
    incumbent = Incumbent(problem, budget)
    last_replicas(problem, incumbent, budget)
    return problem, incumbent


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "load", "seed"), [(2048, 0.98, 5), (3072, 0.98, 0)])
def test_a_full_machine_cuts_units_of_few_replicas_only(
    ranks: int, load: float, seed: int
) -> None:
    """Legal, only the last replica has cut tp groups, 3 % above the bound at most."""
    topology, job = uneven_racks(ranks, load, seed)
    problem, incumbent = built(topology, job)
    found = incumbent.gpu_of_rank
    assert found is not None
    assert not violations(Placement(found), topology, job)
    racks = topology.domain_of_gpu[0][found]
    dp = job.parallelism.coordinates["dp"]
    groups = racks[np.argsort(dp, kind="stable")].reshape(-1, job.parallelism.tp)
    is_whole = (groups == groups[:, :1]).all(axis=1)
    replica = len(groups) // job.parallelism.dp
    assert is_whole[:-replica].all()
    assert not is_whole.all()
    bound = cut_bound(topology, job).value
    assert problem.goal.value(found) <= 1.03 * bound


def test_a_machine_that_holds_all_units_is_left_to_stitching() -> None:
    """Nothing is offered where no unit need be cut."""
    assert built(*uneven_racks(2048, 0.9, 1))[1].gpu_of_rank is None


def test_replicas_that_must_stay_whole_are_left_alone() -> None:
    """A job that requires whole tp groups gets no cut ones."""
    topology, job = uneven_racks(2048, 0.98, 5)
    tier = topology.tiers[0].name
    assert (
        built(topology, replace(job, launcher="node-contiguous"))[1].gpu_of_rank is None
    )
    with_rule = replace(job, require={"tp": tier})
    assert built(topology, with_rule)[1].gpu_of_rank is None
