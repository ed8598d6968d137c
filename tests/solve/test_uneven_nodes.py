"""Launches by nodes whose sizes have nothing in common, in racks with NVLink."""

import random
from dataclasses import replace

import pytest

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.check import violations
from placer.topology.model import Tier
from tests.marks import slow
from tests.solve.machines import MODEL
from tests.solve.random_cases import machine_of
from tests.solve.solving import solve

SPEED = {"node": 900e9, "rack": 900e9, "block": 100e9, "cluster": 100e9}
DISTANCE = {"node": 1.0, "rack": 1.0, "block": 18.0, "cluster": 24.0}


def racks(sizes, block_of_rack):
    """Racks of nodes of these sizes; inside a rack all GPUs are as near."""
    tiers = [
        Tier(name, speed, 1e-6, speed > 100e9, 1.0, 1.0, DISTANCE[name])
        for name, speed in SPEED.items()
    ]
    rack = [number for number, nodes in enumerate(sizes) for _ in nodes]
    block = [block_of_rack[number] for number in rack]
    gpus = [size for nodes in sizes for size in nodes]
    return machine_of(gpus, [rack, block, [0] * len(gpus)], tiers)


def job(launcher, **sizes):
    """Rings of tensor groups in stages."""
    axes = Parallelism(order=("tp", "cp", "ep", "dp", "pp"), **sizes)
    weights = {"tp": 4000.0, "cp": 400.0, "pp": 40.0, "dp": 4.0}
    return Job("j", axes, weights=weights, launcher=launcher)


@pytest.mark.slow
def test_a_launch_by_nodes_is_as_good_as_a_free_one():
    """Rings of 16 in six racks of 28 GPUs on eight nodes: whole ones, and halves."""
    machine = racks([[4, 3, 4, 3, 4, 3, 4, 3]] * 6, [0, 0, 0, 1, 1, 1])
    sizes = {"tp": 4, "cp": 4, "pp": 3, "dp": 3}
    value = {}
    for launcher in ("free", "node-contiguous"):
        found = solve(machine, job(launcher, **sizes))
        assert not violations(found.placement, machine, job(launcher, **sizes))
        value[launcher] = found.value
    assert value["node-contiguous"] == value["free"]


@pytest.mark.parametrize("seed", [2, *slow([0, 1, *range(5, 10)])])
def test_nodes_hold_consecutive_ranks_whatever_their_sizes(seed):
    """Random racks, both objectives; no better than the bound of a free launch."""
    rng = random.Random(f"uneven {seed}")
    sizes = [
        [rng.choice([2, 3, 4]) for _ in range(rng.randint(2, 6))]
        for _ in range(rng.randint(2, 5))
    ]
    machine = racks(sizes, [number // 2 for number in range(len(sizes))])
    tp, cp, pp = rng.choice([(2, 2, 2), (4, 1, 2), (2, 1, 3), (1, 4, 2)])
    dp = machine.num_gpus // (tp * cp * pp)
    if not dp:
        pytest.skip("too few GPUs")
    work = job("node-contiguous", tp=tp, cp=cp, pp=pp, dp=dp)
    if seed % 2:
        work = replace(work, model=MODEL, sequence=4096, micro_batches=4, weights={})
        work = replace(work, compute=replace(work.compute, tflops_per_gpu=400.0))
    found = solve(machine, work)
    assert not violations(found.placement, machine, work)
    free = solve(machine, replace(work, launcher="free"))
    assert found.value >= free.lower_bound * (1 - 1e-9)
    assert found.lower_bound <= found.value
