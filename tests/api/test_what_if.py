"""What a plan would save were what is assumed otherwise."""

from dataclasses import replace

import pytest

import placer
from placer.api.checked_plan import what_if
from placer.assumed import OVERSUBSCRIPTION, RATE, Assumption
from placer.cost import JITTER
from placer.cost.step import StepModel
from placer.placement.baselines import baseline

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
