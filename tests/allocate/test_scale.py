"""Large machines, in time and near the bound: jobs share the time limit and racks."""

import random
from unittest.mock import patch

import pytest

import placer.allocate.offers as module
from placer.api.allocate import allocate
from tests.allocate.machines import racks, training

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
@pytest.mark.parametrize(
    ("require", "thin", "each", "all_jobs"),
    [(RACK, 1, 1.01, 1.01), ({"tp": "node"}, 1, 1.01, 1.01), ({}, 4, 1.07, 1.06)],
    ids=["rack", "node", "thin uplinks"],
)
def test_ten_jobs_on_18432_nodes(require, thin, each, all_jobs):
    """Near their bounds, pipelines whole or cut; behind thin uplinks in own racks."""
    machine = racks({f"r{i:04}": 18 for i in range(1_024)}, oversubscription=thin)
    busy = random.Random(1).sample(machine.node_names, 500)
    require = {"tp": "node", **require}
    jobs = [
        training(f"job{i}", **REPLICA, dp=dp, require=require)
        for i, dp in enumerate((128, 128, 64, 64, 64, 32, 32, 16, 8, 8))
    ]
    found = allocate(machine, jobs, busy=sorted(busy), time_limit=300)
    assert found.cost <= all_jobs * found.lower_bound
    assert all(job.value <= each * job.lower_bound for job in found.jobs)


def test_every_job_has_its_share_of_the_time():
    """Each search may take an equal part of what those before it left."""
    given = []
    placed = module.solved_in_time

    def told(problem, budget):
        given.append(budget.seconds_left)
        return placed(problem, budget)

    machine = racks(dict.fromkeys("abcdefgh", 4))
    jobs = [training(f"job{i}", tp=4, pp=2, dp=i) for i in (1, 2, 3)]
    with patch.object(module, "solved_in_time", told):
        allocate(machine, jobs, time_limit=600)
    # Three alone and three together.
    assert 90 < given[0] <= 100
    assert given[0] < given[1] < given[2]
