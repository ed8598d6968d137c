"""Expert groups on nodes of their own, where nodes of several sizes hold runs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.solve.construct.fills.runs import whole_group_fills
from placer.solve.problem.compiled import Problem
from tests.solve.construct.test_whole_first import machine

if TYPE_CHECKING:
    from placer.topology.model import Topology

WEIGHTS = {"tp": 4000, "ep": 64, "pp": 40, "edp": 4}
ORDER = ("tp", "cp", "ep", "dp", "pp")
# A leaf of five nodes of 4 and two of 3, one of six nodes of 3, two left over.
MACHINE = machine([3, 4, 4, 3, 4, 4, 4, *[3] * 6], [0] * 7 + [1] * 6)


def problem(topology: Topology, **sizes: int) -> Problem:
    """Experts, launched by nodes."""
    axes = Parallelism(**sizes, order=ORDER)
    job = Job("experts", axes, weights=WEIGHTS, launcher="node-contiguous")
    return Problem.of(topology, job, "hop-cost")


def test_the_largest_nodes_of_a_leaf_hold_groups_of_their_own() -> None:
    """Groups of 8: 4 + 4 twice; 4 + 3 + 1; and 3 + 3 + 2, the dearest, twice.

    Four are needed. The first leaf holds three, the other the fourth.
    """
    wanted = problem(MACHINE, ep=8, dp=16, pp=2)
    groups = wanted.job.parallelism.ranks_of_group["ep"]
    for _, gpu_of_rank in whole_group_fills(wanted):
        assert wanted.allows(gpu_of_rank)
        node = MACHINE.node_of_gpu[gpu_of_rank[groups]]
        parts = Counter(
            tuple(np.sort(np.unique(row, return_counts=True)[1])) for row in node
        )
        assert parts == {(4, 4): 2, (1, 3, 4): 1, (2, 3, 3): 1}
        leaf = MACHINE.domain_of_gpu[1][gpu_of_rank[groups]]
        assert (leaf == leaf[:, :1]).all()


def test_pipelines_follow_each_other_along_leaves() -> None:
    """Two groups a leaf: those of a stage in one order, of a replica in the other."""
    topology = machine([4, 4, 4, 4, 3, *[4] * 4], [0] * 5 + [1] * 4)
    wanted = problem(topology, ep=8, dp=16, pp=2)
    kept = []
    for _, gpu_of_rank in whole_group_fills(wanted):
        leaf = topology.domain_of_gpu[1][gpu_of_rank]
        stages = leaf[wanted.job.parallelism.ranks_of_group["pp"]]
        kept.append(int((stages[:, 0] == stages[:, 1]).sum()))
    assert kept == [0, 16]


def test_none_where_a_node_holds_a_group_or_all_are_alike() -> None:
    """Others lay those out; nor are there any where too few groups fit."""
    alike = machine([4] * 8, [0] * 4 + [1] * 4)
    assert not list(whole_group_fills(problem(alike, ep=8, dp=8, pp=2)))
    assert not list(whole_group_fills(problem(MACHINE, ep=4, dp=8, pp=2)))
    less = machine([3, 4, 4, 3, 4, 4, 4, *[3] * 5], [0] * 7 + [1] * 5)
    assert not list(whole_group_fills(problem(less, ep=8, dp=40)))
