"""Flows of any sizes between ranks: what they cost beside groups, and at the least."""

import numpy as np
import pytest

from placer.cost.fabric import Fabric
from placer.cost.network import PlacedNetwork
from placer.cost.step import StepModel
from placer.documents import document_of
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.read import decode_job
from placer.job.traffic import RankTraffic
from placer.solve.bounds.network.ideal import IdealNetwork
from placer.solve.problem.compiled import Problem
from placer.topology.read import read_topology
from tests.cost.reference import reference_seconds

MACHINE = "block:2 rack:2 node:2 gpu:4"


def network(seed):
    """All ranks on random GPUs."""
    machine = read_topology(MACHINE)
    rng = np.random.default_rng(seed)
    return PlacedNetwork(Fabric.of(machine), rng.permutation(machine.num_gpus)), rng


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("size", [2, 5, 8, 32])
def test_flows_between_all_of_a_group_are_its_all_to_all(seed, size):
    """To the last digit, wherever the group lies."""
    placed, rng = network(seed)
    members = rng.permutation(32)[:size]
    first, second = (grid.ravel() for grid in np.meshgrid(members, members))
    apart = first != second
    sizes = np.full(int(apart.sum()), 8e6)
    flows = placed.flows(first[apart], second[apart], sizes)
    group = placed.all_to_all(members[None], 8e6 * size)
    assert flows.seconds.max() == pytest.approx(group.seconds[0], rel=1e-12)
    assert flows.bytes_by_tier == pytest.approx(group.bytes_by_tier)


@pytest.mark.parametrize("seed", range(20))
def test_agree_with_plain_loops(seed):
    """Both scorers give flows of random sizes the same time."""
    placed, rng = network(seed)
    pairs = np.unique(rng.integers(32, size=(int(rng.integers(1, 80)), 2)), axis=0)
    first, second = pairs[pairs[:, 0] != pairs[:, 1]].T
    sizes = rng.exponential(1e7, len(first))
    share, fixed_s = (1.0, 0.0) if seed % 2 else (0.5, 1e-3)
    traffic = RankTraffic(first, second, sizes, False, share, fixed_s)
    job = Job("flows", Parallelism(dp=32), traffic=traffic)
    slow = reference_seconds(placed.fabric.topology, job, placed.gpu_of_rank.tolist())
    fast = StepModel(placed.fabric.topology, job).step(placed.gpu_of_rank).step_time_s
    assert fast == pytest.approx(slow, rel=1e-12)


def test_a_pair_reaches_a_part_of_a_nic_and_several_fill_it():
    """At half of the rate one message takes twice as long, and two no longer."""
    machine = read_topology(MACHINE)
    placed = PlacedNetwork(Fabric.of(machine), np.arange(32))
    size = np.full(2, 1e9)
    whole = placed.flows(np.array([0]), np.array([8]), size[:1]).seconds.max()
    half = placed.flows(np.array([0]), np.array([8]), size[:1], 0.5).seconds.max()
    both = placed.flows(np.array([0, 0]), np.array([8, 16]), size, 0.5).seconds.max()
    near = placed.flows(np.array([0]), np.array([1]), size[:1], 0.5).seconds.max()
    assert half == pytest.approx(2 * whole, rel=1e-3) == both
    assert near == placed.flows(np.array([0]), np.array([1]), size[:1]).seconds.max()


def test_a_port_is_shared_by_its_messages():
    """Two messages of a rank over its NIC take twice as long, in or out."""
    machine = read_topology(MACHINE)
    placed = PlacedNetwork(Fabric.of(machine), np.arange(32))
    size = np.full(2, 1e9)
    one = placed.flows(np.array([0]), np.array([8]), size[:1]).seconds.max()
    out = placed.flows(np.array([0, 0]), np.array([8, 16]), size).seconds.max()
    into = placed.flows(np.array([8, 16]), np.array([0, 0]), size).seconds.max()
    assert out == pytest.approx(2 * one, rel=1e-3) == into


@pytest.mark.parametrize("seed", range(15))
def test_no_placement_beats_the_ideal(seed):
    """Random flows on random placements, and the best network imaginable."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 60))
    pairs = np.unique(rng.integers(32, size=(count, 2)), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    sizes = rng.exponential(1e7, len(pairs))
    if not len(pairs):
        return
    content = {
        "format": "placer/job",
        "version": 1,
        "name": "t",
        "parallelism": {"dp": 32},
        "launcher": {"ranks": "free"},
        "traffic": {
            "from": pairs[:, 0].tolist(),
            "to": pairs[:, 1].tolist(),
            "bytes": sizes.tolist(),
        },
    }
    job = decode_job(document_of(content, "t"))
    machine = read_topology(MACHINE)
    problem = Problem.of(machine, job)
    ideal = IdealNetwork(Fabric.of(machine), problem.colocation.label, problem.capacity)
    least = StepModel(machine, job).step_on(ideal).step_time_s
    for _ in range(20):
        gpus = rng.permutation(32)
        assert least <= problem.goal.value(gpus) * (1 + 1e-12)
