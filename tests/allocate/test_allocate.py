"""The library call: what stays, what moves, rules, ties, bounds, grades, requests."""

import random
from dataclasses import replace

import numpy as np
import pytest

import placer
from placer.allocate.shared import left_by, use_of
from placer.base.budget import HostBudget
from placer.base.errors import InfeasibleError, InputError
from placer.base.hostlist import expand
from placer.cost import JITTER
from placer.emit.registry import requests
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.rules import Rules
from placer.placement.placement import Placement
from placer.report.allocation_table import grade_text
from placer.topology.read import parse_topology
from tests.allocate.machines import racks, training
from tests.texts import table

RACK = {"tp": "node", "cp": "rack", "pp": "rack"}
FIVE = racks({"A": 18, "B": 18, "C": 16, "D": 10, "E": 6})


def replica(name="one", dp=1, **more):
    """A job whose replicas are sixteen nodes in one rack each."""
    sizes = {"tp": 4, "cp": 2, "pp": 8, "vp": 8, "dp": dp, "require": RACK}
    return training(name, **{**sizes, **more})


def where(found):
    """Racks of every job, and the nodes that it has in each."""
    return {job.name: job.nodes_by_domain for job in found.jobs}


def test_every_plan_passes_its_check_and_names_its_own_hosts():
    found = placer.allocate(FIVE, [replica("one"), replica("two", pp=4)])
    plan = found.jobs[0].plan
    with pytest.raises(InputError, match="both have"):
        placer.allocate(FIVE, replica("new"), keep=[plan, plan])
    for job in found.jobs:
        placer.check(job.plan)
        assert set(job.plan.nodes) == set(expand(job.hosts))
        assert set(expand(job.plan.inputs["hosts"])) == set(expand(job.hosts))
        assert job.plan.score["step_time_s"] == pytest.approx(job.step_time_s)


def test_a_job_moves_only_where_that_is_worth_its_price():
    """The old job has the one whole rack that the new one needs."""
    machine = racks({"A": 16, "B": 16, "C": 4})
    loose = training("old", tp=4, dp=4)
    plan = placer.allocate(machine, loose, free="A[01-04]").jobs[0].plan
    new = replica("new", dp=2)
    with pytest.raises(InfeasibleError):
        placer.allocate(machine, new, keep=[plan])
    found = placer.allocate(machine, new, move=[plan], move_price=5.0)
    assert [job.moved for job in found.jobs] == [False, True]
    assert where(found)["old"] == {"C": 4}
    assert found.cost == pytest.approx(sum(job.value for job in found.jobs) + 5.0)
    stays = placer.allocate(machine, replica("new"), move=[plan], move_price=5.0)
    assert [job.moved for job in stays.jobs] == [False, False]
    assert where(stays)["old"] == {"A": 4}


def test_a_job_that_runs_has_the_cost_of_the_objective():
    """Where it stays, its hop cost counts, not its seconds."""
    machine = racks({"A": 4, "B": 4})
    weights = {"tp": 4000.0, "dp": 4.0}
    old = replace(training("old", tp=4, dp=4), weights=weights)
    plan = placer.allocate(machine, old, free="A[01-04]", objective="hop-cost")
    new = replace(training("new", tp=4, dp=2), weights=weights)
    found = placer.allocate(
        machine, new, move=[plan.jobs[0].plan], move_price=1e6, objective="hop-cost"
    )
    _, stays = found.jobs
    assert not stays.moved
    assert stays.value == plan.jobs[0].value
    assert found.cost == sum(job.value for job in found.jobs)


def test_jobs_that_must_be_apart_share_no_rack():
    machine = racks({"A": 18, "B": 18, "C": 18})
    jobs = [training(name, tp=4, dp=4) for name in ("one", "two", "three")]
    together = placer.allocate(machine, jobs)
    assert len({rack for own in where(together).values() for rack in own}) == 1
    apart = placer.allocate(machine, jobs, apart="rack")
    assert sorted(rack for own in where(apart).values() for rack in own) == [*"ABC"]
    with pytest.raises(InfeasibleError, match="beside each other"):
        placer.allocate(machine, [*jobs, training("four", tp=4, dp=4)], apart="rack")


