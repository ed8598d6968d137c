"""Rules that keep cp groups in a leaf, and say nothing about tp groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve import search
from placer.solve.construct.by_nodes.cut_within_sets import cut_set_fills
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.tree.outer_sets import sets_cut_least
from placer.topology.model import Tier
from tests.solve.machines import MODEL
from tests.solve.random_cases import machine_of
from tests.solve.solving import solve

TIERS = [
    Tier("node", 450e9, 1e-6, True, 1.0, 0.8, 1.0),
    Tier("leaf", 50e9, 5e-6, False, 1.0, 1.0, 9.0),
    Tier("cluster", 50e9, 8e-6, False, 1.0, 1.0, 11.0),
]
# Leaves of nine nodes, of which so many have eight GPUs, the others seven.
EIGHTS = [6, 4, 6, 5, 8]
GPUS = [8 if node < eights else 7 for eights in EIGHTS for node in range(9)]
MACHINE = machine_of(GPUS, [[n // 9 for n in range(45)], [0] * 45], TIERS)


def job(launcher: str) -> Job:
    return Job(
        "long context",
        Parallelism(tp=4, cp=8, dp=10),
        MODEL,
        4096,
        compute=Compute(micro_batch_time=0.02),
        weights={"tp": 4000, "cp": 400, "dp": 4},
        require={"cp": "leaf"},
        launcher=launcher,
    )


def test_few_groups_are_cut_and_the_rule_holds() -> None:
    """Of 16 groups in each leaf 15, 13, 15, 14 and all lie whole on a node."""
    problem = Problem.of(MACHINE, job("node-contiguous"), "hop-cost")
    for _, gpu_of_rank in cut_set_fills(problem):
        if violations(Placement(gpu_of_rank), MACHINE, problem.job):
            continue
        node = MACHINE.node_of_gpu[gpu_of_rank].reshape(-1, 4)
        assert (node != node[:, :1]).any(axis=1).sum() <= 11
        return
    pytest.fail("no placement keeps the rule")


@pytest.mark.slow
def test_by_nodes_the_hop_cost_is_near_its_bound() -> None:
    """Where all groups are cut alike it is 17 % above."""
    given = job("node-contiguous")
    problem = Problem.of(MACHINE, given, "hop-cost").with_params(enough_gap=0.04)
    found = search.solve(problem, Budget(60.0))
    assert not violations(found.placement, MACHINE, given)
    assert "sets of 32 whole" in found.method
    assert found.lower_bound > 0.96 * found.value


def test_sets_go_where_they_cut_least() -> None:
    """Seven sets fit uncut, the eighth where it cuts one of three units."""
    whole, held = np.array([8, 6, 9]), np.array([3, 3, 3])
    assert sets_cut_least(whole, held, 3, 7).tolist() == [2, 2, 3]
    assert sets_cut_least(whole, held, 3, 8).tolist() == [3, 2, 3]
    assert sets_cut_least(whole, held, 3, 10).tolist() == [3, 3, 3]


def test_sets_of_one_unit_are_cut_where_nodes_of_their_leaf_end() -> None:
    """Three rings of eight on six nodes of 5 lie in 5 and 3, two edges each."""
    topology = machine_of([5] * 12, [[n // 6 for n in range(12)], [0] * 12], TIERS)
    given = replace(
        job("node-contiguous"), parallelism=Parallelism(cp=8, dp=6), model=None
    )
    found = solve(topology, given, objective="hop-cost", time_limit=3)
    node = topology.node_of_gpu[found.placement.gpu_of_rank].reshape(-1, 8)
    assert (node != np.roll(node, 1, axis=1)).sum() == 12
    assert not violations(found.placement, topology, given)
