"""Workloads are placed as well as any placement could, and bounds stay below."""

from dataclasses import replace

import numpy as np
import pytest

import placer
from placer.cost.step import StepModel
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.testing import racks
from tests.solve.random_workloads import three_levels, workload_of
from tests.solve.solving import solve


def halves(role):
    """Ten workers of half a rack: nine trays of four."""
    job = {"parallelism": {"tp": 4, "dp": 9}}
    return {"name": role, "instances": 10, "job": job, "require": {"tp": "node"}}


def test_ten_pairs_of_half_racks_each_share_a_rack_proved():
    """Sorted by role none would; github.com/ai-dynamo/grove, issue 578."""
    machine = racks([18] * 10, 4)
    rate = {"bytes_per_token": 70272, "tokens_per_s": 2e6, "pattern": "paired"}
    job = workload_of(
        [halves("prefill"), halves("decode")],
        [{"from": "prefill", "to": "decode", **rate}],
        launcher={"ranks": "node-contiguous"},
    )
    found = solve(machine, job)
    assert found.lower_bound == pytest.approx(found.value, rel=1e-9)
    rack = machine.domain_of_gpu[1][found.placement.gpu_of_rank]
    assert (rack[:360] == rack[360:]).all()


def test_prefill_workers_of_one_host_are_one_to_a_pci_root():
    """Both on one root halve the rate; github.com/ai-dynamo/dynamo, issue 10171."""
    machine = racks([1, 1], 4)
    roles = [
        {"name": "prefill", "instances": 2, "job": {"parallelism": {"dp": 1}}},
        {"name": "decode", "instances": 4, "job": {"parallelism": {"dp": 1}}},
    ]
    sent = {"from": "prefill", "to": "decode", "bytes": "1GB", "pattern": "paired"}
    found = solve(machine, workload_of(roles, [sent]))
    root = machine.domain_of_gpu[1][found.placement.gpu_of_rank]
    assert root[0] != root[1]
    assert (root[2:] == [root[0], root[1], root[0], root[1]]).all()


def test_a_cycle_is_its_slowest_role_and_the_transfers_it_waits_for():
    machine = racks([1, 1], 2)
    roles = [
        {"name": "a", "job": {"parallelism": {"dp": 2}, "compute": {"fixed_time": 3}}},
        {"name": "b", "job": {"parallelism": {"dp": 2}, "compute": {"fixed_time": 1}}},
    ]
    sent = {"from": "a", "to": "b", "bytes": "8GB", "every": 2}
    # Role a fills node 0: its two steps, then each rank sends 8 GB over half a NIC.
    waits = 6.0 + 0.320005
    quantizes, hidden = {"fixed_time": "500ms"}, {"overlap": True}
    for more, cycle in (({}, waits), (quantizes, waits + 0.5), (hidden, 6.0)):
        job = workload_of(roles, [sent | more])
        step = StepModel(machine, job).step(np.arange(4))
        assert step.step_time_s == pytest.approx(cycle)
        assert step.roles_s == 6.0


def test_instances_that_send_nothing_share_a_step_where_their_gpus_are_alike():
    """Those that do have one each: here one is on one node, the other on two."""
    speed = np.array([1.0, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0])
    machine = replace(three_levels([3, 4], 2), compute_factor=speed)
    work = {"parallelism": {"tp": 2}, "compute": {"fixed_time": "1s"}}
    sends = {"name": "g", "collective": "all_reduce", "bytes": "1GB", "ranks": "all"}
    roles = [
        {"name": "silent", "instances": 4, "job": work},
        {"name": "loud", "instances": 2, "job": work | {"groups": [sends]}},
    ]
    model = StepModel(machine, workload_of(roles, []))
    silent, loud = model.step(np.array([*range(8), 8, 9, 11, 12])).roles
    assert [float(step.slowness.max()) for step in silent.steps] == [1, 2, 2, 1]
    assert len({id(step) for step in silent.steps}) == 2
    near, far = (step.step_time_s for step in loud.steps)
    assert near < far == loud.seconds


def test_roles_of_no_steps_leave_the_transfers_as_the_objective():
    machine = racks([1, 1], 2)
    work = {"parallelism": {"dp": 2}, "compute": {"fixed_time": 3}}
    roles = [{"name": name, "steps": 0, "job": work} for name in "ab"]
    sent = {"from": "a", "to": "b", "bytes": "8GB", "pattern": "paired", "every": 2}
    found = solve(machine, workload_of(roles, [sent]))
    # Each receiver beside its sender: 4 GB over the link inside a node, and no role.
    near = machine.domain_of_gpu[0][found.placement.gpu_of_rank]
    assert (near[:2] == near[2:]).all()
    assert found.value < 0.1
    assert found.lower_bound == pytest.approx(found.value)


def test_the_checker_names_a_role_that_is_split_or_misnamed():
    machine = racks([2, 2], 2)
    roles = [
        {"name": "a", "job": {"parallelism": {"tp": 2}}, "require": {"tp": "rack"}},
        {"name": "b", "job": {"parallelism": {"tp": 2}}},
    ]
    job = workload_of(roles, [{"from": "a", "to": "b", "bytes": 8}])
    torn = Placement(np.array([0, 4, 1, 2]))
    assert "1 of 1 a.tp group leaves its rack" in violations(torn, machine, job)[0]
    plan = placer.place(machine, job).plan
    assert plan.role_of_rank == ("a", "a", "b", "b")
    other = replace(plan, role_of_rank=("a", "b", "b", "b"))
    assert "another role" in violations(other, machine, job)[0]
