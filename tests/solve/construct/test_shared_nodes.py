"""Expert groups in parts of half nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placer.solve.construct.experts.shared_nodes import shared_fills, shared_nodes
from placer.solve.construct.experts.walked_parts import walked_fills
from placer.solve.construct.units.in_parts import in_parts_fills
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.topology.model import Tier
from tests.solve.construct.test_whole_first import job
from tests.solve.random_cases import machine_of

TIERS = [
    Tier("node", 900e9, 1e-6, True, 1.0, 1.0, 1.0),
    Tier("rack", 900e9, 1e-6, True, 1.0, 1.0, 1.0),
    Tier("cluster", 50e9, 5e-6, False, 1.0, 1.0, 9.0),
]
# Two groups of 16 on three racks of three nodes of 4.
RACKS = machine_of([4] * 9, [[0] * 3 + [1] * 3 + [2] * 3, [0] * 9], TIERS)
TWO_GROUPS = replace(job(ep=16, dp=32), launcher="node-contiguous")


def in_whole_nodes(problem: Problem) -> Incumbent:
    incumbent = Incumbent(problem, Budget(60))
    incumbent.offer_all(in_parts_fills(problem))
    incumbent.offer_all(walked_fills(problem, incumbent, Budget(1)))
    return incumbent


def test_two_groups_share_the_middle_node_of_a_rack() -> None:
    """Parts of 6 and 10, where whole nodes leave one group a part of 4."""
    problem = Problem.of(RACKS, TWO_GROUPS, "time")
    incumbent = in_whole_nodes(problem)
    before = incumbent.value
    ((_, gpu_of_rank),) = shared_fills(problem, incumbent, Budget(60))
    incumbent.offer("shared", gpu_of_rank)
    assert incumbent.value == problem.goal.value(gpu_of_rank) < before
    rack = RACKS.domain_of_gpu[1][gpu_of_rank.reshape(2, 16)]
    parts = [sorted(np.unique(row, return_counts=True)[1].tolist()) for row in rack]
    assert parts == [[6, 10], [6, 10]]
    node = RACKS.node_of_gpu[gpu_of_rank]
    assert node[15] == node[16]
    assert np.count_nonzero(np.diff(node)) == len(np.unique(node)) - 1


def test_nodes_that_differ_or_a_free_launch_are_left_alone() -> None:
    """Half a node would be another number of ranks on each, or ranks lie anywhere."""
    odd = machine_of([4] * 8 + [2], [[0] * 3 + [1] * 3 + [2] * 3, [0] * 9], TIERS)
    free = replace(TWO_GROUPS, launcher="free")
    for topology, placed in ((odd, TWO_GROUPS), (RACKS, free)):
        problem = Problem.of(topology, placed, "time")
        incumbent = Incumbent(problem, Budget(60))
        before = incumbent.value
        shared_nodes(problem, incumbent, Budget(60))
        assert incumbent.value == before