def test_jobs_that_stay_are_apart_from_new_ones():
    """Two nodes are free beside the job that stays, and two in racks of their own."""
    machine = racks({"A": 18, "B": 18, "C": 18})
    kept = placer.allocate(machine, replica("kept"), free="A[01-16]").jobs[0].plan
    new, free = training("new", tp=4, dp=2), "A[17-18],B01,C01"
    beside = placer.allocate(machine, new, free=free, keep=[kept])
    assert where(beside)["new"] == {"A": 2}
    apart = placer.allocate(machine, new, free=free, keep=[kept], apart="rack")
    assert where(apart)["new"] == {"B": 1, "C": 1}
    assert apart.left["free_nodes"] == 2
    assert apart.status == "optimal"
    with pytest.raises(InfeasibleError, match="8 in a rack of a job that stays"):
        placer.allocate(machine, new, free="A[17-18],B01", keep=[kept], apart="rack")


@pytest.mark.parametrize(
    ("spare", "busy"),
    [
        (0, "C[17-18],D[11-18],E[07-18]"),
        pytest.param(1, "C18,D[12-18],E[08-18]", marks=pytest.mark.slow),
    ],
)
def test_a_tolerance_buys_a_more_useful_rest(spare, busy):
    """A slower allocation leaves racks A and B whole; without one it is not taken.

    With a spare node in every rack that is used as well.
    """
    machine = racks(dict.fromkeys("ABCDE", 18))
    jobs = replica(dp=2, require={"tp": "node", "cp": "rack"})
    rules = Rules(spares={"rack": spare} if spare else {})
    best = placer.allocate(machine, jobs, busy=busy, rules=rules)
    assert sorted(best.jobs[0].nodes_by_domain.values()) == [16 + spare] * 2
    found = placer.allocate(machine, jobs, busy=busy, tolerance=0.05, rules=rules)
    used = {"C": 16 + spare, "D": 10 + spare, "E": 6 + spare}
    assert where(found) == {"one": used}
    assert best.jobs[0].value < found.jobs[0].value <= 1.05 * best.jobs[0].value
    assert found.left["whole_domains"] == {"rack": 2}
    assert best.left["whole_domains"] == {"rack": 1}


def test_of_steps_that_nobody_can_tell_apart_the_one_on_fewest_leaves():
    """Three leaves cost less than runs differ by; who says what comes next has four."""
    free = {"A": 6, "B": 5, "C": 2, "D": 5, "E": 4, "F": 4, "G": 2}
    machine = racks(dict.fromkeys(free, 8), gpus=8, joined=False)
    *inner, outer = machine.tiers
    machine = replace(machine, tiers=(*inner, replace(outer, latency=8e-6)))
    hosts = [f"{leaf}{n:02}" for leaf, room in free.items() for n in range(1, room + 1)]
    job = training("one", tp=8, pp=2, dp=8)
    found = placer.allocate(machine, job, free=hosts)
    assert len(found.jobs[0].nodes_by_domain) == 3
    assert found.lower_bound < found.cost <= found.lower_bound * (1 + JITTER)
    more = {"demand": {"6": 1}, "tolerance": JITTER}
    coming = placer.allocate(machine, job, free=hosts, **more)
    assert coming.left["largest_free"] == {"rack": 6}
    assert coming.cost < found.cost


def test_a_grade_says_what_all_nodes_would_save():
    """Of the best free ones, in the words of the tier; granted ones count as free."""
    found = placer.allocate(FIVE, replica(), free="D[01-10]", grade="A[01-16]")
    assert where(found) == {"one": {"A": 16}}
    grade = {"objective": "time", "value": 1.0, "tier": "rack", "stranded_nodes": 0.0}
    grade["best_free"] = {"value": 1.0, "domains": {"A": (4, 18), "B": (4, 18)}}
    grade["best"] = {"value": 0.9, "domains": {"A": (18, 18)}}
    assert grade_text(grade) == (
        "no free nodes are better: 1 s a step; "
        "were all nodes free, 1 full rack would save 10 % more"
    )


@pytest.mark.parametrize(*table("allocate/tables.yaml", "wrong_arguments_are_named"))
def test_wrong_arguments_are_named(argument, message):
    with pytest.raises(InputError, match=message):
        placer.allocate(FIVE, replica(), **argument)


