"""Nodes that are left out still count for the uplinks of their domains."""

from __future__ import annotations

import numpy as np
import pytest

from placer.cost.fabric import Fabric
from placer.explain.score import score
from placer.placement.placement import Placement
from placer.topology.allocation import allocate
from placer.topology.read import parse_topology, read_topology
from tests.cost.random_cases import random_case
from tests.cost.reference import reference_step

UNAVAILABLE = """
format: placer/topology
version: 1
name: drained
tiers:
  - {name: node, size: 4, bandwidth: 900GB/s, latency: 1us, scale_up: true}
  - {name: rack, bandwidth: 100GB/s, latency: 5us}
  - {name: cluster, bandwidth: 100GB/s, latency: 8us, oversubscription: 2}
layout: "cluster:1 rack:2 node:3"
unavailable: {"r1-n[1-2]": "drained"}
"""


def test_uplinks_do_not_shrink() -> None:
    """A rack of three nodes of four keeps 12 GPUs' share, whoever leaves two out."""
    whole = read_topology("cluster:1 rack:2 node:3 gpu:4")
    fewer = allocate(whole, exclude=list(whole.node_names[:2]))
    drained = parse_topology(UNAVAILABLE, "drained.yaml")
    for machine in (fewer, drained):
        assert machine.gpus_of_domain(1).tolist() == [12, 12]
        assert np.bincount(machine.domain_of_node[1]).tolist() == [1, 3]
    capacity = Fabric.of(drained).uplink_capacity[2]
    assert capacity.tolist() == pytest.approx([12 * 100e9 / 2] * 2)


@pytest.mark.parametrize("seed", range(20))
def test_both_scorers_agree(seed: int) -> None:
    """The plain loops count the same on machines of which nodes are not used."""
    case = random_case(seed)
    used = np.unique(case.topology.node_of_gpu[case.gpu_of_rank])
    nodes = np.random.default_rng(seed).permutation(used)
    machine = case.topology.select(nodes)
    first = np.zeros(case.topology.num_nodes, dtype=np.int64)
    first[nodes] = (
        machine.first_gpu_of_node[:-1] - (case.topology.first_gpu_of_node[nodes])
    )
    at = case.gpu_of_rank + first[case.topology.node_of_gpu[case.gpu_of_rank]]
    fast = score(machine, case.job, Placement(at))
    slow = reference_step(machine, case.job, at.tolist())
    assert fast["step_time_s"] == pytest.approx(slow["step_time_s"], rel=1e-9)
    whole = score(case.topology, case.job, Placement(case.gpu_of_rank))
    assert fast["step_time_s"] == pytest.approx(whole["step_time_s"], rel=1e-9)
