"""The order in use is kept where nothing measurable is to win, and else left gently.

At the end what a plan would save were what is assumed otherwise.
"""

from dataclasses import replace

import numpy as np
import pytest

import placer
from placer import testing
from placer.api.checked_plan import what_if
from placer.assumed import OVERSUBSCRIPTION, RATE, Assumption
from placer.cost import JITTER
from placer.cost.step import StepModel
from placer.job.started import Started
from placer.placement.baselines import baseline
from placer.placement.build import placement_of_plan
from placer.topology.read import parse_topology


def machine(racks, thin):
    """Racks of 4 nodes, joined by uplinks that are so many times too thin."""
    return parse_topology(
        "{format: placer/topology, version: 1, name: thin, tiers: ["
        "{name: node, size: 8, bandwidth: 450GB/s, latency: 1us, scale_up: true}, "
        "{name: rack, bandwidth: 50GB/s, latency: 5us}, "
        "{name: cluster, bandwidth: 50GB/s, latency: 9us, distance: 18, "
        f"oversubscription: {thin}}}]"
        f", layout: 'cluster:1 rack:{racks} node:4'}}",
        "thin.yaml",
    )


def job(pp, dp):
    return testing.job(
        "trained",
        tp=8,
        pp=pp,
        dp=dp,
        order="tp-cp-ep-pp-dp",
        model={"layers": 32, "hidden": 4096, "ffn": 16384, "heads": 32, "vocab": 32000},
        sequence=4096,
        micro_batches=16,
        weights={"tp": 400, "pp": 40, "dp": 4},
        compute={"tflops_per_gpu": 400},
    )


SHUFFLED = "r1-n1,r2-n1,r2-n2,r1-n2,r1-n3,r2-n3,r2-n4,r1-n4"


