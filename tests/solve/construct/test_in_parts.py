"""Placements whose groups lie in parts of several sizes, or in runs of ranks."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice
from time import process_time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from placer.solve import search
from placer.solve.construct.fills.fills import fullest_fills
from placer.solve.construct.fills.runs import along, run_fills
from placer.solve.construct.units.in_parts import in_parts_fills
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from tests.solve.construct.test_whole_first import job, machine, parts_of

if TYPE_CHECKING:
    from placer.solve.run.solution import Solution

# Hosts of odd sizes: four groups of 8 are never whole.
ODD = machine([7, 5, 6, 6, 7, 5], [0, 0, 0, 1, 1, 1])
GROUPS = job(tp=1, ep=8, pp=2, dp=16, vp=2)


def solved(problem: Problem) -> Solution:
    return search.solve(problem.with_params(listed_sample=0), Budget(60))


def test_parts_of_five_and_three_beat_halves() -> None:
    """Equal parts of 4 leave hosts of 7 half empty; parts of 3 to 5 fit."""
    problem = Problem.of(ODD, GROUPS)
    groups = GROUPS.parallelism.ranks_of_group["ep"]
    sizes = [
        parts_of(ODD, groups, gpu_of_rank) for _, gpu_of_rank in in_parts_fills(problem)
    ]
    assert max(min(min(parts) for parts in one) for one in sizes) >= 3
    assert min(max(map(len, one)) for one in sizes) <= 3


def test_large_hosts_are_not_mixed_with_small_ones() -> None:
    """Of two groups of 32 one lies on hosts of 8 only, though they stand apart."""
    hosts = machine([8, 7, 8, 7, 8, 7, 8, 7, 7], [0, 0, 0, 0, 0, 1, 1, 1, 1])
    groups = replace(job(tp=1, ep=32, pp=1, dp=64), launcher="node-contiguous")
    problem = Problem.of(hosts, groups)
    least = {
        tuple(sorted(min(parts) for parts in parts_of(hosts, rows, gpu_of_rank)))
        for _, gpu_of_rank in in_parts_fills(problem)
        for rows in [groups.parallelism.ranks_of_group["ep"]]
    }
    assert (6, 8) in least


def test_a_first_placement_does_not_wait_for_the_others() -> None:
    """Of 800 odd hosts it is had in two thirds of the time that twelve take."""
    draw = random.Random(5)
    hosts = machine(
        [draw.randint(5, 8) for _ in range(800)], [i // 16 for i in range(800)]
    )
    problem = Problem.of(hosts, job(tp=1, ep=32, pp=2, dp=2_400, vp=2))
    begun = process_time()
    times = [process_time() - begun for _ in islice(in_parts_fills(problem), 12)]
    assert len(times) == 12
    assert times[0] < times[-1] * 2 / 3


@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("seed", range(12))
def test_every_rank_has_a_gpu(seed: int, objective: str) -> None:
    """Any expert layout on any nodes: nobody lost, nobody twice."""
    rng = random.Random(f"in parts {seed}")
    nodes = rng.randint(6, 16)
    gpus = [rng.choice((8, 7, 6, 5, 4)) for _ in range(nodes)]
    topology = machine(gpus, sorted(rng.randrange(3) for _ in range(nodes)))
    ep, pp = rng.choice((8, 16)), rng.choice((1, 2))
    dp = sum(gpus) * 19 // 20 // pp // ep * ep
    sparse = job(tp=1, ep=ep, pp=pp, dp=dp)
    problem = Problem.of(topology, sparse, objective)
    for _, gpu_of_rank in in_parts_fills(problem):
        assert len(np.unique(gpu_of_rank)) == sparse.world_size


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
