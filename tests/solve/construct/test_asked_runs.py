"""Runs that bounds ask for are placements, and the best there are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.rules import Rules
from placer.solve import search
from placer.solve.construct.by_nodes.asked_runs import NAME, asked_runs, hosts_for
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.topology.model import Tier
from tests.solve.bounds.test_hop_runs import ORDERS, machine
from tests.solve.machines import MODEL
from tests.solve.random_cases import machine_of
from tests.solve.solving import solve

TIERS = [
    Tier("node", 450e9, 1e-6, True, 1.0, 0.8, 1.0),
    Tier("leaf", 50e9, 5e-6, False, 1.0, 1.0, 9.0),
    Tier("cluster", 50e9, 8e-6, False, 1.0, 1.0, 18.0),
]


def test_chains_on_islands_are_proved() -> None:
    """Five chains of 4 on islands of 4 and 3: one is cut, no placement is better."""
    chains = Parallelism(pp=4, dp=5, order=ORDERS[0])
    job = Job("j", chains, weights={"pp": 40.0, "dp": 4.0}, launcher="node-contiguous")
    topology = machine([(3, 3), (4, 3), (3, 4), (4, 4)])
    problem = Problem.of(topology, job, "hop-cost")
    incumbent = Incumbent(problem, Budget(5.0))
    asked_runs(problem, incumbent, Budget(5.0))
    assert incumbent.method == NAME
    found = solve(topology, job, objective="hop-cost", time_limit=5)
    assert found.lower_bound == found.value == incumbent.value


def test_the_smallest_part_is_in_the_last_stage_of_each_replica() -> None:
    """Twenty groups of 8 on 25 nodes of 7: each replica has one part of two ranks."""
    topology = machine_of([7] * 26, [[0] * 13 + [1] * 13, [0] * 26], TIERS)
    axes = Parallelism(tp=8, pp=4, dp=5, order=ORDERS[0])
    job = Job("j", axes, MODEL, 4096, micro_batches=8, compute=Compute(0.02))
    problem = Problem.of(topology, job, "time").with_params(enough_gap=1e-3)
    found = search.solve(problem, Budget(60.0))
    assert found.lower_bound >= 0.999 * found.value
    node = topology.node_of_gpu[found.placement.gpu_of_rank].reshape(5, 4, 8)
    parts = (node[..., None] == node[:, :, None]).sum(-1).min(axis=2)
    assert (parts.min(axis=1) == 2).all()
    assert ((parts == 2).sum(axis=1) == 1).all()


def test_groups_that_are_cut_lie_in_one_leaf() -> None:
    """Runs of 3 and 4, and of 2 and 3 ranks, on two leaves with a host of 3 and 4."""
    gpus, leaf = np.array([4, 3, 4, 3]), np.array([0, 0, 1, 1])
    lengths, is_end = np.array([3, 4, 2, 3]), np.array([False, True, False, True])
    hosts = hosts_for(lengths, is_end, gpus, leaf)
    assert sorted(hosts.tolist()) == [0, 1, 2, 3]
    assert (gpus[hosts] >= lengths).all()
    assert leaf[hosts[0]] == leaf[hosts[1]] != leaf[hosts[2]] == leaf[hosts[3]]
    alone = hosts_for(lengths, is_end, gpus, np.arange(4))
    assert sorted(alone.tolist()) == [0, 1, 2, 3]
    assert (gpus[alone] >= lengths).all()


def test_spares_are_the_smallest_nodes() -> None:
    """Two of three nodes hold 12 ranks, so one of three tp groups is cut: a proof."""
    topology = machine_of([6, 5, 6], [[0, 0, 0], [0, 0, 0]], TIERS)
    job = Job("j", Parallelism(tp=4, dp=3), weights={"tp": 4.0}, launcher="free")
    free = solve(topology, job, objective="hop-cost", time_limit=5)
    ruled = replace(job, rules=Rules(spares={"leaf": 1}))
    found = solve(topology, ruled, objective="hop-cost", time_limit=5)
    assert found.lower_bound == found.value > free.value
