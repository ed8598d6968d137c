"""Budgets from a file to a plan: obeyed, checked, and named when they cannot hold."""

import pytest

import placer
from placer import testing
from placer.placement.check import violations
from placer.topology.read import parse_topology

MACHINE = """\
format: placer/topology
version: 1
name: small
gpu: {power: 1kW}
tiers:
  - {name: node, size: 4, bandwidth: 900GB/s, latency: 1us, scale_up: true}
  - {name: rack, bandwidth: 100GB/s, latency: 5us}
  - {name: cluster, bandwidth: 50GB/s, latency: 8us}
layout: "cluster:1 rack:4 node:2"
budgets:
  - {hosts: "r[1-2]*", watts: WATTS}
"""
# 24 ranks; the machine has 32 GPUs, 16 of them under the budget.
JOB = testing.job(tp=4, pp=2, dp=3, weights={"tp": 100, "pp": 10, "dp": 1})


def machine(watts):
    return parse_topology(MACHINE.replace("WATTS", watts), "t.yaml")


def test_obeyed_and_shown():
    """A plan keeps to the budget, says what it uses of it, and passes its check.

    Under a smaller one it does not.
    """
    found = placer.place(machine("8kW"), JOB)
    inside = sum(host.startswith(("r1", "r2")) for host in found.plan.host_of_rank)
    assert inside == 8
    assert "8 GPUs, at most 8 kW at 1 kW a GPU on r[1-2]*" in found.summary()
    placer.check(found.plan)
    over = "8 GPUs hold ranks, 2 too many, 8 kW are drawn, 1 kW too many"
    (fault,) = violations(found.plan, machine("7kW, gpus: 6, replicas: 1"), JOB)
    assert fault.endswith(f"a GPU and 1 replica on r[1-2]*: {over}")


def test_named_with_the_amount():
    """A budget that cannot hold is named with what lacks, and what would do."""
    with pytest.raises(placer.InfeasibleError) as found:
        placer.place(machine("7kW"), JOB)
    text = str(found.value)
    assert "at most 7 kW at 1 kW a GPU on r[1-2]*" in text
    assert "room for 23 of the 24 ranks: 1 rank too many, 1 kW" in text
    assert "it fits with 8 GPUs on r[1-2]*" in text
