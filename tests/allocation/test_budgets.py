"""Budgets beside the tree hold for all jobs together, those that stay included."""

from dataclasses import replace

import pytest

import placer
from placer.base.budget import Budget
from placer.base.errors import InfeasibleError
from placer.job.axes import Parallelism
from placer.job.model import Job
from tests.allocation.machines import racks


def limited(machine, *budgets):
    return replace(machine, budgets=budgets)


def of(hosts, **limits):
    """A limit on what some hosts run."""
    return Budget(",".join(hosts), frozenset(hosts), **limits)


def ring(name, ranks, tier="rack"):
    """Replicas of one rank in a ring that stays in one domain."""
    sizes, rules = Parallelism(dp=ranks), {"dp": tier}
    return Job(name, sizes, weights={"dp": 1.0}, require=rules, launcher="free")


def held(plans, budget):
    """GPUs of a budget's hosts with ranks."""
    return sum(host in budget.names for plan in plans for host in plan.host_of_rank)


def test_jobs_share_what_each_alone_would_keep():
    """Either job fits into a, both together are too much for its feed."""
    feed = of(["a01", "a02", "a03", "a04"], gpus=4)
    machine = limited(racks({"a": 4, "b": 4}, gpus=1), feed)
    jobs = [ring("one", 2), ring("two", 2), ring("three", 2)]
    found = placer.allocate(machine, jobs)
    assert held([job.plan for job in found.jobs], feed) <= 4
    assert found.status == "optimal"
    with pytest.raises(InfeasibleError, match="2 GPUs of a budget are left"):
        placer.allocate(
            limited(machine, of([*feed.names, "b01", "b02"], gpus=2)),
            [ring("one", 2), ring("two", 2), ring("three", 2)],
        )


def test_what_stays_uses_its_part():
    """All that is allowed is in use, by a job that stays or that may move."""
    feed = of(["a01", "a02", "a03", "a04"], gpus=3)
    machine = limited(racks({"a": 5, "b": 1, "c": 3}, gpus=1), feed)
    old = placer.allocate(machine, ring("old", 3), free="a[01-03]").jobs[0].plan
    with pytest.raises(InfeasibleError, match="0 GPUs on a01,a02,a03,a04"):
        placer.allocate(machine, ring("new", 2), keep=[old], busy="c[01-03]")
    found = placer.allocate(machine, ring("new", 3), move=[old], move_price=5.0)
    new, moved = found.jobs
    assert held([new.plan, moved.plan], feed) <= 3
    assert not moved.moved


def test_a_plan_away_from_a_budget_passes_its_check():
    """The budget binds among all free nodes, and not on those that were chosen."""
    machine = limited(racks({"a": 4, "b": 4}, gpus=1), of(["a01", "a02"], gpus=1))
    job = ring("one", 4)
    (found,) = placer.allocate(machine, job).jobs
    assert found.nodes_by_domain == {"b": 4}
    placer.check(found.plan, machine, replace(job, sha256=found.plan.job["sha256"]))
