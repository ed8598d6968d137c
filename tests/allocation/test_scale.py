"""Large machines, in time and near the bound."""

from __future__ import annotations

import random

import pytest

from placer.api.allocate import allocate
from tests.allocation.machines import racks, training

REPLICA = {"tp": 4, "cp": 2, "pp": 8, "vp": 8}
RACK = {"tp": "node", "cp": "rack", "pp": "rack"}


def test_half_a_machine_of_2500_nodes():
    """A job of 1,024 GPUs on 2,500 nodes, half of them free."""
    machine = racks({f"r{i:03}": 20 for i in range(125)}, gpus=8)
    free = random.Random(1).sample(machine.node_names, 1_250)
    job = training(**REPLICA, dp=16, require=RACK)
    found = allocate(machine, job, free=sorted(free))
    assert found.cost <= 1.001 * found.lower_bound


@pytest.mark.slow
@pytest.mark.parametrize("require", [RACK, {"tp": "node"}], ids=["rack", "node"])
def test_ten_jobs_on_18432_nodes(require):
    """Each within 1 % of its bound, pipelines whole or cut."""
    machine = racks({f"r{i:04}": 18 for i in range(1_024)})
    busy = random.Random(1).sample(machine.node_names, 500)
    jobs = [
        training(f"job{i}", **REPLICA, dp=dp, require=require)
        for i, dp in enumerate((128, 128, 64, 64, 64, 32, 32, 16, 8, 8))
    ]
    found = allocate(machine, jobs, busy=sorted(busy), time_limit=300)
    assert all(job.value <= 1.01 * job.lower_bound for job in found.jobs)


@pytest.mark.slow
def test_ten_jobs_behind_thin_uplinks():
    """Each has racks of its own, in which runs of pipelines are few."""
    machine = racks({f"r{i:04}": 18 for i in range(1_024)}, oversubscription=4)
    busy = random.Random(1).sample(machine.node_names, 500)
    jobs = [
        training(f"job{i}", **REPLICA, dp=dp, require={"tp": "node"})
        for i, dp in enumerate((128, 128, 64, 64, 64, 32, 32, 16, 8, 8))
    ]
    found = allocate(machine, jobs, busy=sorted(busy), time_limit=300)
    assert found.cost <= 1.06 * found.lower_bound
    assert all(job.value <= 1.07 * job.lower_bound for job in found.jobs)
