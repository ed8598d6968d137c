"""Lengths of runs annealed on tables of times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from placer.placement.placement import Placement
from placer.solve.bounds.case import cut_by_runs
from placer.solve.construct.by_nodes.told_lengths import told_lengths
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from tests.solve.bounds.test_certain import job, machine

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
