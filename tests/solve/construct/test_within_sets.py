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
from placer.solve.construct.units.within_sets import within_set_fills
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.tree.outer_sets import sets_cut_least, slices_shared
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


@pytest.mark.parametrize(
    ("launcher", "fills", "most"),
    [("free", within_set_fills, 7), ("node-contiguous", cut_set_fills, 11)],
)
def test_few_groups_are_cut_and_the_rule_holds(launcher, fills, most) -> None:
    """Of 16 groups in each leaf 15, 13, 15, 14 and all lie whole on a node."""
    problem = Problem.of(MACHINE, job(launcher), "hop-cost")
    for _, gpu_of_rank in fills(problem):
        if violations(Placement(gpu_of_rank), MACHINE, problem.job):
            continue
        node = MACHINE.node_of_gpu[gpu_of_rank].reshape(-1, 4)
        assert (node != node[:, :1]).any(axis=1).sum() <= most
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


def test_blocks_that_no_leaf_holds_lie_across_leaves_in_slices() -> None:
    """Leaves of 15 nodes of 6 and 5 hold six blocks of 12 each, and twice two of three
    slices of a block; tp groups of other blocks are whole."""
    leaf = [n // 15 for n in range(45)]
    gpus = [6 if n % 15 < 8 else 5 for n in range(45)]
    topology = machine_of(gpus, [leaf, [0] * 45], TIERS)
    given = replace(job("free"), parallelism=Parallelism(tp=3, cp=4, dp=20), model=None)
    problem = Problem.of(topology, given, "hop-cost")
    found = [gpus for _, gpus in within_set_fills(problem)]
    assert found
    for gpu_of_rank in found:
        assert not violations(Placement(gpu_of_rank), topology, given)
        node = topology.node_of_gpu[gpu_of_rank].reshape(-1, 3)
        across = np.array(leaf)[node]
        assert (across != across[:, :1]).any(axis=1).sum() == 2 * 4


def test_slices_go_where_they_fit_best() -> None:
    """Two slices of a block go to the roomiest leaf, one where there is just one."""
    assert slices_shared(np.array([2, 1, 3]), 3, 1) == [[(2, 2), (1, 1)]]
    assert slices_shared(np.array([1, 1]), 3, 1) is None


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
