"""Placements that fill domains in the order of the ranks, and leave some out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from placer.solve import search
from placer.solve.construct.fills.fills import fullest_fills
from placer.solve.construct.fills.runs import along, run_fills
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from tests.solve.construct.test_whole_groups import job, machine

if TYPE_CHECKING:
    from placer.solve.run.solution import Solution


def solved(problem: Problem) -> Solution:
    return search.solve(problem.with_params(listed_sample=0), Budget(60))


def test_runs_end_with_groups() -> None:
    """All groups of 32 but one end where a rack of odd size ends, or before."""
    room = np.array([66, 65, 69, 62])
    found = along(room, np.zeros(4, dtype=np.int64), 32, 256)
    assert sum(take for _, take in found) >= 256
    assert all(take <= room[domain] for domain, take in found)
    ends = np.cumsum([take for _, take in found])
    assert sum(end % 32 != 0 for end in ends[:-1]) <= 1


def test_launch_in_order_on_odd_nodes_keeps_groups_whole() -> None:
    """Racks of 18 trays some of which lost a GPU: groups are shifted along, few cut."""
    rng = np.random.default_rng(3)
    trays = 4 - (rng.random(36) < 0.3)
    near = machine(trays.tolist(), [0] * 18 + [1] * 18)
    tiers = (near.tiers[0], replace(near.tiers[1], distance=1.0), near.tiers[2])
    racks = replace(near, tiers=tiers)
    placed = replace(job(tp=1, ep=32, pp=2, dp=64, vp=2), launcher="node-contiguous")
    problem = Problem.of(racks, placed, "hop-cost")
    groups = placed.parallelism.ranks_of_group["ep"]
    fills = [gpus for _, gpus in run_fills(problem) if problem.allows(gpus)]
    assert fills
    cut = [
        sum(len(np.unique(racks.domain_of_gpu[1][g[row]])) > 1 for row in groups)
        for g in fills
    ]
    assert min(cut) <= 1
    best = min(problem.goal.value(gpus) for gpus in fills)
    assert solved(problem).value <= best


def test_the_smallest_domains_are_left_out() -> None:
    """A ring over all ranks crosses one leaf less when the spare GPUs make one idle."""
    leaves = machine([8, 8, 2, 8, 8], [0, 0, 0, 1, 1])
    ring = replace(job(tp=1, ep=1, pp=1, dp=31), weights={"dp": 4})
    problem = Problem.of(leaves, ring, "hop-cost")
    used = {
        name: len(np.unique(leaves.node_of_gpu[gpus]))
        for name, gpus in fullest_fills(problem)
    }
    assert used["fullest domains first, the smallest left out"] == 4
    assert used["fullest domains first"] == 5
    assert solved(problem).gap == 0