@pytest.mark.parametrize(("pp", "thin"), [(1, 1.0), (4, 1.3), (2, 8.0), (1, 8.0)])
def test_nobody_moves_for_less_than_jitter(pp, thin):
    """Whatever the machine: moved is who gains more than runs differ, for sure."""
    whole, work = machine(2, thin), job(pp, 8 // pp)
    plan = placer.place(whole, work, hosts=SHUFFLED).plan
    told, usual = plan.verdict, plan.baselines["given-order"]
    low, high = told["saved_s_interval"]
    assert low <= told["saved_s"] <= high
    if told["advice"] == "move":
        assert low > JITTER * usual["step_time_s"]
        assert told["ranks_moved"] > 0
        assert told["saved_s"] == usual["step_time_s"] - plan.bound["value"]
    else:
        assert told["ranks_moved"] == 0
        assert plan.nodes == tuple(SHUFFLED.split(","))
        assert plan.bound["value"] == usual["step_time_s"]
        assert told["text"].startswith("Keep your order: no")
    placer.check(plan)


def test_full_effort_takes_the_best_all_the_same():
    """The bound is of both plans, and the better one says that it saves nothing."""
    whole, work = machine(2, 1.0), job(2, 4)
    kept, best = (
        placer.place(whole, work, hosts=SHUFFLED, effort=effort, time_limit=5).plan
        for effort in ("measurable", "full")
    )
    assert best.bound["value"] < kept.bound["value"]
    assert best.bound["status"] == "optimal"
    assert kept.bound["status"] == "feasible"
    assert kept.bound["gap"] > 0
    assert kept.bound["lower_bound"] <= best.bound["value"]
    assert kept.verdict["saved_s"] == pytest.approx(best.verdict["saved_s"])
    assert best.verdict["advice"] == "keep"
    assert best.verdict["text"].startswith("Nothing measurable to win: ")
    assert "more than " in kept.verdict["text"]
    placer.check(kept)
    forged = {**kept.verdict, "saved_s": 2 * kept.bound["value"]}
    with pytest.raises(placer.CheckError, match=r"verdict\.saved_s"):
        placer.check(replace(kept, verdict=forged))


def test_a_job_stays_on_the_nodes_that_it_has():
    """Of equally good racks those of the given order are taken, also by who moves."""
    whole, work = machine(4, 1.0), job(2, 4)
    hosts = [*whole.node_names]
    assert {*placer.place(whole, work).plan.nodes} == {*hosts[:8]}
    ruled = {"pp": "rack"}
    order = [*hosts[:3], hosts[4], hosts[3], *hosts[5:]]
    plan = placer.place(whole, work, hosts=order, require=ruled).plan
    assert plan.verdict["advice"] == "move"
    assert "breaks a rule of the job" in plan.verdict["text"]
    assert {*plan.nodes} == {*hosts[:8]}
    usual = baseline("given-order", whole, work).gpu_of_rank
    found = placement_of_plan(plan, whole).gpu_of_rank
    assert np.count_nonzero(found == usual) >= 48


def test_a_launcher_that_sorts_hosts_is_the_order_in_use():
    """torchrun's c10d has them by name, whatever order they are given in."""
    work = replace(job(2, 4), started=Started("torchrun-c10d", "t.sh", 9))
    kept, moved = (
        placer.place(machine(2, thin), work, hosts=SHUFFLED).plan for thin in (1.0, 8.0)
    )
    assert kept.verdict["advice"] == "keep"
    assert kept.nodes == tuple(sorted(SHUFFLED.split(",")))
    usual = moved.baselines["sorted-hosts"]["step_time_s"]
    assert usual != moved.baselines["given-order"]["step_time_s"]
    assert moved.verdict["saved_s"] == usual - moved.bound["value"]
    for plan in (kept, moved):
        assert plan.verdict["against"] == "torchrun-c10d"
        assert "hosts by name" in plan.verdict["text"]
        placer.check(plan)


MACHINE = "leaf:3 node:5 gpu:8"


def thin_machine():
    """Uplinks that are said, so thin that a random order is slower."""
    return placer.read_topology(MACHINE, oversubscription={"cluster": 8})


def at_rate(value, interval=None):
    """Pipelines of two hosts at a rate that is assumed."""
    job = placer.read_job("quickstart")
    axes = replace(job.parallelism, tp=8, pp=2, dp=6)
    compute = replace(job.compute, tflops_per_gpu=value)
    assumed = (Assumption(RATE, value, "usual", "--tflops RATE", interval),)
    return replace(job, parallelism=axes, compute=compute, assumed=assumed)


def saved(value):
    """The share that the first placement saves beside a random one, at a rate."""
    machine, job = thin_machine(), at_rate(value)
    steps = [
        placer.score(machine, job, baseline(name, machine, job, 0))["step_time_s"]
        for name in ("given-order", "random")
    ]
    return 1 - steps[0] / steps[1]


def asked(job, machine):
    orders = [baseline(n, machine, job, 0) for n in ("given-order", "random")]
    return what_if(machine, StepModel(machine, job), *orders)


def test_the_rate_is_told_where_it_changes_the_verdict():
    """Where at an end of the interval it saves less than runs differ."""
    plain = thin_machine()
    low = next(rate for rate in (1, 0.1, 0.01, 0.001, 0.0001) if saved(rate) < JITTER)
    high = next(rate for rate in (400, 4000, 40000) if saved(rate) > JITTER)
    found = asked(at_rate(low, (low, high)), plain)
    assert [(entry["key"], entry["value"]) for entry in found] == [
        (RATE, low),
        (RATE, high),
    ]
    for entry, rate in zip(found, (low, high), strict=True):
        assert entry["saved_share"] == pytest.approx(saved(rate))
    assert asked(at_rate(high, (high, 2 * high)), plain) == []
    assert asked(at_rate(low), plain) == []


def test_uplinks_are_tried_at_two_ratios():
    """Only where they are assumed: not on a machine that says them."""
    machine, job = placer.read_topology(MACHINE), at_rate(400)
    found = [e for e in asked(job, machine) if e["key"] == OVERSUBSCRIPTION]
    assert [entry["value"] for entry in found] == [2, 4]
    assert found[1]["saved_share"] >= found[0]["saved_share"] > 0
    given = placer.read_topology(MACHINE, oversubscription={"cluster": 2})
    assert asked(job, given) == []
