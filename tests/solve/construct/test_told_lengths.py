"""Lengths of runs annealed on tables of times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from placer.placement.placement import Placement
from placer.solve.bounds.case import cut_by_runs
from placer.solve.construct.by_nodes.cut_at_nodes import in_turn
from placer.solve.construct.by_nodes.told_lengths import told_lengths
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.topology.model import Tier
from tests.solve.bounds.test_certain import job, machine
from tests.solve.bounds.test_hop_runs import machine as machine_of_islands

# Twelve tp groups of 3 in three stages: runs of 5 and 4 hold three, one of them cut.
GROUPS = replace(job("node-contiguous", tp=3, pp=3, dp=4), micro_batches=4)


@pytest.mark.parametrize("order", ["dp-pp", "pp-dp"])
def test_groups_are_cut_in_the_stages_that_matter_least(order: str) -> None:
    """Runs in order cut a group of the last stage, which costs the most."""
    axes = replace(GROUPS.parallelism, order=("tp", "cp", "ep", *order.split("-")))
    problem = Problem.of(machine([5] * 9, [0] * 9), replace(GROUPS, parallelism=axes))
    cut = cut_by_runs(problem)
    assert cut is not None
    assert cut.run_counts is not None
    found = Incumbent(problem, Budget(60))
    lengths = [3, 5, 4, 5, 4, 5, 4, 3, 3]
    node = np.repeat(np.arange(9), lengths)
    found.offer("start", Placement.on_nodes(problem.machine, node).gpu_of_rank)
    before = cut.run_counts.pipelines_s(node).max()
    told_lengths(problem, found, Budget(60))
    assert found.gpu_of_rank is not None
    assert problem.allows(found.gpu_of_rank)
    after = problem.machine.node_of_gpu[found.gpu_of_rank]
    assert cut.run_counts.pipelines_s(after).max() < before


def test_runs_are_those_of_hosts_where_nvlink_joins_their_islands() -> None:
    """Hosts of islands of 3 and 2 GPUs are as those of 5."""
    fast = [Tier(name, 450e9, 1e-6, True, 1.0, 0.8, 1.0) for name in ("island", "node")]
    outer = Tier("cluster", 50e9, 5e-6, False, 1.0, 1.0, 9.0)
    hosts = replace(machine_of_islands([(3, 2)] * 9), tiers=(*fast, outer))
    problem = Problem.of(hosts, GROUPS)
    found = Incumbent(problem, Budget(60))
    host_of_rank = np.repeat(np.arange(9), [3, 5, 4, 5, 4, 5, 4, 3, 3])
    found.offer("start", in_turn(hosts.host_of_gpu, host_of_rank))
    before = found.value
    told_lengths(problem, found, Budget(60))
    assert found.value < before
