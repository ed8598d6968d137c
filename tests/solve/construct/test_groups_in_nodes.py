"""Inside the racks that a placement gives them, groups are gathered in nodes."""

import numpy as np
import pytest

import placer
from placer.solve.construct.transfers.groups_in_nodes import groups_in_nodes
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from tests.solve.solving import known, solve
from tests.solve.test_workloads import machine_of, workload_of


def job_of(tp, gpus):
    group = {"name": "g", "collective": "all_reduce", "bytes": 1e6, "ranks": "all"}
    roles = [
        {"name": "a", "job": {"parallelism": {"dp": gpus}}},
        {"name": "b", "instances": 2, "job": {"parallelism": {"tp": tp}}},
    ]
    roles[1]["job"]["groups"] = [group]
    return workload_of(roles, [{"from": "a", "to": "b", "bytes": 1e9}])


@pytest.mark.parametrize("tp", [3, 6])
def test_groups_share_nodes_and_keep_their_racks(tp):
    """What a rack of nodes of 4 has of a group lies in as few of them as can be."""
    machine = machine_of([4, 4], 4)
    job = job_of(tp, 28 - 2 * tp)
    spread = np.arange(28).reshape(7, 4).T.ravel()
    problem = Problem.of(machine, job, None, 0)
    start = known(problem, spread)
    groups_in_nodes(problem, start, Budget(10.0))
    racks = machine.domain_of_gpu[1]
    assert (racks[start.gpu_of_rank] == racks[spread]).all()
    nodes = machine.node_of_gpu[start.gpu_of_rank]
    for first in (job.world_size - 2 * tp, job.world_size - tp):
        group = start.gpu_of_rank[first : first + tp]
        for rack in np.unique(racks[group]):
            own = nodes[first : first + tp][racks[group] == rack]
            assert len(np.unique(own)) == -(-len(own) // 4)


@pytest.mark.slow
def test_rollouts_beside_their_trainers_are_within_a_two_hundredth():
    """A rack holds three of eight shards at most, with all that sends and gets them."""
    job = placer.read_job("rl-weights-qwen3")
    found = solve(machine_of([13, 7, 18, 11, 9, 8], 4, "900GB/s"), job)
    assert found.lower_bound >= found.value * (1 - 5e-3)
