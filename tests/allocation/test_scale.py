"""Large machines, in time and near the bound: jobs share the time limit and racks."""

import random
from unittest.mock import patch

import numpy as np
import pytest

import placer.allocation.offers as module
from placer.allocation.offers import Offers
from placer.allocation.question import Question, Wanted
from placer.allocation.together import in_turn
from placer.api.allocate import allocate
from placer.solve.run.budget import Budget
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


def test_fair_turns_leave_domains_to_others():
    """Behind thin uplinks no two jobs share a rack while there are racks for all."""
    machine = racks(dict.fromkeys("abcdefgh", 4), oversubscription=4)
    jobs = [training(f"job{i}", tp=4, pp=2, vp=4, dp=dp) for i, dp in enumerate((4, 2))]
    wanted = [Wanted(job.name, job) for job in jobs]
    everything = np.ones(machine.num_nodes, dtype=bool)
    question = Question(machine, everything, tuple(wanted))
    found = in_turn(Offers(question, Budget(60)), (0, 1), (0.0, 0.0), is_fair=True)
    held = [{*machine.domain_of_node[1][found[i].nodes].tolist()} for i in (0, 1)]
    assert not held[0] & held[1]
    assert len(held[0]) <= 6  # two thirds of eight, rounded up
