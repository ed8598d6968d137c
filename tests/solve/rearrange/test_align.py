"""Keeping to a previous plan: as many ranks in place as any relabelling keeps."""

import random
from dataclasses import replace

import numpy as np
import pytest

import placer
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.build import build_plan
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.placement.previous import PreviousPlan
from placer.solve.orders import solve_orders
from placer.solve.problem.compiled import Problem, objective_of
from placer.solve.rearrange.failure import Failure
from placer.solve.rearrange.settle import aligned
from placer.solve.run.budget import Budget
from placer.testing import strategies
from tests.solve.oracle import symmetries

MAJOR = ("tp", "cp", "ep", "pp", "dp")


def machine(racks):
    """A machine of racks whose tiers are twice as far apart, each as the last."""
    found = strategies.machine(racks)
    tiers = (replace(tier, distance=2.0**t) for t, tier in enumerate(found.tiers))
    return replace(found, tiers=tuple(tiers))


def failure(plan, left, job):
    """A plan on what is left of its machine."""
    return Failure(Problem.of(left, job), PreviousPlan(plan, left).seats(job))


MACHINES = [
    [("b0", [2]), ("b0", [2]), ("b1", [2]), ("b1", [2])],
    [("b0", [2, 2]), ("b0", [2, 2]), ("b1", [2])],
    [("b0", [2, 2]), ("b1", [2, 1])],
    [("b0", [1, 2, 2, 1])],
    [("b0", [2]), ("b0", [2]), ("b0", [1]), ("b1", [2, 2])],
]


@pytest.mark.parametrize("launcher", ["node-contiguous", "free"])
@pytest.mark.parametrize("racks", MACHINES, ids=str)
def test_equals_the_best_relabelling(racks, launcher):
    """Exchanging equal domains keeps as many ranks as the best renaming of nodes."""
    topology = machine(racks)
    renamings = symmetries(topology)
    assert len(renamings) > 1
    rng = random.Random(str(racks))
    job = Job("j", Parallelism(dp=4), weights={"dp": 1}, launcher=launcher)
    first = topology.first_gpu_of_node
    for _ in range(15):
        gpus = range(topology.num_gpus)
        before, now = (np.array(rng.sample(gpus, 4)) for _ in range(2))
        if launcher != "free":
            before.sort()
            now.sort()
        plan = build_plan(topology, job, Placement(before))
        previous = PreviousPlan(plan, topology).seats(job)
        node, old_node = topology.node_of_gpu[now], topology.node_of_gpu[before]
        local, old_local = now - first[node], before - first[old_node]
        kept = max(
            int(
                np.sum(
                    (np.array(to)[node] == old_node)
                    & ((local == old_local) | (launcher == "free"))
                )
            )
            for to in renamings
        )
        found = next(aligned(Problem.of(topology, job), now, previous))
        assert previous.kept(found) == kept
        assert len(set(found.tolist())) == 4
        value = objective_of(topology, job, None).value
        assert value(found) == value(now)


def racks_of(count, nodes, gpus=2):
    return machine([("b0", [gpus] * nodes)] * count)


def job_of(**sizes):
    axes = Parallelism(**sizes, etp=sizes.get("tp", 1), order=MAJOR)
    weights = {"tp": 100.0, "pp": 10.0, "dp": 1.0}
    return Job("j", axes, weights=weights, require={"pp": "rack"}, sha256="j")


def plan_of(topology, job, previous=None):
    return placer.place(topology, job, previous=previous).plan


def seats(plan):
    return list(zip(plan.host_of_rank, plan.gpu_of_rank.tolist(), strict=True))


@pytest.mark.parametrize("failed", [0, 5, 11])
def test_a_failed_node_moves_only_its_ranks(failed):
    """With a spare tray in the rack, the ranks of a failed one go there: 4 move."""
    topology, job = racks_of(4, 5, gpus=4), job_of(tp=4, pp=3, dp=4)
    plan = plan_of(topology, job)
    host = plan.nodes[failed]
    left = [name for name in topology.node_names if name != host]
    found = placer.place(topology, job, hosts=left, previous=plan).plan
    moved = [
        rank
        for rank, (old, new) in enumerate(zip(seats(plan), seats(found), strict=True))
        if old != new
    ]
    assert moved == [r for r, name in enumerate(plan.host_of_rank) if name == host]
    assert found.previous == {"kept": 44, "moved": 4, "new": 0}
    rack = dict(zip(plan.nodes, plan.domains["rack"], strict=True))[host]
    new_host = found.host_of_rank[moved[0]]
    assert dict(zip(found.nodes, found.domains["rack"], strict=True))[new_host] == rack


def test_a_smaller_job_keeps_its_replicas():
    """Replicas that stay in the job stay where they were, all if nothing changed."""
    topology, job = racks_of(4, 2), job_of(tp=2, pp=2, dp=4)
    plan = plan_of(topology, job)
    again = plan_of(topology, job, plan)
    assert seats(again) == seats(plan)
    assert "16 of 16 ranks stay" in placer.Result(again).summary()
    found = plan_of(topology, job_of(tp=2, pp=2, dp=3), plan)
    assert found.previous == {"kept": 12, "moved": 0, "new": 0}
    grown = plan_of(topology, job_of(tp=2, pp=2, dp=4), found)
    assert grown.previous == {"kept": 12, "moved": 0, "new": 4}


def test_no_worse_than_without():
    """Whatever the previous plan, the value is no worse than without it."""
    rng = random.Random(9)
    topology = machine([("b0", [2, 2, 2]), ("b0", [2, 2]), ("b1", [2, 2, 1])])
    axes = Parallelism(tp=2, dp=5, etp=2, order=MAJOR)
    job = Job("j", axes, weights={"tp": 9, "dp": 1})
    problem = Problem.of(topology, job)
    _, alone = solve_orders(problem, Budget(60.0))
    for _ in range(20):
        nodes = rng.sample([0, 1, 2, 3, 4, 5, 6], 5)
        gpus = np.repeat(topology.first_gpu_of_node[nodes], 2) + np.tile([0, 1], 5)
        plan = build_plan(topology, job, Placement(gpus))
        before = PreviousPlan(plan, topology)
        _, found = solve_orders(problem, Budget(60.0), previous=before)
        kept = before.seats(job).kept
        assert found.value <= alone.value
        assert kept(found.placement.gpu_of_rank) >= kept(alone.placement.gpu_of_rank)
        assert violations(found.placement, topology, job) == []
