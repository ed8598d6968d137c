"""Hop cost: edges and their sum by the definition."""

import random

import numpy as np
import pytest

from placer.cost.hop_cost import HopCost, hop_cost
from placer.job.axes import Parallelism
from placer.job.edges import hop_edges
from placer.job.model import Job
from placer.placement.placement import Placement
from placer.topology.read import read_topology
from tests.solve import oracle
from tests.solve.random_cases import random_job, random_machine
from tests.texts import table


@pytest.mark.parametrize(*table("cost/hops.yaml", "edges_of_a_group"))
def test_edges_of_a_group(sizes, axis, of, edges):
    """Those between members of one group, by hand."""
    job = Job(name="j", parallelism=Parallelism(**sizes), weights={axis: 1})
    ((_, _, every),) = hop_edges(job)
    pairs = [sorted(pair) for pair in every.tolist() if set(pair) <= {*of}]
    assert sorted(f"{one}{other}" for one, other in pairs) == edges.split()


def test_hand_worked_cost():
    """A ring of 4 over three nodes of two racks costs what a count by hand says."""
    machine = read_topology("rack:4 node:2 gpu:4")
    near, rack, far = (tier.distance for tier in machine.tiers)
    job = Job(name="j", parallelism=Parallelism(tp=4), weights={"tp": 2.0})
    # GPUs 0 and 1 on node 0, 4 on node 1 (same rack), 8 on node 2 (next rack).
    placement = Placement(np.array([0, 1, 4, 8]))
    # Hops 0-1 in the node, 1-4 in the rack, 4-8 and 8-0 in the cluster.
    assert hop_cost(machine, job, placement) == 2.0 * (near + rack + far + far)
    counts = HopCost(machine, job).crossings(placement.gpu_of_rank)
    assert counts["tp"].tolist() == [1, 1, 2]


@pytest.mark.parametrize("exact", [True, False], ids=["integer", "float"])
def test_the_cost_is_that_of_every_edge(exact):
    """Random jobs: integer weights give the sum over edges exactly, others to 1e-9."""
    for seed in range(20):
        rng = random.Random(seed)
        machine = random_machine(rng, 24, 9, (2, 3, 4))
        weights = {a: rng.randint(0, 9) for a in ("tp", "cp", "pp", "dp", "ep", "edp")}
        job = random_job(rng, min(machine.num_gpus, 24), machine, "hop-cost")
        share = 1 if exact else 0.1
        job = Job(
            "j", job.parallelism, weights={a: w * share for a, w in weights.items()}
        )
        gpus = np.array(rng.sample(range(machine.num_gpus), job.world_size))
        nodes = tuple(machine.node_of_gpu[gpus].tolist())
        known = oracle.hop_cost(machine, job, nodes)
        found = HopCost(machine, job).cost(gpus)
        is_whole = exact and all(tier.distance % 1 == 0 for tier in machine.tiers)
        assert found == known if is_whole else found == pytest.approx(known, rel=1e-9)