@pytest.mark.parametrize(*table("allocate/tables.yaml", "without_room"))
def test_jobs_without_room_are_told_what_would_help(jobs, more, message):
    """Who has none, how many nodes are missing, or how jobs would fit."""
    with pytest.raises(InfeasibleError, match=message):
        placer.allocate(FIVE, [replica(**keys) for keys in jobs], **more)


def test_the_same_question_has_the_same_answer():
    jobs = [replica("one"), training("two", tp=4, dp=5)]
    one, two = (placer.allocate(FIVE, jobs).to_dict() for _ in range(2))
    for found in (one, two):
        for job in found["jobs"]:
            job["plan"].pop("solver")
    assert one == two


def test_the_least_strict_request_guarantees_the_step():
    """Whatever nodes a scheduler gives that keeps it, the job is as fast.

    Files for schedulers name the nodes and the shape.
    """
    job = replica(dp=2, require={"tp": "node", "cp": "rack"})
    found = placer.allocate(FIVE, job, requests=True)
    request = found.jobs[0].plan.request
    assert request["value"] <= found.jobs[0].value * (1 + 1e-9)
    assert (request["tier"], request["slice"]) == ("rack", 16)
    texts = requests(found.jobs[0].plan, "two")
    names = {"slurm.sbatch", "kueue.yaml", "kai.yaml", "volcano.yaml", "grove.yaml"}
    assert texts.keys() <= names
    slurm = texts["slurm.sbatch"]
    assert "#SBATCH --segment=16" in slurm
    excluded = slurm.split("--exclude=")[1].splitlines()[0]
    assert not set(expand(excluded)) & set(found.jobs[0].plan.nodes)
    assert all("least strict request" in text for text in texts.values())
    rng = random.Random(0)
    for _ in range(2):
        names = rng.sample("ABC", 2)
        held = ([h for h in FIVE.node_names if h[0] == rack] for rack in names)
        hosts = [host for own in held for host in rng.sample(own, 16)]
        given = placer.place(FIVE, job, hosts=hosts, effort="quick")
        assert given.bound["value"] <= request["value"] * (1 + 1e-9)


@pytest.mark.parametrize("factor", ["bandwidth_factor", "compute_factor"])
def test_no_shape_guarantees_the_step_where_slow_nodes_may_be_given(factor):
    """The scheduler does not know that rack C is slow; the plan's nodes are not."""
    machine = racks({"A": 16, "B": 16, "C": 16})
    slow = np.array([name.startswith("C") for name in machine.node_names])
    machine = replace(machine, **{factor: np.where(slow, 0.5, 1.0)})
    found = placer.allocate(machine, replica(dp=2), requests=True)
    assert where(found)["one"].keys() == {"A", "B"}
    assert "slice" not in found.jobs[0].plan.request


def test_requests_say_that_spare_nodes_are_not_asked_for():
    """The spare node is the job's and holds no rank; no scheduler is asked for it."""
    rules = Rules(spares={"rack": 1})
    job = placer.allocate(FIVE, replica(), rules=rules, requests=True).jobs[0]
    (spare,) = job.plan.rules["spare_nodes"]
    assert {*expand(job.hosts)} == {*job.plan.nodes, spare}
    placer.check(job.plan)
    for text in requests(job.plan, job.name).values():
        assert f"# Not asked for: the spare nodes of the plan, {spare}.\n" in text


def test_no_request_asks_for_slices_that_the_nodes_do_not_have():
    """Seven nodes of one rack and six of another are no slices of thirteen."""
    machine = racks({"a": 4, "b": 7, "c": 6})
    uneven = training("uneven", tp=4, dp=13, require={"tp": "node"})
    job = placer.allocate(machine, uneven, requests=True).jobs[0]
    assert sorted(job.nodes_by_domain.values()) == [6, 7]
    assert "slice" not in job.plan.request
    assert "ask for its nodes" in requests(job.plan, job.name)["slurm.sbatch"]


