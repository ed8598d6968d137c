"""Walks under rules: from a placement that just keeps them, they never break one."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import pytest

from placer.base.budget import Budget as Allowance
from placer.job.rules import Pin, Rules
from placer.solve.annealing.runs import Runs
from placer.solve.annealing.units import Units
from placer.solve.annealing.walks import PricedInFull, Walk
from placer.solve.problem.compiled import Problem
from placer.solve.problem.starts import starts
from placer.solve.problem.submachine import Submachine
from placer.solve.run.budget import Budget
from placer.solve.score.kernel import is_built
from tests.solve.machines import fragmented, matching_job

if TYPE_CHECKING:
    from placer.base.arrays import IntArray
    from placer.job.model import Job
    from placer.topology.model import Topology

pytestmark = pytest.mark.skipif(not is_built(), reason="the compiled part is not built")


def just_kept(
    rng: random.Random, machine: Topology, job: Job, node_of_rank: IntArray
) -> Rules:
    """Rules of every sort, as strict as a placement lets them be."""
    rack, replica = machine.domain_of_node[1], job.parallelism.coordinates["dp"]
    names, used = np.array(machine.node_names), np.unique(node_of_rank)
    pinned = rng.sample(range(job.world_size), 3)
    pins = tuple(Pin((r,), (names[node_of_rank[r]],)) for r in pinned)
    held = [len(set(replica[rack[node_of_rank] == r])) for r in range(max(rack) + 1)]
    free = np.bincount(rack) - np.bincount(rack[used], minlength=max(rack) + 1)
    spares = int(free[np.unique(rack[used])].min())
    some = rng.sample(range(len(names)), len(names) // 2)
    ranks = np.isin(node_of_rank, some)
    hosts = frozenset(names[some])
    return Rules(
        pins,
        at_most={"rack": max(held)},
        spares={"rack": spares} if spares else {},
        budgets=(
            Allowance("some", hosts, gpus=int(ranks.sum())),
            Allowance("some", hosts, replicas=len(set(replica[ranks]))),
        ),
    )


@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("kind", [Units, Runs])
def test_walks_keep_every_rule(kind: type[Units], objective: str) -> None:
    """After many changes of units, or of runs, the best is legal, some are better."""
    gained = walked = 0
    for seed in count():
        rng = random.Random(f"fence {seed}")
        machine = fragmented(rng)
        first = np.unique(machine.domain_of_node[1], return_index=True)[1]
        used = Submachine.of(machine, ~np.isin(np.arange(machine.num_nodes), first))
        job = matching_job(rng, used.topology, objective)
        if job.world_size > used.topology.num_gpus:
            continue
        if kind is Runs:
            job = replace(job, launcher="node-contiguous")
        inside = next(iter(starts(Problem.of(used.topology, job, objective))))[1]
        start = used.gpu_in_whole(inside)
        node_of_rank = machine.node_of_gpu[start]
        job = replace(job, rules=just_kept(rng, machine, job, node_of_rank))
        problem = Problem.of(machine, job, objective)
        units = Runs.on_nodes(problem) if kind is Runs else Units.of(problem, start)
        if units is None or not problem.allows(start):
            continue
        try:
            walks = units.walks()
        except PricedInFull:
            continue
        slots = walks.units.slot_of_unit(start)
        if not problem.allows(walks.units.gpu_of_rank(slots)):
            continue
        begun = walks.load(slots)
        for scale in (30.0, 1.0):
            walk = walks.walk(Walk(seed, scale, slots), 3_000, Budget(1e6))
            assert problem.allows(walks.units.gpu_of_rank(walk.slots))
            if kind is Units:  # and wherever they have got to
                now = walks.evaluator.slot_of_unit
                assert problem.allows(walks.units.gpu_of_rank(now))
            gained += walk.cost < begun
        if (walked := walked + 1) == 6:
            break
    assert gained
