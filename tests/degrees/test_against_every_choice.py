"""`tune` against placing every legal choice that fits, on machines of 6 to 64 GPUs.

A few of those that ``python -m tests.degrees.test_against_every_choice 0 200`` tries.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pytest

import placer
from placer.footprint.stages import footprint
from placer.job.recompute import flops_again
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.search import solve
from tests.degrees.cases import GB, job, machine
from tests.degrees.test_tune import all_legal

if TYPE_CHECKING:
    from placer.degrees.choice import Choice
    from placer.job.model import Job
    from placer.topology.model import Topology

MACHINES = (
    "node:3 gpu:2",
    "rack:2 node:2 gpu:2",
    "node:4 gpu:2",
    "node:2 gpu:4",
    "rack:3 node:1 gpu:4",
    "node:2 gpu:8",
    "rack:2 node:2 gpu:4",
    "rack:2 node:4 gpu:4",
    "rack:4 node:2 gpu:4",
    "rack:2 node:4 gpu:8",
)
MOST = 30  # choices to place


class Case(NamedTuple):
    """A machine, a job, the memory of a GPU, and every choice that is to be placed."""

    machine: Topology
    job: Job
    memory: float
    choices: dict[Choice, Job]


def drawn(seed: int) -> Case:
    """The first case of a seed that has a few choices, of one kind of work each."""
    random = Random(f"many {seed}")
    while True:
        topology, work = machine(random.choice(MACHINES)), small(random)
        memory = random.choice([1.0, 1.5, 2.0, 4.0, 12.0]) * GB
        found: dict[Choice, Job] = {}
        for choice in all_legal(work, topology.num_gpus, work.micro_batches):
            inside = choice.tp <= int(topology.gpus_of_node[0])
            changed = choice.applied(work)
            needs = footprint(changed)
            if (inside or not work.overlap.tp) and needs and needs.total <= memory:
                again = f"{flops_again(changed)}"
                found.setdefault(replace(choice, recompute=again), changed)
            if len(found) > MOST:
                break
        if 3 <= len(found) <= MOST:
            return Case(topology, work, memory, found)


def small(random: Random) -> Job:
    """A job of so small a model that few degrees are legal."""
    work = job(random)
    assert work.model
    experts = 4 if work.model.experts else 0
    shape = replace(
        work.model,
        layers=random.choice([2, 3, 4]),
        moe_layers=2 if experts else 0,
        heads=random.choice([2, 4]),
        kv_heads=2,
        hidden=512,
        ffn=2048,
        experts=experts,
    )
    return replace(work, model=shape, micro_batches=random.choice([1, 2, 2, 4, 4, 6]))


@pytest.mark.parametrize(
    "seed",
    [*range(4), *(pytest.param(s, marks=pytest.mark.slow) for s in range(4, 20))],
)
def test_the_best_of_placing_every_choice(seed: int) -> None:
    """The step is the best, and no bound is above it."""
    case = drawn(seed)
    best = min(
        solve(Problem.of(case.machine, changed, "time"), Budget(5.0)).value
        for changed in case.choices.values()
    )
    gpus = [case.machine.num_gpus]
    found = placer.tune(case.machine, case.job, gpus=gpus, memory=case.memory)
    assert found.rows[0]["step_time_s"] == pytest.approx(best, rel=1e-9)
    assert found.lower_bound_s <= best * (1 + 1e-9)


if __name__ == "__main__":
    first, end = (int(text) for text in sys.argv[1:])
    for number in range(first, end):
        test_the_best_of_placing_every_choice(number)
        print(number, flush=True)