def test_the_answer_says_why_the_search_ended():
    """A proof counts more than a limit; without one the text names what ended it."""
    jobs = [replica("one", dp=2, require={"tp": "node"}), replica("two")]
    free = "A[01-18],B[01-14],C[01-10],D[01-06]"
    assert placer.allocate(FIVE, replica()).stop_reason == "proved"
    cut = placer.allocate(FIVE, jobs, free=free, time_limit=0.01)
    assert cut.status == "feasible"
    assert cut.to_dict()["stop_reason"] == "time-limit"
    assert "The time limit ended the search." in cut.summary()
    told = placer.allocate(FIVE, jobs, free=free, stop=lambda: True)
    assert told.stop_reason == "interrupted"


# Budgets beside the tree hold for all jobs together, those that stay included.


def of(hosts, **limits):
    """A limit on what some hosts run."""
    return HostBudget(",".join(hosts), frozenset(hosts), **limits)


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
    machine = replace(racks({"a": 4, "b": 4}, gpus=1), budgets=(feed,))
    jobs = [ring("one", 2), ring("two", 2), ring("three", 2)]
    found = placer.allocate(machine, jobs)
    assert held([job.plan for job in found.jobs], feed) <= 4
    assert found.status == "optimal"
    with pytest.raises(InfeasibleError, match="2 GPUs of a budget are left"):
        placer.allocate(
            replace(machine, budgets=(of([*feed.names, "b01", "b02"], gpus=2),)), jobs
        )


def test_what_stays_uses_its_part():
    """All that is allowed is in use, by a job that stays or that may move."""
    feed = of(["a01", "a02", "a03", "a04"], gpus=3)
    machine = replace(racks({"a": 5, "b": 1, "c": 3}, gpus=1), budgets=(feed,))
    old = placer.allocate(machine, ring("old", 3), free="a[01-03]").jobs[0].plan
    with pytest.raises(InfeasibleError, match="0 GPUs on a01,a02,a03,a04"):
        placer.allocate(machine, ring("new", 2), keep=[old], busy="c[01-03]")
    found = placer.allocate(machine, ring("new", 3), move=[old], move_price=5.0)
    new, moved = found.jobs
    assert held([new.plan, moved.plan], feed) <= 3
    assert not moved.moved


def test_a_plan_away_from_a_budget_passes_its_check():
    """The budget binds among all free nodes, and not on those that were chosen."""
    machine, feed = racks({"a": 4, "b": 4}, gpus=1), of(["a01", "a02"], gpus=1)
    machine = replace(machine, budgets=(feed,))
    job = ring("one", 4)
    (found,) = placer.allocate(machine, job).jobs
    assert found.nodes_by_domain == {"b": 4}
    placer.check(found.plan, machine, replace(job, sha256=found.plan.job["sha256"]))


def test_a_fair_share_is_among_those_who_use_an_uplink():
    """Of a full uplink a job has half beside one other, however many are elsewhere."""
    (left,) = left_by([(np.array([0.9, 0.9]),), (np.array([0.0, 0.8]),)])
    assert left.tolist() == pytest.approx([1 / 2, 1 / 3])


ISLANDS = """\
format: placer/topology
version: 1
name: m
tiers:
  - {name: island, size: 2, bandwidth: 900GB/s, latency: 1us, scale_up: true}
  - {name: node, size: 2, bandwidth: 900GB/s, latency: 1us, scale_up: true}
  - {name: rack, bandwidth: 50GB/s, latency: 5us}
  - {name: cluster, bandwidth: 50GB/s, latency: 8us, oversubscription: 8}
layout: "cluster:1 rack:2 node:2"
"""


def test_islands_inside_nodes_do_not_hide_the_load_of_uplinks():
    """Islands as fast as their node leave all uplinks as busy as without them."""
    lines = ISLANDS.splitlines(keepends=True)
    whole = "".join([*lines[:4], lines[5].replace("size: 2", "size: 4"), *lines[6:]])
    cut, usual = (
        use_of(
            parse_topology(text, "m.yaml"),
            training("one", tp=4, dp=4),
            Placement(np.arange(16)),
        )
        for text in (ISLANDS, whole)
    )
    assert cut[1].min() > 0
    for one, other in zip(cut, usual, strict=True):
        assert one.tolist() == pytest.approx(other.tolist())


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
