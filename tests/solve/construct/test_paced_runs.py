"""Runs on hosts for expert groups: stages with more work have theirs whole."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from placer.solve.bounds.experts.expert_parts import StageParts, stage_parts
from placer.solve.construct.by_nodes.paced_runs import HostPath, paced_runs
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from tests.solve.construct.test_whole_first import job, machine


def problem_on(gpus: list[int], ep: int, pp: int, dp: int) -> Problem:
    """A launch by nodes on such hosts."""
    experts = replace(job(tp=1, ep=ep, pp=pp, dp=dp, vp=1), launcher="node-contiguous")
    return Problem.of(machine(gpus, [0] * len(gpus)), experts, "time")


def parts_of(problem: Problem) -> StageParts:
    together = colocation_of(problem.machine, problem.job, 0)
    parts = stage_parts(problem.model, together)
    assert parts is not None
    return parts


def walks(rooms: list[int], left: int) -> Iterator[list[tuple[int, int]]]:
    """All ways to lay so many pieces on nodes: room of each and what it holds."""
    if not left:
        yield []
    for room in sorted(set(rooms)):
        others = list(rooms)
        others.remove(room)
        for held in range(1, min(room, left) + 1):
            for rest in walks(others, left - held):
                yield [(room, held), *rest]


@pytest.mark.parametrize("seed", range(12))
def test_hosts_hold_what_some_walk_has(seed: int) -> None:
    """For any least parts of stages: there is a path where one of all walks obeys."""
    rng = random.Random(f"paced {seed}")
    gpus = [rng.randint(2, 7) for _ in range(4)]
    while sum(gpus) < 12:
        gpus.append(rng.randint(2, 7))
    problem = problem_on(gpus, 4, rng.choice((1, 3)), 4)
    parts = parts_of(problem)
    path = HostPath(parts, parts.seconds(1))
    stages = problem.job.parallelism.pp
    all_least = []
    for walk in walks(gpus, 4 * stages):
        node = np.repeat(np.arange(len(walk)), [held for _, held in walk])
        rows = node.reshape(stages, 4)
        all_least.append([min(np.bincount(row)[np.unique(row)]) for row in rows])
    for least in product((1, 2, 4), repeat=stages):
        found = path.runs(np.array(least))
        assert (found is not None) == any(
            all(low >= one for low, one in zip(lows, least, strict=True))
            for lows in all_least
        )
        if found is not None:
            lengths, rooms = found
            assert lengths.sum() == 4 * stages
            assert all(n <= room for n, room in zip(lengths, rooms, strict=True))


def test_a_slow_last_stage_has_its_groups_whole() -> None:
    """16 hosts of 7 hold 24 groups of 4; those of the last stage are whole."""
    problem = problem_on([7] * 16, 4, 6, 16)
    slow = replace(problem.job.model, vocab=200_000)
    problem = problem.on(problem.machine, replace(problem.job, model=slow))
    incumbent = Incumbent(problem, Budget(60))
    paced_runs(problem, incumbent, incumbent.budget)
    host = problem.machine.node_of_gpu[incumbent.gpu_of_rank]
    assert all(len(set(row)) == 1 for row in host[80:].reshape(4, 4).tolist())
    assert any(len(set(row)) > 1 for row in host[:80].reshape(20, 4).tolist())
