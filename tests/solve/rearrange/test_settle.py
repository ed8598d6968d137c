"""The result settled: what is tried beside it, and what is never taken."""

from dataclasses import replace

import numpy as np

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.rules import Rules
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.placement.previous import PreviousPlan
from placer.solve.problem.compiled import Problem
from placer.solve.rearrange.settle import settled
from placer.solve.run.solution import Solution
from tests.solve.rearrange.test_align import machine

JOB = Job("j", Parallelism(dp=4), weights={"dp": 1}, launcher="free")


def solved(problem, gpus, method="searched"):
    placement = Placement(np.array(gpus))
    value = problem.goal.value(placement.gpu_of_rank)
    return Solution(
        placement, "hop-cost", value, value, "none", method, "proved", 0.1, True
    )


def seats(topology, gpus):
    plan = build_plan(topology, JOB, Placement(np.array(gpus)))
    return PreviousPlan(plan, topology).seats(JOB)


def even(racks, nodes):
    """Racks of nodes of two GPUs; all hops out of a node cost the same."""
    topology = machine([("b0", [2] * nodes)] * racks)
    tiers = (topology.tiers[0], *(replace(t, distance=2.0) for t in topology.tiers[1:]))
    return replace(topology, tiers=tiers)


def test_a_scattered_baseline_is_tidied_up():
    """Where a baseline is optimal but in two racks, a nesting in one is taken."""
    problem = Problem.of(even(2, 2), JOB)
    found = settled(problem, solved(problem, [0, 1, 4, 5], "given-order"), None)
    rack = problem.machine.domain_of_gpu[1][found.placement.gpu_of_rank]
    assert len(set(rack.tolist())) == 1
    assert found.method == "given-order, tidied"
    assert found.value == found.lower_bound


def test_the_previous_placement_is_tried():
    """Where it costs as much and no exchange leads to it, it is the result."""
    topology, before = even(2, 2), [0, 3, 2, 1]
    problem = Problem.of(topology, JOB)
    found = settled(problem, solved(problem, [0, 1, 2, 3]), seats(topology, before))
    assert found.placement.gpu_of_rank.tolist() == before
    assert found.method == "searched, previous plan"


def test_hosts_to_avoid_are_not_used_to_keep_ranks():
    """A rank stays where it was only as long as no more hosts to avoid are used."""
    topology = even(1, 4)
    problem, names = Problem.of(topology, JOB), topology.node_names
    avoiding = replace(JOB, rules=Rules(avoid=(names[2], names[3])))
    ruled = problem.on(problem.machine, avoiding)
    solution = solved(ruled, [0, 1, 2, 3])
    previous = seats(topology, [4, 5, 6, 7])
    assert settled(problem, solution, previous) is not solution
    assert settled(ruled, solution, previous) is solution
