"""Budgets beside the tree hold for all jobs together, those that stay included."""

import random
from dataclasses import replace
from itertools import product
from math import inf

import pytest

import placer
from placer.base.budget import Budget
from placer.base.errors import InfeasibleError
from placer.job.axes import Parallelism
from placer.job.model import Job
from tests.allocation.machines import racks
from tests.marks import slow
from tests.solve.oracle import hop_cost


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


def test_a_job_that_stays_has_a_hop_cost():
    machine = racks({"a": 4, "b": 4}, gpus=1)
    old = placer.allocate(machine, ring("old", 3)).jobs[0]
    found = placer.allocate(machine, ring("new", 3), keep=[old.plan])
    assert found.kept[0].value == old.value > 0


def least(machine, jobs):
    """The least sum of hop costs, by trying every node of every rank."""
    world = sum(job.world_size for job in jobs)
    best = inf
    for nodes in product(range(machine.num_nodes), repeat=world):
        parts, first = [], 0
        for job in jobs:
            parts.append(nodes[first : first + job.world_size])
            first += job.world_size
        if any({*a} & {*b} for i, a in enumerate(parts) for b in parts[:i]):
            continue
        gpus = machine.gpus_of_node.tolist()
        if any(nodes.count(node) > gpus[node] for node in nodes):
            continue
        if not all(_keeps(machine, budget, parts) for budget in machine.budgets):
            continue
        pairs = zip(jobs, parts, strict=True)
        best = min(best, sum(hop_cost(machine, job, own) for job, own in pairs))
    return best


def _keeps(machine, budget, parts):
    """Every rank is a replica of its own, so both limits count ranks."""
    inside = [machine.node_names[n] in budget.names for own in parts for n in own]
    limits = [n for n in (budget.gpus, budget.replicas) if n is not None]
    return sum(inside) <= min(limits)


@pytest.mark.parametrize("seed", [*range(8), *slow(range(8, 40))])
def test_every_way_on_small_machines(seed):
    """Budgets across racks: the least of all placements, proved."""
    rng = random.Random(f"budgets {seed}")
    sizes = {name: [rng.choice((1, 1, 2)) for _ in range(2)] for name in "ab"}
    machine = racks(sizes, gpus=2, joined=False)
    names = [*machine.node_names]
    budgets = [
        of(sorted(rng.sample(names, rng.randint(1, 3))), **{kind: rng.randint(1, 3)})
        for kind in rng.choice((["gpus"], ["replicas"], ["gpus", "replicas"]))
    ]
    machine = limited(machine, *budgets)
    jobs = [ring(f"j{i}", rng.randint(1, 3), "cluster") for i in range(2)]
    best = least(machine, jobs)
    if best == inf:
        with pytest.raises(InfeasibleError):
            placer.allocate(machine, jobs)
        return
    found = placer.allocate(machine, jobs)
    assert found.cost == pytest.approx(best, abs=1e-12)
    assert found.status == "optimal"
    assert found.lower_bound <= best + 1e-12
