"""Budgets in a topology file: what they mean, what is wrong with one, and where."""

from __future__ import annotations

import pytest

from placer.base.errors import InputError
from placer.topology.read import parse_topology

BASE = """\
format: placer/topology
version: 1
name: small
gpu: {power: 1.2kW}
tiers:
  - {name: node, size: 4, bandwidth: 900GB/s, latency: 1us, scale_up: true}
  - {name: rack, bandwidth: 100GB/s, latency: 5us}
  - {name: cluster, bandwidth: 50GB/s, latency: 8us}
layout: "cluster:1 rack:12 node:2"
budgets:
  - """


def test_hosts_by_their_beginning() -> None:
    """An item that ends in ``*`` means every node that begins so; others are names."""
    text = BASE + '{hosts: "r[01-02]*,r10-n1", watts: 2.4kW}'
    (budget,) = parse_topology(text, "t").budgets
    assert sorted(budget.names) == ["r01-n1", "r01-n2", "r02-n1", "r02-n2", "r10-n1"]
    assert budget.most_gpus == 2
    assert str(budget) == "at most 2.4 kW at 1.2 kW a GPU on r[01-02]*,r10-n1"


def test_the_strictest_limit_holds() -> None:
    """Watts and GPUs limit the same GPUs; what a share of a GPU draws is no GPU."""
    text = BASE + '{hosts: "*", watts: 9.5kW, gpus: 9, replicas: 1}'
    (budget,) = parse_topology(text, "t").budgets
    assert (budget.most_gpus, budget.replicas, len(budget.names)) == (7, 1, 24)


def test_watts_need_the_power_of_a_gpu() -> None:
    """Without it nobody can tell how many GPUs a budget feeds."""
    text = (BASE + '{hosts: "r01*", watts: 3kW}').replace("gpu: {power: 1.2kW}\n", "")
    with pytest.raises(InputError, match="power of a GPU is not known"):
        parse_topology(text, "t.yaml")
