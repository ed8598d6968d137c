"""Rows in columns: the same parts of groups on the hosts of a rack."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Compute, DataParallel, Job
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.construct.by_nodes.same_parts import Racks, column_fills, laid
from placer.solve.problem.compiled import Problem
from placer.topology.model import Tier
from tests.solve.machines import MODEL
from tests.solve.random_cases import machine_of
from tests.solve.solving import solve

TIERS = [
    Tier("node", 450e9, 1e-6, True, 1.0, 0.8, 1.0),
    Tier("leaf", 50e9, 5e-6, False, 1.0, 1.0, 9.0),
    Tier("cluster", 50e9, 8e-6, False, 8.0, 1.0, 18.0),
]
# Six leaves of three hosts of four: two stages of three expert groups of eight.
RACKS = machine_of([4] * 18, [[leaf // 3 for leaf in range(18)], [0] * 18], TIERS)
EXPERTS = replace(MODEL, experts=8, top_k=2, expert_ffn=4096, moe_layers=MODEL.layers)
JOB = Job(
    "experts",
    Parallelism(ep=8, pp=2, dp=24, order=("tp", "cp", "ep", "dp", "pp")),
    EXPERTS,
    512,
    micro_batches=2,
    data_parallel=DataParallel(sharding="zero3"),
    compute=Compute(micro_batch_time=1e-4),
    launcher="node-contiguous",
)


def test_a_leaf_has_the_same_part_of_all_groups_of_a_stage() -> None:
    """Three hosts hold the same half of each group, whose gradients stay inside.

    Where leaves hold whole groups, all eight rings of a stage cross uplinks.
    """
    problem = Problem.of(RACKS, JOB)
    [rows, *_] = [placed for told, placed in column_fills(problem) if "of 8" in told]
    assert not violations(Placement(rows), RACKS, JOB)
    groups = JOB.parallelism.ranks_of_group["edp"]
    leaf = RACKS.domain_of_node[1][RACKS.node_of_gpu[rows]][groups]
    assert (leaf == leaf[:, :1]).all()
    whole = Placement.on_nodes(RACKS, np.repeat(np.arange(12), 4)).gpu_of_rank
    assert problem.goal.value(rows) < problem.goal.value(whole)


def test_only_the_step_time_asks_for_them() -> None:
    weighted = replace(JOB, weights={"ep": 64.0, "pp": 40.0})
    assert not [*column_fills(Problem.of(RACKS, weighted, "hop-cost"))]


def test_the_search_finds_them() -> None:
    problem = Problem.of(RACKS, JOB)
    best = min(problem.goal.value(placed) for _, placed in column_fills(problem))
    assert solve(RACKS, JOB, objective="time", time_limit=5).value <= best


@pytest.mark.parametrize("pace", [0.0, 1.0, 2.0])
def test_columns_have_hosts_for_every_row_and_no_more_rings_than_uplinks_carry(
    pace: float,
) -> None:
    """Leaves of three, two and one host; two rows, so two hosts need no uplink."""
    gpus = np.array([8, 7, 6, 4, 4, 3])
    racks = Racks([[0, 1, 2], [3, 4], [5]], gpus, np.array([1.0, 1.0, 2.0]))
    columns = racks.columns(2, pace, 1)
    assert [column.ranks for column in columns] == [7, 4, int(pace)]
    assert sorted(columns[0].hosts) == [0, 1]
    assert sorted(columns[2].hosts) == [2, 5]
    host = laid(np.array([[0, 1]]), 9, columns)
    assert host is not None
    assert (np.bincount(host, minlength=6) <= gpus).all()
    assert laid(np.array([[0, 1], [2, 3]]), 9, columns) is None
