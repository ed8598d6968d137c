"""Jobs that meet on uplinks, against all pairs of placements."""

from __future__ import annotations

import random
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

import placer
from placer.allocation.shared import left_by, use_of
from placer.api.allocate import allocate
from placer.base.errors import InfeasibleError
from placer.placement.placement import Placement
from placer.solve.problem.compiled import Problem
from tests.allocation.machines import racks, training
from tests.marks import slow
from tests.solve.oracle import legal_placements
from tests.solve.random_cases import random_job, random_machine

if TYPE_CHECKING:
    from placer.allocation.shared import Use

ROUNDING = 1e-9


class Placed(NamedTuple):
    nodes: tuple[int, ...]
    placement: Placement
    use: Use


def case(seed):
    """Two jobs on a machine some of whose uplinks are narrow."""
    rng = random.Random(f"shared {seed}")
    worlds = [rng.randint(2, 3) for _ in range(2)]
    machine = random_machine(rng, sum(worlds) + rng.randint(0, 2), 6, (1, 2, 2, 3))
    tiers = [machine.tiers[0]] + [
        replace(tier, oversubscription=rng.choice((1.0, 2.0, 4.0, 8.0)))
        for tier in machine.tiers[1:]
    ]
    machine = replace(machine, tiers=tuple(tiers))
    jobs = [random_job(rng, world, machine, "time") for world in worlds]
    return machine, [
        replace(job, name=name) for job, name in zip(jobs, ("one", "two"), strict=True)
    ]


def placements(machine, job):
    found = []
    for nodes in dict.fromkeys(map(tuple, legal_placements(machine, job))):
        placement = Placement.on_nodes(machine, np.array(nodes))
        found.append(Placed(nodes, placement, use_of(machine, job, placement)))
    return found


def least_of_pairs(machine, jobs):
    """The least sum of both steps over all pairs of placements on different nodes."""
    known = {}

    def value(job, placed, other):
        share = left_by([other.use])
        assert share is not None
        key = job.name, placed.nodes, *(one.tobytes() for one in share)
        if key not in known:
            beside = replace(machine, uplink_share=share)
            goal = Problem.of(beside, job, "time").goal
            known[key] = float(goal.value(placed.placement.gpu_of_rank))
        return known[key]

    ones, twos = (placements(machine, job) for job in jobs)
    return min(
        (
            value(jobs[0], one, two) + value(jobs[1], two, one)
            for one in ones
            for two in twos
            if not set(one.nodes) & set(two.nodes)
        ),
        default=inf,
    )


@pytest.mark.parametrize("seed", [0, 42, *slow([163, *range(1, 9)])])
def test_two_jobs_on_thin_uplinks_against_all_pairs(seed):
    """They cost the least of all pairs; no bound is above it."""
    machine, jobs = case(seed)
    best = least_of_pairs(machine, jobs)
    if best == inf:
        with pytest.raises(InfeasibleError):
            allocate(machine, jobs, objective="time")
        return
    found = allocate(machine, jobs, objective="time")
    assert found.cost == pytest.approx(best, rel=ROUNDING)
    assert found.lower_bound <= best * (1 + ROUNDING)
    is_reached = found.lower_bound == pytest.approx(best, rel=ROUNDING)
    assert (found.status == "optimal") == is_reached


def test_what_a_kept_job_leaves_of_uplinks_bounds_a_job_of_any_size():
    """Each rack has five nodes left, and an uplink that the kept job loads."""
    machine = racks({"A": 10, "B": 10}, joined=False, oversubscription=8)
    ring = training("old", tp=1, dp=40)
    halves = placer.allocate(machine, ring, free="A[01-05],B[01-05]").jobs[0].plan
    new = replace(ring, name="new")
    found = placer.allocate(machine, new, keep=[halves])
    assert found.argument == "every job with all free nodes to itself"
    assert found.lower_bound > 1.5 * found.jobs[0].plan.bound["lower_bound"]
    assert found.status == "optimal"
