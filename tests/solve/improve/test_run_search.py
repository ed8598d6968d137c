"""What nodes hold changes places where these are runs of different lengths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.placement import Placement
from placer.solve.improve.run_search import runs_annealed
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.topology.model import Tier
from tests.solve.random_cases import machine_of

TIERS = [
    Tier("node", 450e9, 1e-6, True, 1.0, 0.8, 1.0),
    Tier("leaf", 50e9, 5e-6, False, 1.0, 1.0, 9.0),
    Tier("cluster", 50e9, 8e-6, False, 1.0, 1.0, 11.0),
]
# Four leaves of four nodes; the first and third nodes of a leaf have 3 GPUs.
GPUS = [3, 4] * 8
MACHINE = machine_of(GPUS, [[n // 4 for n in range(16)], [0] * 16], TIERS)
RING = Job("ring", Parallelism(dp=56), weights={"dp": 1.0})
# The first node of each leaf, then the second ones: the ring leaves a leaf each time.
ACROSS = [leaf * 4 + node for node in range(4) for leaf in range(4)]


def searched(job: Job) -> Incumbent:
    """The search from the ring across leaves."""
    problem, budget = Problem.of(MACHINE, job), Budget(60)
    problem = problem.with_params(run_walks=2, run_changes=10_000)
    found = Incumbent(problem, budget)
    node_of_rank = np.repeat(ACROSS, np.array(GPUS)[ACROSS])
    found.offer("across", Placement.on_nodes(MACHINE, node_of_rank).gpu_of_rank)
    runs_annealed(problem, found, budget)
    return found


def test_a_ring_leaves_each_leaf_once() -> None:
    """40 hops inside nodes, 12 inside leaves and 4 between them are the fewest."""
    assert searched(RING).value == 40 + 12 * 9 + 4 * 11


def test_single_ranks_are_not_moved() -> None:
    """A free launch has searches of its own."""
    assert searched(replace(RING, launcher="free")).method == "across"
